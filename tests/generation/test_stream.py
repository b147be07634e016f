from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

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
from generation.repository import Outcome
from generation.stream import EventWriter
from tests.generation.rows import Library


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
