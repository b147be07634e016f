"""The rerank stage on the real index and encoder: search, evidence, scope, cancel, failing routes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from core import streams
from core.db import Database, utcnow
from core.errors import TransientError
from core.ids import new_id
from core.jobs import run_job
from core.metrics import REWRITES
from core.models import (
    EvidenceRow,
    JobRow,
    PassageRow,
    PassageTokensRow,
    PassageVectorRow,
    QueryRow,
    TenantRow,
)
from core.redis_client import get_redis
from core.settings import get_settings
from core.types import Hit, JobStatus, Role, Route, Scope
from core.worker import Task
from ingest.service import BlobStore, create_collection, register_upload
from retrieval import catalogues, rerank_task, searches
from retrieval.centres import centres_of, without
from retrieval.filters import Filters
from retrieval.live import live_passages
from retrieval.profile import BUILT_IN, built_in
from retrieval.profiles import add_profile, apply_profile, roll_back_profile
from retrieval.queries import get_search_result, submit_query
from retrieval.ranking import rank, token_cache
from retrieval.scratch import ScratchStack, scratch_stack
from retrieval.tiers import get_reader
from retrieval.variants import Variant

RULE = "消防通道必须保持畅通，任何人不得堆放杂物，违者按规定处理。"
NOTES = {
    "pump.txt": "The cooling pump in hall 4 is serviced every six months. It was last done in March 2024.",
    "visitors.txt": "Visitors register at the east gate and wear a badge. They return it before leaving.",
    "archive.txt": "The archive keeps paper records for ten years. Digital records stay for thirty years.",
    "水泵.txt": "二号厂房的冷却水泵每六个月保养一次。上一次保养在二〇二四年三月完成。",
}  # fmt: skip


def add_texts(stack: ScratchStack, scope: Scope, collection: str, texts: Sequence[tuple[str, str]]) -> None:
    for name, text in texts:
        blob = BlobStore.of().stage([text.encode()], get_settings().api.max_upload_bytes)
        with stack.db.write() as session:
            register_upload(session, scope, collection=collection, blob=blob, file_name=name)
    stack.run_jobs()


@pytest.fixture(scope="module")
def stack(encoder_pack: Path) -> Iterator[ScratchStack]:
    with scratch_stack() as made:
        add_texts(made, made.scope, made.collection_id, list(NOTES.items()))
        yield made


@pytest.fixture(scope="module")
def plants(stack: ScratchStack) -> str:
    with stack.db.write() as session:
        collection = create_collection(session, stack.scope, name="plants").id
    valve = "本厂区消防水池补水阀位于东门值班室地下。"
    texts = [
        (f"site_{n}.md", f"# 厂区 {n} 手册\n\n{RULE}\n" + (f"\n{valve}\n" if n == 7 else ""))
        for n in range(1, 9)
    ]
    add_texts(stack, stack.scope, collection, texts)
    return collection


@pytest.fixture(scope="module")
def codes(stack: ScratchStack) -> str:
    """Near-identical pages, each with a code of its own, more than a rerank looks at."""
    with stack.db.write() as session:
        collection = create_collection(session, stack.scope, name="codes").id
    page = "要插入页眉，请先在“视图”菜单中打开母版，再按 F2 键确认，否则打印预览中看不到最新的结果。"
    part = "This part fits every pump of the series. It is kept in hall nine and replaced once a year."
    texts = [(f"页{n}.txt", f"{page}本页的校验码是 V{n:04d}。") for n in range(1, 41)]
    texts += [(f"part {n}.txt", f"{part} Its number is XW-{2000 + n}.") for n in range(1, 26)]
    add_texts(stack, stack.scope, collection, texts)
    return collection


@pytest.fixture(scope="module")
def neighbour(stack: ScratchStack) -> tuple[Scope, str]:
    """Another tenant on the same index, with a text of its own."""
    tenant = new_id("ten")
    scope = Scope(tenant, None, "key_b", Role.WRITER)
    with stack.db.write() as session:
        session.add(TenantRow(id=tenant, name="neighbour"))
        session.flush()
        collection = create_collection(session, scope, name="corpus").id
    add_texts(
        stack, scope, collection, [("a.md", "# A 公司\n\nA 公司并购代号 QUARTZ-LANTERN 预算九千万。\n")]
    )
    return scope, collection


def ask(
    stack: ScratchStack, question: str, *, scope: Scope | None = None, collection: str = "", **more: Any
) -> str:
    """Submit and run the rerank stage; returns the query's id."""
    with stack.db.write() as session:
        query_id = submit_query(
            session,
            scope or stack.scope,
            question=question,
            collection_ids=[collection or stack.collection_id],
            **more,
        )
    stack.run_jobs([Task.RERANK])
    return query_id


def query_row(db: Database, query_id: str) -> QueryRow:
    with db.read() as session:
        return session.get_one(QueryRow, query_id)


def evidence_rows(db: Database, query_id: str) -> list[EvidenceRow]:
    with db.read() as session:
        return list(
            session.scalars(
                select(EvidenceRow).where(EvidenceRow.query_id == query_id).order_by(EvidenceRow.marker)
            )
        )


def jobs(db: Database, query_id: str) -> dict[str, str]:
    with db.read() as session:
        rows = session.execute(select(JobRow.task, JobRow.status).where(JobRow.subject_id == query_id))
        return {row.task: row.status for row in rows}


def events(query_id: str) -> list[tuple[str, dict[str, Any]]]:
    entries: Any = get_redis().xrange(streams.stream_key(query_id))
    return [(fields["event"], json.loads(fields["data"])) for _, fields in entries]


# -- search ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How often is the cooling pump serviced?", "every six months"),
        ("冷却水泵多久保养一次？", "每六个月保养一次"),
        ("Where do visitors register?", "east gate"),
    ],
)
def test_a_search_finds_the_passage_and_tells_which_routes_did(
    stack: ScratchStack, question: str, words: str
) -> None:
    query_id = ask(stack, question, task="search")
    with stack.db.read() as session:
        result = get_search_result(session, stack.scope, query_id)
    assert result.status == "answered"
    assert words in result.hits[0].passage.text
    assert {hit.route for hit in result.hits[0].routes} >= {Route.DENSE, Route.LEXICAL}
    assert [hit.rank for hit in result.hits] == list(range(1, len(result.hits) + 1))
    assert result.index_generation == query_row(stack.db, query_id).index_generation is not None
    asked = {Route.DENSE, Route.LEXICAL, Route.ENTITY}  # a question without codes asks no route for them
    assert {name: r["state"] for name, r in result.route_reports.items()} == dict.fromkeys(asked, "ok")
    (first, payload), (last, done) = events(query_id)
    assert (first, last, done["status"]) == ("search", "done", "answered")
    assert [hit["passage_id"] for hit in payload["hits"]] == [hit.passage.id for hit in result.hits]
    assert 0 < get_redis().ttl(streams.stream_key(query_id)) <= 120
    assert Task.ANSWER.value not in jobs(stack.db, query_id)


def test_page_two_goes_on_where_page_one_ended(stack: ScratchStack) -> None:
    question = "records"

    def page(offset: int, top_k: int) -> list[int]:
        query_id = ask(stack, question, task="search", options={"offset": offset, "top_k": top_k})
        with stack.db.read() as session:
            hits = get_search_result(session, stack.scope, query_id).hits
        assert [hit.rank for hit in hits] == list(range(offset + 1, offset + 1 + len(hits)))
        return [hit.passage.id for hit in hits]

    whole = page(0, 4)
    assert len(whole) == 4
    assert [*page(0, 2), *page(2, 2)] == whole
    assert page(40, 2) == []


def test_more_than_there_is_gives_what_there_is(stack: ScratchStack) -> None:
    with stack.db.write() as session:
        collection = create_collection(session, stack.scope, name="one").id

    def found(top_k: int) -> list[str]:
        query_id = ask(stack, "lighthouse", collection=collection, task="search", options={"top_k": top_k})
        with stack.db.read() as session:
            result = get_search_result(session, stack.scope, query_id)
        assert result.status == "answered"
        return [hit.passage.text for hit in result.hits]

    assert found(1) == found(1000) == []
    add_texts(stack, stack.scope, collection, [("a.txt", "The lighthouse is white.")])
    assert found(1) == found(50) == found(1000) == ["The lighthouse is white."]


def test_explain_tells_what_was_left_out_and_why(stack: ScratchStack, plants: str) -> None:
    told = ask(stack, "消防通道", collection=plants, task="search", options={"explain": True})
    payload = events(told)[0][1]
    assert payload["hits"][0]["collapsed"] + len(payload["hits"]) >= 2
    if payload["dropped"]:
        assert {d["why"] for d in payload["dropped"]} == {"duplicate"}
    silent = ask(stack, "消防通道", collection=plants, task="search")
    assert "dropped" not in events(silent)[0][1]


def test_sources_that_are_too_old_make_room_for_younger_ones(stack: ScratchStack) -> None:
    with stack.db.write() as session:
        collection = create_collection(session, stack.scope, name="notices").id
    year = utcnow().year
    texts = [
        (
            f"notice {n}.md",
            f"# Notice {year - 3}-01-{n:02d}\n\nThe ferry to the island {n} leaves at {n} o'clock.",
        )
        for n in range(1, 13)
    ]
    texts.append(("new.md", "# Notice\n\nBoats sail on every second day, the ferry to the island included."))
    add_texts(stack, stack.scope, collection, texts)
    question = "When does the ferry to the island leave?"
    plain = ask(stack, question, collection=collection)
    assert "new.md" not in document_names(stack, plain)
    fresh = ask(stack, question, collection=collection, policy={"sources": {"max_age_days": 300}})
    assert document_names(stack, fresh) == {"new.md"}
    trace = query_row(stack.db, fresh).trace
    assert trace["too_old"] == sum(d["why"] == "too_old" for d in trace["dropped"]) > 0


def document_names(stack: ScratchStack, query_id: str) -> set[str]:
    with stack.db.read() as session:
        known = live_passages(session, stack.scope, [e.passage_id for e in evidence_rows(stack.db, query_id)])
        return {known[i].document_name for i in known}


def test_filters_reach_every_route(stack: ScratchStack) -> None:
    query_id = ask(stack, "cooling pump 水泵", task="search", filters={"lang": ["zh"]})
    with stack.db.read() as session:
        hits = get_search_result(session, stack.scope, query_id).hits
    assert hits
    assert {hit.passage.lang.value for hit in hits} == {"zh"}
    nothing = ask(stack, "cooling pump", task="search", filters={"tags": ["absent"]})
    assert query_row(stack.db, nothing).trace["hits"] == []
    assert query_row(stack.db, nothing).status == "answered"


@pytest.mark.parametrize(
    "odd",
    [
        "🙂🙂🙂",
        "？！。",
        "的",
        "水泵" * 1500,
        'AND OR NOT ("unclosed AND title:* ~2 [1 TO',
        "a\x00b",
        "<think>先想一想</think>水泵多久保养一次？",
        "' OR 1=1 --",
        "éclair 和 éclair",
    ],
)
def test_odd_questions_end_like_any_other(stack: ScratchStack, odd: str) -> None:
    assert query_row(stack.db, ask(stack, odd, task="search")).status == "answered"


# -- evidence ----------------------------------------------------------------------------------


def test_an_answer_gets_evidence_with_scored_sentences_and_its_next_job(stack: ScratchStack) -> None:
    query_id = ask(stack, "How often is the cooling pump serviced?")
    row, evidence = query_row(stack.db, query_id), evidence_rows(stack.db, query_id)
    assert row.status == "running"
    assert jobs(stack.db, query_id) == {Task.RERANK.value: "done", Task.ANSWER.value: "waiting"}
    assert [e.marker for e in evidence] == list(range(1, len(evidence) + 1))
    assert evidence[0].score > get_settings().retrieval.refusal_threshold
    best = max(evidence[0].sentences, key=lambda s: s["score"])
    assert (best["start"], best["end"]) == (
        0,
        len("The cooling pump in hall 4 is serviced every six months."),
    )
    assert set(row.timings_ms) >= {"retrieval_routes", "retrieval_rerank"}
    assert row.trace["best_relevance"] == max(e.score for e in evidence)


def test_a_question_that_nothing_answers_scores_below_the_threshold(stack: ScratchStack) -> None:
    threshold = get_settings().retrieval.refusal_threshold
    for question in ("🙂🙂🙂", "What is the boiling point of tungsten?", "谁写了《红楼梦》？"):
        evidence = evidence_rows(stack.db, ask(stack, question))
        assert max((e.score for e in evidence), default=0.0) < threshold, question


def test_the_only_different_passage_is_in_the_evidence(stack: ScratchStack, plants: str) -> None:
    query_id = ask(stack, "7 号厂区消防水池补水阀在哪里？", collection=plants)
    with stack.db.read() as session:
        evidence = evidence_rows(stack.db, query_id)
        found = live_passages(session, stack.scope, [e.passage_id for e in evidence])
    texts = [found[e.passage_id].passage.text for e in evidence]
    assert any("补水阀" in text for text in texts[:5])


def test_running_the_stage_again_replaces_its_evidence(stack: ScratchStack) -> None:
    query_id = ask(stack, "Where do visitors register?")
    before = [(e.marker, e.passage_id, e.score) for e in evidence_rows(stack.db, query_id)]
    with stack.db.write() as session:
        job = session.scalars(
            select(JobRow).where(JobRow.subject_id == query_id, JobRow.task == Task.RERANK.value)
        ).one()
        job.status = JobStatus.WAITING.value
    stack.run_jobs([Task.RERANK])
    assert [(e.marker, e.passage_id, e.score) for e in evidence_rows(stack.db, query_id)] == before
    assert jobs(stack.db, query_id)[Task.ANSWER.value] == "waiting"


# -- scope -------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["QUARTZ-LANTERN", "A 公司并购代号是什么？", "预算九千万"])
def test_a_neighbours_text_is_found_by_no_route(
    stack: ScratchStack, neighbour: tuple[Scope, str], question: str
) -> None:
    scope, collection = neighbour
    own = ask(stack, question, scope=scope, collection=collection, task="search")
    assert "QUARTZ-LANTERN" in events(own)[0][1]["hits"][0]["text"]
    foreign = ask(stack, question, task="search")
    assert "QUARTZ-LANTERN" not in json.dumps(events(foreign), ensure_ascii=False)
    theirs = {hit["passage_id"] for hit in events(own)[0][1]["hits"]}
    assert not theirs & {hit["passage_id"] for hit in query_row(stack.db, foreign).trace["hits"]}


# -- cancel and failure ------------------------------------------------------------------------


def test_a_cancelled_query_ends_at_once_without_evidence(stack: ScratchStack) -> None:
    with stack.db.write() as session:
        query_id = submit_query(session, stack.scope, question="pump", collection_ids=[stack.collection_id])
        session.get_one(QueryRow, query_id).cancel_requested = True
    stack.run_jobs([Task.RERANK])
    assert query_row(stack.db, query_id).status == "cancelled"
    assert evidence_rows(stack.db, query_id) == []
    assert jobs(stack.db, query_id) == {Task.RERANK.value: "cancelled"}
    assert [(name, p["status"]) for name, p in events(query_id)] == [("done", "cancelled")]


def test_a_query_cancelled_during_the_stage_gets_no_next_job(
    stack: ScratchStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked = rerank_task.rank

    def cancelled_meanwhile(db: Database, *args: Any, **kwargs: Any) -> Any:
        with db.write() as session:
            for row in session.scalars(select(QueryRow).where(QueryRow.status == "queued")):
                row.cancel_requested = True
        return ranked(db, *args, **kwargs)

    monkeypatch.setattr(rerank_task, "rank", cancelled_meanwhile)
    query_id = ask(stack, "Where do visitors register?")
    assert query_row(stack.db, query_id).status == "cancelled"
    assert Task.ANSWER.value not in jobs(stack.db, query_id)
    assert [name for name, _ in events(query_id)] == ["done"]


def test_a_question_that_leans_on_the_turn_before_it_finds_what_that_was_about(stack: ScratchStack) -> None:
    for first, then, words in (
        ("How often is the cooling pump in hall 4 serviced?", "When was it last done?", "March 2024"),
        ("二号厂房的冷却水泵多久保养一次？", "它上一次保养是什么时候？", "二〇二四年三月"),
    ):
        history = [{"role": "user", "content": first}, {"role": "assistant", "content": "[1]"}]
        query_id = ask(stack, then, history=history)
        row = query_row(stack.db, query_id)
        assert row.question == then, "what was asked stays as it was asked"
        assert row.trace["asked"]["why"] == "pronoun"
        with stack.db.read() as session:
            first = session.get_one(PassageRow, evidence_rows(stack.db, query_id)[0].passage_id)
        assert words in first.text
    assert "asked" not in query_row(stack.db, ask(stack, "Where do visitors register?")).trace


def test_the_depth_that_the_policy_asks_for_is_kept_and_told(stack: ScratchStack) -> None:
    question = "How often is the cooling pump serviced?"
    for depth, passages in (("extract", 1), ("one", 1), ("few", 2)):
        query_id = ask(stack, question, policy={"depth": depth, "refusal_threshold": 0.0})
        told = query_row(stack.db, query_id).trace["rerank"]
        assert told["depth"] == depth
        assert told["read"] <= told["head"]
        assert len(evidence_rows(stack.db, query_id)) == min(passages, told["read"])
    told = query_row(stack.db, ask(stack, question, policy={"depth": "auto"})).trace["rerank"]
    assert set(told["losses"]) == {"extract", "one", "few", "full"}
    assert told["signals"]["dense_first"] in (0.0, 1.0)
    assert "signals" not in query_row(stack.db, ask(stack, question)).trace["rerank"], "off by default"


def test_a_dead_route_stands_in_the_trace_and_the_others_answer(
    stack: ScratchStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead(*_: Any, **__: Any) -> list[Hit]:
        raise TransientError("The hot tier is refused until it is rebuilt.")

    monkeypatch.setattr("retrieval.tier_snapshot.SegmentedSnapshot.candidates", dead)
    query_id = ask(stack, "Where do visitors register?")
    row = query_row(stack.db, query_id)
    assert row.status == "running"
    assert row.trace["routes"]["dense"]["state"] == "failed"
    assert "refused" in row.trace["routes"]["dense"]["error"]
    assert evidence_rows(stack.db, query_id)


def test_all_routes_dead_is_retried_and_is_not_an_answer(
    stack: ScratchStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead(*_: Any, **__: Any) -> list[Hit]:
        raise TransientError("out of order")

    for place in (
        "retrieval.tier_snapshot.SegmentedSnapshot.candidates",
        "retrieval.tiers.LexicalRoute.search",
    ):
        monkeypatch.setattr(place, dead)
    monkeypatch.setattr(searches, "named_in", dead)
    with stack.db.write() as session:
        query_id = submit_query(session, stack.scope, question="pump", collection_ids=[stack.collection_id])
    with stack.db.read() as session:
        job_id = session.scalars(select(JobRow.id).where(JobRow.subject_id == query_id)).one()
    run_job(job_id, rerank_task.rerank_query, db=stack.db)
    row = query_row(stack.db, query_id)
    assert row.status == "queued"
    assert jobs(stack.db, query_id) == {Task.RERANK.value: "waiting"}
    for _ in range(get_settings().worker.max_attempts - 1):
        run_job(job_id, rerank_task.rerank_query, db=stack.db)
    row = query_row(stack.db, query_id)
    assert (row.status, row.error_code) == ("failed", "unavailable")


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("本页的校验码是 V0023", "V0023"),
        ("Which page has the check code V0017?", "V0017"),
        ("V0031", "V0031"),
        ("part ＸＷ－２００８", "XW-2008"),
        ("xw2019 的数量", "XW-2019"),
    ],
)
def test_the_one_passage_with_a_code_comes_first_among_its_near_copies(
    stack: ScratchStack, codes: str, question: str, code: str
) -> None:
    query_id = ask(stack, question, collection=codes, task="search")
    with stack.db.read() as session:
        result = get_search_result(session, stack.scope, query_id)
    assert code in result.hits[0].passage.text
    assert Route.CODE in {hit.route for hit in result.hits[0].routes}
    query_id = ask(stack, question, collection=codes)
    with stack.db.read() as session:
        first = session.get_one(PassageRow, evidence_rows(stack.db, query_id)[0].passage_id)
    assert code in first.text


def test_token_vectors_are_stored_with_the_passage_and_leave_with_it(stack: ScratchStack) -> None:
    with stack.db.write() as session:
        collection = create_collection(session, stack.scope, name="short lived").id
    add_texts(stack, stack.scope, collection, [("crane.txt", "The crane lifts nine tons.")])

    def stored() -> list[int]:
        with stack.db.read() as session:
            return list(
                session.scalars(
                    select(PassageTokensRow.passage_id)
                    .join(PassageRow, PassageRow.id == PassageTokensRow.passage_id)
                    .where(PassageRow.collection_id == collection)
                )
            )

    (passage_id,) = stored()
    with stack.db.write() as session:
        session.execute(delete(PassageTokensRow).where(PassageTokensRow.passage_id == passage_id))
    token_cache.cache_clear()
    ask(stack, "How many tons does the crane lift?", collection=collection)
    assert stored() == [passage_id]  # an index made before there were any fills up as it is used
    with stack.db.write() as session:
        session.execute(delete(PassageRow).where(PassageRow.id == passage_id))
    with stack.db.read() as session:
        assert session.get(PassageTokensRow, (passage_id, get_settings().packs.encoder)) is None


def test_a_configured_cross_encoder_has_the_last_word(
    stack: ScratchStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def likes_archives(_question: str, texts: Sequence[str]) -> np.ndarray:
        return np.array([float("archive" in text) for text in texts], np.float32)

    monkeypatch.setattr("retrieval.ranking.configured_reranker", lambda: likes_archives)
    query_id = ask(stack, "How often is the cooling pump serviced?", task="search")
    with stack.db.read() as session:
        result = get_search_result(session, stack.scope, query_id)
    assert "archive" in result.hits[0].passage.text
    assert "retrieval_cross" in result.timings_ms


def test_a_code_that_only_another_tenant_has_finds_nothing_by_itself(
    stack: ScratchStack, neighbour: tuple[Scope, str]
) -> None:
    query_id = ask(stack, "QUARTZ-LANTERN", task="search")
    with stack.db.read() as session:
        result = get_search_result(session, stack.scope, query_id)
    assert result.route_reports["code"]["hits"] == 0
    assert not any("QUARTZ" in hit.passage.text for hit in result.hits)


def test_passages_about_something_else_do_not_stand_beside_an_answer(stack: ScratchStack) -> None:
    query_id = ask(stack, "How often is the cooling pump serviced?")
    threshold = get_settings().retrieval.refusal_threshold
    assert evidence_rows(stack.db, query_id)
    assert all(e.score >= threshold for e in evidence_rows(stack.db, query_id))
    dropped = query_row(stack.db, query_id).trace["dropped"]
    assert "irrelevant" in {d["why"] for d in dropped}


def test_across_languages_the_dense_route_asks_without_what_questions_share(
    stack: ScratchStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = stack.scope.narrowed((stack.collection_id,))
    asked = partial(rank, stack.db, get_reader(), scope, filters=Filters(), wanted=5)
    across = asked(text="档案馆的纸质记录要保存多少年？")
    assert across.ranked[0].stored.document_name == "archive.txt"
    own = next(p.vector for p in vectors(stack) if p.passage_id == across.ranked[0].stored.passage.id)
    row = np.frombuffer(own, np.float16).astype(np.float32)
    centre = centres_of(across.model).asked[across.question.lang]
    hit = next(h for h in across.recalled.hits[Route.DENSE] if h.rank == 1)
    assert hit.score == pytest.approx(float(row @ without(across.question.vector[None], centre)[0]), abs=0.01)
    within = asked(text="How long does the archive keep paper records?")
    best = within.recalled.hits[Route.DENSE][0]
    assert best.score == pytest.approx(float(row @ within.question.vector), abs=0.01)

    once = searches.Searches.dense

    def fails_again(self: searches.Searches) -> Sequence[Hit]:
        if self.centre is not None:
            raise TransientError("away")
        return once(self)

    monkeypatch.setattr(searches.Searches, "dense", fails_again)
    left = asked(text=across.question.text)
    assert left.ranked[0].stored.document_name == "archive.txt"
    report = left.recalled.reports[Route.DENSE]
    assert (report.state, report.error[:11]) == ("partial", "asked again")


def vectors(stack: ScratchStack) -> Sequence[PassageVectorRow]:
    with stack.db.read() as session:
        return session.scalars(select(PassageVectorRow)).all()


def test_hits_that_left_since_are_counted_as_gone(stack: ScratchStack) -> None:
    from ingest.service import delete_document

    with stack.db.write() as session:
        collection = create_collection(session, stack.scope, name="leaving").id
    add_texts(stack, stack.scope, collection, [("fee.txt", "The harbour fee is 410 crowns per night.")])
    query_id = ask(stack, "How much is the harbour fee?", collection=collection, task="search")
    with stack.db.read() as session:
        before = get_search_result(session, stack.scope, query_id)
    with stack.db.write() as session:
        delete_document(session, stack.scope, document_id=before.hits[0].passage.document_id)
    with stack.db.read() as session:
        after = get_search_result(session, stack.scope, query_id)
    assert (len(before.hits), before.gone) == (1, 0)
    assert (after.hits, after.gone) == ((), 1)


def test_an_applied_profile_ranks_the_next_question_and_is_named_by_it(stack: ScratchStack) -> None:
    operator = replace(stack.scope, may=Role.OPERATOR)
    body = built_in(get_settings().retrieval).model_copy(update={"rerank_k": 1}).model_dump(mode="json")

    def asked() -> tuple[str, list[bool]]:
        query_id = ask(stack, "How often is the cooling pump serviced?", task="search")
        with stack.db.read() as session:
            found = get_search_result(session, stack.scope, query_id)
        return found.profile["id"], [hit.rerank_score is not None for hit in found.hits]

    assert asked() == (BUILT_IN, [True] * 4)
    with stack.db.write() as session:
        stored = add_profile(session, operator, body=body, collection=stack.collection_id)
        apply_profile(session, operator, profile_id=stored.id)
    assert asked() == (stored.id, [True, False, False, False])
    with stack.db.write() as session:
        roll_back_profile(session, operator, collection=stack.collection_id)
    assert asked() == (BUILT_IN, [True] * 4)


def test_variants_are_searched_for_under_the_question_and_told(stack: ScratchStack) -> None:
    question = "Where do guests get their sign?"
    texts = [Variant("llm", "Where do visitors register at the gate?"), Variant("hyde", "They wear a badge.")]
    query_id = ask(stack, question, task="search", variants=texts, policy={"rewrite": "llm"})
    with stack.db.read() as session:
        found = get_search_result(session, stack.scope, query_id)
    assert found.hits[0].document_name == "visitors.txt"
    assert [v["text"] for v in found.variants] == [v.text for v in texts]
    assert all(0 < v["weight"] < 1 for v in found.variants)
    assert "lexical" in {r.route.value for r in found.hits[0].routes}
    assert found.rewrite == {}  # nothing is late: the variants were there


def test_a_variant_brings_no_syntax_no_filter_and_no_other_tenant(
    stack: ScratchStack, neighbour: tuple[Scope, str]
) -> None:
    hostile = Variant("llm", f'QUARTZ-LANTERN tenant_id:{neighbour[0].tenant_id} OR tags:secret) " ^9 *')
    query_id = ask(stack, "How often is the pump serviced?", task="search", variants=[hostile])
    with stack.db.read() as session:
        found = get_search_result(session, stack.scope, query_id)
    assert found.route_reports["lexical"]["state"] == found.route_reports["dense"]["state"] == "ok"
    assert {hit.collection_id for hit in found.hits} == {stack.collection_id}
    assert found.hits[0].document_name == "pump.txt"


def test_a_question_and_its_variants_look_the_catalogue_up_once(
    stack: ScratchStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tenants = catalogues.catalogue_stamp, list[str]()

    def counted(session: Session, tenant_id: str) -> tuple[int, int, int]:
        tenants.append(tenant_id)
        return real(session, tenant_id)

    monkeypatch.setattr(catalogues, "catalogue_stamp", counted)
    texts = [Variant("llm", "pump service interval"), Variant("llm", "maintenance of the pump")]
    query_id = ask(stack, "How often is the pump serviced?", task="search", variants=texts)
    assert {"lexical", "entity"} <= query_row(stack.db, query_id).trace["routes"].keys()
    assert tenants == [stack.scope.tenant_id]


def test_a_search_that_waited_in_vain_for_variants_says_so_and_is_counted_once(stack: ScratchStack) -> None:
    counted = REWRITES.labels("hyde", "late")._value
    before = counted.get()
    query_id = ask(stack, "badge", task="search", policy={"rewrite": "hyde"}, rewrite_within_s=5.0)
    row = query_row(stack.db, query_id)
    assert (row.status, row.trace["rewrite"]) == ("answered", {"kind": "hyde", "state": "late"})
    assert jobs(stack.db, query_id) == {Task.REWRITE.value: "waiting", Task.RERANK.value: "done"}
    assert counted.get() == before + 1


@pytest.fixture
def with_neighbours(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GEO_RETRIEVAL__NEIGHBOURS", "1")
    get_settings.cache_clear()
    yield
    monkeypatch.undo()
    get_settings.cache_clear()


def test_a_neighbour_stands_beside_the_evidence_unless_it_only_repeats_it(
    stack: ScratchStack, with_neighbours: None
) -> None:
    crane = "The crane in hall 9 lifts nine tons and is checked in June."
    with stack.db.write() as session:
        collection = create_collection(
            session, stack.scope, name="cranes", parse={"passage_tokens": 16, "passage_max_tokens": 32}
        ).id
    add_texts(stack, stack.scope, collection, [("crane.txt", f"{crane}\n\n{crane}\n\nTwo men check it.")])
    query_id = ask(
        stack, "How many tons does the crane lift?", collection=collection, policy={"mode": "quote"}
    )
    with stack.db.read() as session:
        texts = [session.get_one(PassageRow, e.passage_id).text for e in evidence_rows(stack.db, query_id)]
    assert texts.count(crane) == 1
    dropped = query_row(stack.db, query_id).trace["dropped"]
    assert "duplicate" in {d["why"] for d in dropped}
    shown = {e.passage_id for e in evidence_rows(stack.db, query_id)}
    assert not shown & {d["passage_id"] for d in dropped}
