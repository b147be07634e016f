from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis.asyncio

from core import streams
from core.db import Database
from core.errors import DeadlineExceeded, NotFound
from core.models import QueryRow
from core.redis_client import get_redis, make_async_redis
from core.streams import StreamEvent
from core.types import AnswerStatus, CitationMode, Claim, Verdict
from generation import repository, service
from generation.publisher import Publisher
from generation.repository import Outcome
from generation.requests import chunk_tokens
from generation.stream import EventWriter
from tests.generation.rows import Library
from tests.support.waiting import until


@pytest.fixture
def library(sqlite_database: Database) -> Library:
    return Library(sqlite_database)


@pytest.fixture
async def client(library: Library) -> AsyncIterator[redis.asyncio.Redis]:
    client = make_async_redis()
    yield client
    await client.aclose()


async def read(
    client: redis.asyncio.Redis, library: Library, query_id: str, after: str = ""
) -> list[StreamEvent]:
    followed = service.events(client, library.scope, query_id, last_event_id=after)
    async with asyncio.timeout(20):
        return [entry async for entry in followed if entry is not None]


def end(library: Library, query_id: str, status: AnswerStatus = AnswerStatus.ANSWERED) -> None:
    claim = Claim("The tower is 330 metres tall.", (), Verdict.SUPPORTED, "exact_quote")
    with library.db.write() as session:
        repository.store_outcome(session, query_id, Outcome(status, (claim,), CitationMode.EXTRACT), {})


def test_deltas_are_coalesced_and_void_once_their_claim_is_final(library: Library) -> None:
    writer = EventWriter(get_redis(), "qry_1", interval_s=10)
    for word in ("The ", "tower ", "is "):
        writer.delta(0, word)
    writer.delta(1, "Next")
    writer.claim(1, Claim("Next.", (), Verdict.PARTIAL, "r"), {})
    entries = [f["event"] for _, f in get_redis().xrange(streams.stream_key("qry_1"))]
    assert entries == ["delta", "delta", "claim"]


def test_many_streams_share_the_worker_s_entries_and_the_first_text_never_waits(library: Library) -> None:
    alone, crowded = (EventWriter(get_redis(), name, interval_s=0) for name in ("qry_a", "qry_b"))
    crowded.share(1000)  # ten seconds each
    for writer in (alone, crowded):
        for word in ("The ", "tower ", "is "):
            writer.delta(0, word)
    sent = [len(get_redis().xrange(streams.stream_key(name))) for name in ("qry_a", "qry_b")]
    assert sent == [3, 1]
    alone.share(0)
    alone.delta(0, "high")
    assert len(get_redis().xrange(streams.stream_key("qry_a"))) == 4


def test_attempts_that_are_handed_back_tell_the_sources_once(library: Library) -> None:
    query_id, _ = library.ask()
    with library.db.read() as session:
        evidence = repository.load_evidence(session, library.scope, query_id)
    assert evidence

    def names() -> list[str]:
        entries = get_redis().xrange(streams.stream_key(query_id))
        return [fields["event"] for _, fields in entries]  # type: ignore[union-attr]

    for _ in range(3):
        writer = EventWriter(get_redis(), query_id, interval_s=0)
        writer.begin()
        writer.sources(evidence)
    assert names() == ["sources"]
    writer.delta(0, "The ")
    again = EventWriter(get_redis(), query_id, interval_s=0)
    again.begin()
    again.sources(evidence)
    assert names() == ["sources", "delta", "restart", "sources"]
    other = EventWriter(get_redis(), query_id, interval_s=0)
    other.begin()
    other.sources(evidence[:0])
    assert names()[4:] == ["restart", "sources"]


async def test_a_reader_resumes_after_the_last_event_it_saw(
    client: redis.asyncio.Redis, library: Library
) -> None:
    query_id, _ = library.ask()
    writer = EventWriter(get_redis(), query_id, interval_s=0)
    writer.sources(())
    writer.delta(0, "a")
    writer.delta(0, "b")
    writer.done({"status": "answered"})
    everything = await read(client, library, query_id)
    assert [e.event for e in everything] == ["sources", "delta", "delta", "done"]
    for n, seen in enumerate(everything[:-1], 1):
        assert await read(client, library, query_id, seen.id) == everything[n:]


async def test_a_stream_that_is_gone_is_told_from_the_stored_answer(
    client: redis.asyncio.Redis, library: Library
) -> None:
    query_id, _ = library.ask()
    end(library, query_id)
    events = await read(client, library, query_id)
    assert [e.event for e in events] == ["sources", "claim", "done"]
    assert events[1].payload["text"] == "The tower is 330 metres tall."
    assert await read(client, library, query_id, events[0].id) == events[1:]
    late = await read(client, library, query_id, "1700000000000-0")
    assert [e.event for e in late] == ["restart", "sources", "claim", "done"]


async def test_a_malformed_last_event_id_counts_as_none(
    client: redis.asyncio.Redis, library: Library
) -> None:
    query_id, _ = library.ask()
    end(library, query_id)
    assert [e.event for e in await read(client, library, query_id, "\x00'; drop")] == [
        "sources",
        "claim",
        "done",
    ]


async def test_a_worker_that_died_after_its_commit_leaves_no_reader_hanging(
    client: redis.asyncio.Redis, library: Library
) -> None:
    query_id, _ = library.ask()
    EventWriter(get_redis(), query_id).sources(())
    end(library, query_id, AnswerStatus.INCOMPLETE)
    events = await read(client, library, query_id)
    assert [e.event for e in events] == ["sources", "restart", "sources", "claim", "done"]
    assert events[-1].payload["status"] == "incomplete"


async def test_a_failed_query_ends_its_stream_with_the_reason(
    client: redis.asyncio.Redis, library: Library
) -> None:
    query_id, _ = library.ask()
    with library.db.write() as session:
        row = session.get_one(QueryRow, query_id)
        row.status, row.error_code, row.error_detail = "failed", "worker_died", "See its log."
    events = await read(client, library, query_id)
    assert events[-1].payload["error"] == {"code": "worker_died", "detail": "See its log."}


async def test_a_foreign_stream_is_not_found(client: redis.asyncio.Redis, library: Library) -> None:
    query_id, _ = library.ask()
    with pytest.raises(NotFound):
        async for _ in service.events(client, library.scope.narrowed(("col_x",)), query_id):
            pass


async def test_waiting_ends_at_the_deadline_with_the_id(
    client: redis.asyncio.Redis, library: Library
) -> None:
    query_id, _ = library.ask()
    with pytest.raises(DeadlineExceeded) as caught:
        await service.wait_answer(client, library.scope, query_id, deadline_s=0.2)
    assert caught.value.ids == {"query_id": query_id}
    assert library.row(query_id).status == "queued"


async def test_a_closed_stream_cancels_its_query_after_the_grace(
    client: redis.asyncio.Redis, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.settings import get_settings

    monkeypatch.setenv("GEO_API__DISCONNECT_GRACE_S", "0.3")
    get_settings.cache_clear()
    query_id, _ = library.ask()
    EventWriter(get_redis(), query_id).sources(())
    first, second = (service.events(client, library.scope, query_id) for _ in range(2))
    await anext(first)
    await anext(second)
    await first.aclose()
    await asyncio.sleep(0.6)
    assert library.row(query_id).status == "queued"  # somebody still watches
    await second.aclose()
    async with asyncio.timeout(5):
        while library.row(query_id).status != "cancelled":
            await asyncio.sleep(0.05)
    assert (await read(client, library, query_id))[-1].payload["status"] == "cancelled"


async def test_no_database_session_is_held_while_a_stream_is_quiet(
    client: redis.asyncio.Redis, library: Library
) -> None:
    query_id, _ = library.ask()
    EventWriter(get_redis(), query_id).sources(())
    followed = [
        service.events(client, library.scope, query_id, cancel_when_unwatched=False) for _ in range(10)
    ]
    for stream in followed:
        await anext(stream)
    assert library.db.engine.pool.checkedout() == 0  # type: ignore[attr-defined] # QueuePool
    for stream in followed:
        await stream.aclose()


def written(query_id: str) -> list[tuple[str, Any]]:
    """Events of a stream, each with its payload's text."""
    entries = get_redis().xrange(streams.stream_key(query_id))
    return [(f["event"], json.loads(f["data"]).get("text")) for _, f in entries]  # type: ignore[union-attr]


def test_what_answers_say_in_one_step_goes_out_together(library: Library) -> None:
    publisher = Publisher(get_redis(), gather_s=0.05)
    writers = [EventWriter(get_redis(), f"qry_{n}", interval_s=0.1, publisher=publisher) for n in range(4)]
    for writer in writers:
        writer.delta(0, "The ")  # a first text waits for nobody
    assert [written(f"qry_{n}") for n in range(4)] == [[("delta", "The ")]] * 4
    time.sleep(0.15)
    before = exec_calls()
    for writer in writers:
        writer.delta(0, "tower ")
    until(lambda: all(written(f"qry_{n}")[-1][1] == "tower " for n in range(4)))
    assert exec_calls() - before == 1


@pytest.mark.parametrize(
    ("chunk_s", "step_s", "tokens"),
    [(0.0, 0.1, 1), (0.05, 0.0, 1), (0.05, 0.03, 2), (0.32, 0.11, 3), (0.32, 0.4, 1), (60.0, 0.01, 16)],
)
def test_chunks_come_about_as_often_as_text_is_told(chunk_s: float, step_s: float, tokens: int) -> None:
    assert chunk_tokens(chunk_s, step_s) == tokens


def test_text_of_an_attempt_that_ended_is_not_told_later(library: Library) -> None:
    publisher = Publisher(get_redis(), gather_s=0.02)
    dying, other = (
        EventWriter(get_redis(), name, interval_s=0.0, publisher=publisher) for name in ("qry_d", "qry_o")
    )
    for writer in (dying, other):
        writer.delta(0, "The ")
    dying.delta(0, "lost")
    dying.close()
    other.delta(0, "kept")
    until(lambda: written("qry_o")[-1] == ("delta", "kept"))
    assert written("qry_d") == [("delta", "The ")]


def test_answers_that_share_a_publisher_keep_the_order_of_their_own_events(library: Library) -> None:
    publisher = Publisher(get_redis(), gather_s=0.001)

    def tell(n: int) -> None:
        writer = EventWriter(get_redis(), f"qry_{n}", interval_s=0.002, publisher=publisher)
        for claim in range(20):
            for word in range(10):
                writer.delta(claim, f"{word} ")
            writer.claim(claim, Claim(f"{n}.{claim}", (), Verdict.SUPPORTED, "r"), {})
        writer.done({"text": "end"})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(tell, range(8)))
    for n in range(8):
        entries = get_redis().xrange(streams.stream_key(f"qry_{n}"))
        told = [(f["event"], json.loads(f["data"])) for _, f in entries]  # type: ignore[union-attr]
        assert [p["text"] for name, p in told if name == "claim"] == [f"{n}.{c}" for c in range(20)]
        assert told[-1][0] == "done"
        ended = -1  # no text of a claim stands behind the claim
        for name, payload in told[:-1]:
            if name == "claim":
                ended = payload["ordinal"]
            else:
                assert payload["claim"] == ended + 1


def exec_calls() -> int:
    """Transactions that Redis has run."""
    return int(get_redis().info("commandstats").get("cmdstat_exec", {}).get("calls", 0))  # type: ignore[union-attr]
