"""The real vLLM engine with SmolLM2."""

from __future__ import annotations

import re
import threading
import time

import pytest

from core.db import Database
from core.errors import DeadlineExceeded, InvalidInput
from generation import service
from generation.engine import Cancelled, Chunk, GenerationRequest, LocalEngine
from generation.grammar import free_grammar
from generation.prompt import Message
from generation.runtime import EngineRuntime
from generation.values import join_sentences
from tests.generation.fakes import SENTENCE
from tests.generation.rows import Library
from tests.generation.test_tasks import Stage

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

PASSAGES = (
    "Passages:\n[1] The tower is 330 metres tall. Workers finished it in 1889.\n\n"
    "[2] The museum had 8.9 million visitors in 2023.\n\nQuestion: "
)


def request(name: str, question: str = "How tall is the tower?", **more: object) -> GenerationRequest:
    settings: dict[str, object] = {
        "id": f"{name}-{time.monotonic_ns()}",
        "messages": (
            Message("system", "Answer with facts. Cite like [1]."),
            Message("user", PASSAGES + question),
        ),
        "max_tokens": 60,
        "deadline": time.monotonic() + 300,
    }
    return GenerationRequest(**{**settings, **more})  # type: ignore[arg-type] # keywords by name


def until_free(engine: LocalEngine, within_s: float = 10.0) -> None:
    end = time.monotonic() + within_s
    while engine.load().running and time.monotonic() < end:
        time.sleep(0.1)
    assert engine.load().running == 0
    assert engine.load().kv_used_share < 0.01


def test_every_sentence_ends_in_an_allowed_marker(engine: LocalEngine) -> None:
    grammar = free_grammar([1, 2], max_sentences=2)
    chunks = list(engine.generate(request("free", grammar=grammar, max_tokens=150)))
    text = "".join(c.text for c in chunks)
    assert chunks[-1].finish_reason == "stop"
    assert re.fullmatch(f"(?:{SENTENCE.pattern} ?){{1,2}}", text), text
    assert set(re.findall(r"\[(\d+)\]", text)) <= {"1", "2"}
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 5


def test_one_rank_computes_inside_the_core(engine: LocalEngine) -> None:
    assert len(engine.core_pids()) == engine.planned.plan.tp * engine.planned.plan.pp == 1


def test_the_engine_reports_what_was_planned(engine: LocalEngine) -> None:
    report = engine.report()
    assert report.kv_blocks == engine.planned.engine_blocks
    assert (report.block_size, report.max_model_len, report.dtype) == (32, 1024, "bfloat16")
    assert report.resident_bytes is not None
    assert report.resident_bytes > engine.planned.weight_bytes
    assert engine.drifts == ()
    assert engine.complaint() == ""


def test_greedy_decoding_repeats_itself(engine: LocalEngine) -> None:
    texts = {"".join(c.text for c in engine.generate(request("again", max_tokens=20))) for _ in range(2)}
    assert len(texts) == 1


def test_text_that_may_wait_comes_in_fewer_pieces_and_is_the_same(engine: LocalEngine) -> None:
    single = list(engine.generate(request("single", max_tokens=24)))
    together = list(engine.generate(request("together", max_tokens=24, chunk_s=60.0)))
    assert "".join(c.text for c in together) == "".join(c.text for c in single)
    assert len(together) <= 3 < len(single)  # the first token at once, 16 at most, the rest
    alone, joined = (chunks[-1].usage for chunks in (single, together))
    assert alone is not None
    assert joined is not None
    assert joined.completion_tokens == alone.completion_tokens > len(together)


@pytest.mark.parametrize("grammar", ["root ::= (((", "no rules at all", "root ::= undefined_rule"])
def test_a_bad_grammar_is_refused_and_the_engine_lives(engine: LocalEngine, grammar: str) -> None:
    with pytest.raises(InvalidInput):
        list(engine.generate(request("bad", grammar=grammar)))
    assert list(engine.generate(request("after", max_tokens=4)))[-1].finish_reason == "length"
    assert not engine.dead


@pytest.mark.parametrize("count", [0, 1, 64, 500, 501])
def test_grammars_of_any_allowed_size_compile(engine: LocalEngine, count: int) -> None:
    if not 1 <= count <= 500:
        with pytest.raises(InvalidInput):
            free_grammar(range(1, count + 1), max_sentences=1)
        return
    grammar = free_grammar(range(1, count + 1), max_sentences=1)
    assert list(engine.generate(request("size", grammar=grammar, max_tokens=4)))


def test_a_prompt_longer_than_the_model_is_refused_and_the_engine_lives(engine: LocalEngine) -> None:
    with pytest.raises(InvalidInput):
        list(engine.generate(request("long", "word " * 3000)))
    assert list(engine.generate(request("after", max_tokens=2)))


def test_a_deadline_frees_the_kv_cache(engine: LocalEngine) -> None:
    with pytest.raises(DeadlineExceeded):
        list(engine.generate(request("late", max_tokens=800, min_tokens=800, deadline=time.monotonic() + 1)))
    until_free(engine)


def test_cancel_and_a_closed_reader_free_the_kv_cache(engine: LocalEngine) -> None:
    wanted = request("cancel", max_tokens=800, min_tokens=800)
    stream = engine.generate(wanted)
    next(stream)
    engine.cancel(wanted.id)
    with pytest.raises(Cancelled):
        for _ in stream:
            pass
    until_free(engine)
    closed = engine.generate(request("close", max_tokens=800, min_tokens=800))
    next(closed)
    closed.close()
    until_free(engine)


def test_sixteen_questions_meet_in_one_batch(engine: LocalEngine) -> None:
    finished: dict[int, Chunk] = {}
    most = 0

    def ask(number: int) -> None:
        wanted = request(f"batch{number}", f"Question {number}?", max_tokens=24, min_tokens=24)
        finished[number] = list(engine.generate(wanted))[-1]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    while any(t.is_alive() for t in threads):
        most = max(most, engine.load().running)
        time.sleep(0.02)
    assert len(finished) == 16
    assert most >= 12
    until_free(engine)


def test_a_shared_prefix_is_cached_within_a_tenant_and_not_across(engine: LocalEngine) -> None:
    def cached(salt: str) -> int:
        chunks = list(engine.generate(request("salt", "About the weather?", max_tokens=2, cache_salt=salt)))
        assert chunks[-1].usage is not None
        return chunks[-1].usage.cached_tokens

    assert cached("tenant-a") == 0
    assert cached("tenant-a") >= 32
    assert cached("tenant-b") == 0


def test_an_answer_of_the_real_model_is_checked_and_streamed(
    engine: LocalEngine, sqlite_database: Database
) -> None:
    stage = Stage(sqlite_database)
    stage.runtime = EngineRuntime(lambda: engine)
    stage.runtime._bring_up()
    query_id = stage.ask("How tall is the tower?", mode="free", max_sentences=2)
    answer = stage.answer(query_id)
    claims = [payload for name, payload in stage.events(query_id) if name == "claim"]
    assert answer.status in ("answered", "incomplete")
    assert join_sentences(c["text"] for c in claims) == answer.text
    markers = {s.marker for s in answer.sources}
    for claim in answer.claims:
        assert claim.verdict.value != "unsupported"
        assert {c.marker for c in claim.citations} <= markers
    assert "330" in answer.text


def test_a_real_prompt_that_is_too_long_is_trimmed(engine: LocalEngine, sqlite_database: Database) -> None:
    stage = Stage(sqlite_database)
    stage.library = Library(sqlite_database, ["The tower is 330 metres tall. " + "It is old. " * 300] * 6)
    stage.runtime = EngineRuntime(lambda: engine)
    stage.runtime._bring_up()
    answer = stage.answer(stage.ask(mode="free", max_sentences=1, max_answer_tokens=40))
    assert answer.status in ("answered", "incomplete")
    assert 0 < answer.usage["prompt_tokens"] <= 1024 - 40


def test_the_state_of_the_real_engine_is_published(engine: LocalEngine, sqlite_database: Database) -> None:
    runtime = EngineRuntime(lambda: engine)
    runtime._bring_up()
    runtime._tell(engine)
    with sqlite_database.read() as session:
        status = service.engine_status(session)
    assert (status.state, status.running) == ("ready", 0)
    assert status.plan is not None
    assert status.plan["languages"] == ["en"]
