"""The client of engine servers, against two real `vllm serve` that are killed, frozen and brought back."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import DeadlineExceeded, InvalidInput
from core.settings import GenerationSettings
from generation.engine_remote import RemoteEngine
from generation.grammar import free_grammar
from generation.prompt import Message
from generation.requests import Cancelled, Chunk, GenerationRequest
from tests.e2e.stack import until
from tests.support.vllm_servers import VllmServer, tiny_model

pytestmark = [pytest.mark.soak, pytest.mark.engine, pytest.mark.timeout(900)]

STREAMS = 12


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, generator_pack: Path) -> Iterator[list[VllmServer]]:
    folder = tmp_path_factory.mktemp("vllm")
    model = tiny_model(folder / "model", generator_pack)
    servers = [VllmServer(model, folder / f"{n}.log") for n in range(2)]
    for server in servers:
        server.start()
    for server in servers:
        server.wait_ready(300)
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture
def engine(servers: list[VllmServer]) -> Iterator[RemoteEngine]:
    engine = RemoteEngine(
        GenerationSettings(engine_url=",".join(s.url for s in servers), max_model_len=40960), model="tiny"
    )
    yield engine
    engine.close()


def request(number: int, **more: object) -> GenerationRequest:
    settings: dict[str, object] = {
        "id": f"{number}-{time.monotonic_ns()}",
        "messages": (
            Message("system", "Answer."),
            Message("user", f"Passage {number}: " + "the tower is old. " * 20 + "Question?"),
        ),
        "max_tokens": 160,
        "min_tokens": 160,
        "deadline": time.monotonic() + 200,
        "cache_salt": "ten_1",
        "priority": 1_700_000_000_000 + number,
    }
    return GenerationRequest(**{**settings, **more})  # type: ignore[arg-type] # keywords by name


def text_of(chunks: list[Chunk]) -> str:
    return "".join(c.text for c in chunks)


def replica(engine: RemoteEngine, server: VllmServer):  # type: ignore[no-untyped-def]
    return next(r for r in engine._replicas if r.url == server.url)


def stream_all(engine: RemoteEngine, disturb: object, after_chunks: int = 40) -> dict[int, list[Chunk]]:
    """Run `STREAMS` requests and call `disturb` once so many chunks have come in all."""
    got: dict[int, list[Chunk]] = {n: [] for n in range(STREAMS)}
    failed: dict[int, BaseException] = {}

    def read(number: int) -> None:
        try:
            for chunk in engine.generate(request(number)):
                got[number].append(chunk)
        except Exception as error:  # noqa: BLE001 - told at the end
            failed[number] = error

    threads = [threading.Thread(target=read, args=(n,)) for n in range(STREAMS)]
    for thread in threads:
        thread.start()
    until(lambda: sum(map(len, got.values())) >= after_chunks, within_s=120, what="text", every_s=0.005)
    disturb()  # type: ignore[operator]
    for thread in threads:
        thread.join(timeout=240)
    assert not failed, failed
    return got


def test_what_the_servers_tell_is_understood(engine: RemoteEngine, servers: list[VllmServer]) -> None:
    assert engine.planned.plan.max_model_len == 1024
    chunks = list(engine.generate(request(1, max_tokens=5, min_tokens=0)))
    assert chunks[-1].finish_reason in ("stop", "length")
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens <= 5
    assert engine.count_tokens("one two three") == 3
    until(lambda: engine.load().kv_tokens > 0, within_s=10, what="blocks told")
    grammar = free_grammar([1, 2], max_sentences=1)
    assert list(engine.generate(request(2, grammar=grammar, max_tokens=20, min_tokens=0)))
    with pytest.raises(InvalidInput):
        list(engine.generate(request(3, grammar="root ::= (((", min_tokens=0)))
    with pytest.raises(InvalidInput):
        list(engine.generate(request(4, messages=(Message("user", "word " * 3000),))))
    assert engine.complaint() == ""


def test_abort_and_deadline_reach_the_server(engine: RemoteEngine) -> None:
    wanted = request(1, max_tokens=900, min_tokens=900)
    stream = engine.generate(wanted)
    next(stream)
    engine.cancel(wanted.id)
    with pytest.raises(Cancelled):
        for _ in stream:
            pass
    with pytest.raises(DeadlineExceeded):
        list(engine.generate(request(2, max_tokens=900, min_tokens=900, deadline=time.monotonic() + 0.5)))
    until(lambda: engine.load().running == 0, within_s=15, what="both aborted")
    assert engine.load().kv_used_share < 0.01


def test_a_killed_server_loses_and_doubles_nothing(engine: RemoteEngine, servers: list[VllmServer]) -> None:
    alone = {n: text_of(list(engine.generate(request(n)))) for n in range(STREAMS)}
    killed = time.monotonic()
    got = stream_all(engine, servers[0].kill)
    print(f"all {STREAMS} streams ended {time.monotonic() - killed:.1f} s after they began")
    assert {n: text_of(chunks) for n, chunks in got.items()} == alone
    assert all([c.finish_reason for c in chunks if c.finish_reason] == ["length"] for chunks in got.values())
    assert "1 of 2 servers answer" in engine.complaint()
    servers[0].start()
    servers[0].wait_ready(300)
    until(lambda: engine.complaint() == "", within_s=60, what="the server is asked again")


def test_a_frozen_server_loses_and_doubles_nothing(engine: RemoteEngine, servers: list[VllmServer]) -> None:
    alone = {n: text_of(list(engine.generate(request(n)))) for n in range(STREAMS)}
    begun = time.monotonic()
    got = stream_all(engine, lambda: servers[1].signal(signal.SIGSTOP))
    print(f"all {STREAMS} streams ended {time.monotonic() - begun:.1f} s after they began")
    assert {n: text_of(chunks) for n, chunks in got.items()} == alone
    servers[1].signal(signal.SIGCONT)
    until(lambda: engine.complaint() == "", within_s=60, what="the server is asked again")
    until(lambda: replica(engine, servers[1]).load.running == 0, within_s=60, what="its requests aborted")
