"""Many followers share one read, and none of them notices it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import redis.asyncio
from redis.exceptions import RedisError

from core import stream_reader, streams
from core.redis_client import get_redis, make_async_redis
from core.settings import Settings
from core.streams import NewEntry
from tests.support.servers import RedisServer


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[redis.asyncio.Redis]:
    client = make_async_redis()
    yield client
    await client.aclose()


async def read(client: redis.asyncio.Redis, query_id: str, after: str = "0-0") -> list[str]:
    """What is told until `done`."""
    async with asyncio.timeout(20), aclosing(streams.follow(client, query_id, after=after)) as entries:
        return [entry.text async for entry in entries if entry is not None]


def tell(*query_ids: str, event: str = "delta", text: str = "{}") -> None:
    streams.publish_all(get_redis(), [NewEntry(name, event, text) for name in query_ids])


def reads() -> int:
    return get_redis().info("commandstats")["cmdstat_xread"]["calls"]  # type: ignore[index]


async def test_each_follower_gets_its_own_entries_in_order(client: redis.asyncio.Redis) -> None:
    names = [f"qry_{n}" for n in range(150)]  # more than one connection reads
    following = [asyncio.create_task(read(client, name)) for name in names]
    for number in range(5):
        await asyncio.sleep(0.01)
        streams.publish_all(get_redis(), [NewEntry(n, "delta", f"{n}.{number}") for n in names])
    tell(*names, event="done", text="end")
    for name, told in zip(names, await asyncio.gather(*following), strict=True):
        assert told == [*(f"{name}.{n}" for n in range(5)), "end"]


async def test_entries_written_together_cost_one_read(client: redis.asyncio.Redis) -> None:
    names = [f"qry_{n}" for n in range(16)]
    following = [asyncio.create_task(read(client, name)) for name in names]
    await asyncio.sleep(0.2)
    before = reads()
    for _ in range(10):
        tell(*names)
        await asyncio.sleep(0.02)
    assert reads() - before <= 20
    tell(*names, event="done")
    assert [len(told) for told in await asyncio.gather(*following)] == [11] * 16


async def test_who_comes_while_others_are_read_hears_at_once(client: redis.asyncio.Redis) -> None:
    tell("qry_old")
    async with aclosing(streams.follow(client, "qry_old")) as first:
        assert await anext(first)
        waits = asyncio.create_task(anext(first))  # nothing more comes there
        await asyncio.sleep(0.1)
        tell("qry_new", event="done")
        async with asyncio.timeout(0.5):  # a read that does not know it lasts a second
            assert await read(client, "qry_new") == ["{}"]
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)


async def test_followers_of_one_stream_begin_where_each_of_them_was(client: redis.asyncio.Redis) -> None:
    for number in range(6):
        tell("qry", text=str(number))
    ids = [str(entry_id) for entry_id, _ in get_redis().xrange(streams.stream_key("qry"))]  # type: ignore[union-attr]
    following = [asyncio.create_task(read(client, "qry", after)) for after in ("0-0", *ids)]
    await asyncio.sleep(0.1)
    tell("qry", event="done", text="end")
    for number, told in enumerate(await asyncio.gather(*following)):
        assert told == [*map(str, range(number, 6)), "end"]


async def test_a_client_that_takes_nothing_holds_a_bounded_part_and_misses_nothing(
    client: redis.asyncio.Redis,
) -> None:
    most = 3 * stream_reader._HELD
    async with aclosing(streams.follow(client, "qry_slow")) as slow:
        tell("qry_slow", text="0")
        told = [await anext(slow)]
        streams.publish_all(get_redis(), [NewEntry("qry_slow", "delta", str(n)) for n in range(1, most)])
        tell("qry_slow", event="done", text="end")
        assert len(await read(client, "qry_slow")) == most + 1  # another one is not held up by it
        reader = stream_reader._readers[client][0]
        held = [len(f.held) for f in reader._all()]
        assert held
        assert max(held) < stream_reader._HELD + stream_reader._AT_ONCE
        async with asyncio.timeout(20):
            told += [entry async for entry in slow]
    assert [entry.text for entry in told if entry] == [*map(str, range(most)), "end"]


async def test_silence_is_told_about_every_two_seconds(client: redis.asyncio.Redis) -> None:
    async with aclosing(streams.follow(client, "qry_quiet")) as entries, asyncio.timeout(10):
        assert await anext(entries) is None


async def test_a_lost_connection_is_told_to_every_follower(
    own_redis: RedisServer, client: redis.asyncio.Redis
) -> None:
    following = [asyncio.create_task(read(client, f"qry_{n}")) for n in range(3)]
    await asyncio.sleep(0.1)
    own_redis.stop()
    for ended in await asyncio.gather(*following, return_exceptions=True):
        assert isinstance(ended, RedisError)
    assert client not in stream_reader._readers  # nothing is kept of it


async def test_nothing_is_read_once_nobody_follows(client: redis.asyncio.Redis) -> None:
    tell("qry", event="done")
    assert await read(client, "qry") == ["{}"]
    async with asyncio.timeout(10):
        while client in stream_reader._readers:
            await asyncio.sleep(0.05)


async def test_an_entry_that_redis_refuses_does_not_keep_the_others_out(client: redis.asyncio.Redis) -> None:
    get_redis().set(streams.stream_key("qry_bad"), "no stream")
    refused = streams.publish_all(
        get_redis(), [NewEntry(n, "done", "{}") for n in ("qry_a", "qry_bad", "qry_b")]
    )
    assert list(refused) == [1]
    assert [await read(client, name) for name in ("qry_a", "qry_b")] == [["{}"], ["{}"]]
