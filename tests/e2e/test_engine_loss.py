"""The engine process is killed under open streams, and clients leave by the hundred."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections import Counter

import httpx
import psutil
import pytest

from tests.e2e.stack import KEY, TERMINAL, Event, Stack, events, joined_claims, until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

TEXT = "\n\n".join(
    f"# Pier {n}\n\nPier {n} was built in {1800 + n}. It is {40 + n} metres long. "
    f"Its keeper owns {n + 2} boats. The pier closes at {n % 12 + 1} in the night."
    for n in range(20)
)


@pytest.fixture(scope="module")
def collection(stack: Stack) -> str:
    made = stack.collection("engine-loss")
    stack.ready(made, "piers.md", TEXT)
    return made


def body_of(collection: str, n: int) -> dict[str, object]:
    return {
        "question": f"Describe pier {n % 20}: when was it built, how long is it and when does it close?",
        "collection": collection,
        "deadline_s": 3600,
        "policy": {
            "mode": "free",
            "max_sentences": 12,
            "max_answer_tokens": 200,
            "refusal_threshold": 0.0,
        },
    }


def engine_core(stack: Stack) -> int:
    """Process id of the engine's core."""
    worker = psutil.Process(stack.processes()["worker-generation"])
    return next(p.pid for p in worker.children(recursive=True) if "VLLM::" in " ".join(p.cmdline()))


def idle(stack: Stack) -> bool:
    seen = stack.client.get("/v1/admin/engine").json()
    return seen["running"] == 0 and seen["waiting"] == 0 and seen["kv_free_share"] == 1.0


def followed(stack: Stack, query_ids: list[str]) -> tuple[dict[str, list[Event]], list[threading.Thread]]:
    """What a reader of each query sees, filled by a thread each."""
    seen: dict[str, list[Event]] = {query_id: [] for query_id in query_ids}

    def read(query_id: str) -> None:
        with events(stack, query_id) as stream:
            for event in stream:
                seen[query_id].append(event)

    readers = [threading.Thread(target=read, args=(query_id,)) for query_id in query_ids]
    for reader in readers:
        reader.start()
    return seen, readers


def asked(stack: Stack, collection: str, numbers: range) -> list[str]:
    answers = [stack.client.post("/v1/queries", json=body_of(collection, n)) for n in numbers]
    return [answer.json()["id"] for answer in answers]


@pytest.mark.parametrize("streams", [4, pytest.param(16, marks=pytest.mark.soak)])
def test_a_killed_engine_loses_and_doubles_nothing(stack: Stack, collection: str, streams: int) -> None:
    until(lambda: stack.status()["engine"]["state"] == "ready", within_s=120, what="engine up", every_s=1)
    core = engine_core(stack)
    seen, readers = followed(stack, asked(stack, collection, range(streams)))
    until(
        lambda: any(e.event == "delta" for got in list(seen.values()) for e in list(got)),
        within_s=60, what="text of some answer", every_s=0.005,
    )  # fmt: skip
    os.kill(core, signal.SIGKILL)
    killed = time.monotonic()
    later, their_readers = followed(stack, asked(stack, collection, range(streams, streams + 4)))
    for reader in (*readers, *their_readers):
        reader.join(timeout=max(0.0, killed + 300 - time.monotonic()))
    print(f"all streams ended {time.monotonic() - killed:.1f} s after the kill")
    assert not [r for r in (*readers, *their_readers) if r.is_alive()]
    assert any(e.event == "restart" for got in seen.values() for e in got)
    for query_id, got in {**seen, **later}.items():
        answer = stack.answered(query_id)
        names = [e.event for e in got]
        assert answer["status"] in ("answered", "incomplete"), answer
        assert (names.count("done"), names[-1]) == (1, "done")
        assert names.count("restart") <= 1
        assert names.count("sources") == names.count("restart") + 1
        assert joined_claims(got) == answer["text"]
        ordinals = [c["ordinal"] for c in answer["claims"]]
        assert len(ordinals) == len(set(ordinals))
    until(lambda: idle(stack), within_s=30, what="engine idle")


def leave(stack: Stack, collection: str, clients: int) -> list[str]:
    """Open streams and drop them at different moments: at once, after `sources`, in the midst of text."""

    async def one(client: httpx.AsyncClient, n: int) -> str:
        headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {KEY}"}
        async with client.stream(
            "POST", f"{stack.url}/v1/queries", json=body_of(collection, n), headers=headers
        ) as answer:
            assert answer.status_code == 200, await answer.aread()
            query_id = answer.headers["location"].rsplit("/", 1)[1]
            wanted = (b"", b"event: sources", b"event: delta")[n % 3]
            if wanted:
                try:
                    async with asyncio.timeout(5):
                        async for chunk in answer.aiter_bytes():
                            if wanted in chunk:
                                break
                except TimeoutError:
                    pass  # still queued: it leaves now
            return query_id

    async def run() -> list[str]:
        limits = httpx.Limits(max_connections=clients)
        async with httpx.AsyncClient(limits=limits, timeout=120) as client:
            return await asyncio.gather(*(one(client, n) for n in range(clients)))

    return asyncio.run(run())


def everybody_left(stack: Stack, collection: str, clients: int) -> None:
    until(lambda: idle(stack), within_s=120, what="engine idle before")
    begun = time.monotonic()
    ids = leave(stack, collection, clients)
    print(f"{clients} clients had left after {time.monotonic() - begun:.1f} s")
    ended = {i: stack.answered(i, within_s=120)["status"] for i in ids}
    print(f"all ended {time.monotonic() - begun:.1f} s after the first came: {Counter(ended.values())}")
    assert len(ended) == clients
    assert set(ended.values()) <= TERMINAL - {"failed"}
    assert Counter(ended.values())["cancelled"] > clients / 2
    until(lambda: idle(stack), within_s=15, what="KV blocks free")


def test_clients_that_leave_free_the_kv_cache(stack: Stack, collection: str) -> None:
    everybody_left(stack, collection, 60)


@pytest.mark.soak
def test_five_hundred_clients_that_leave_free_the_kv_cache(stack: Stack, collection: str) -> None:
    everybody_left(stack, collection, 500)
