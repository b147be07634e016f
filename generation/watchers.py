"""Who reads a query's stream now, so that one that nobody reads any more is cancelled."""

from __future__ import annotations

import time

import redis
import redis.asyncio

_WATCHER_TTL_S = 15.0


def _watchers_key(query_id: str) -> str:
    return f"geo:query:{query_id}:watchers"


async def watch(client: redis.asyncio.Redis, query_id: str, watcher: str) -> None:
    """Say that `watcher` reads this query's stream now; to be renewed every few seconds."""
    key = _watchers_key(query_id)
    async with client.pipeline(transaction=False) as pipe:
        pipe.zadd(key, {watcher: time.time()})
        pipe.expire(key, 3600)
        await pipe.execute()


async def unwatch(client: redis.asyncio.Redis, query_id: str, watcher: str) -> None:
    """Say that `watcher` has gone."""
    await client.zrem(_watchers_key(query_id), watcher)


def watched(client: redis.Redis, query_id: str) -> bool:
    """Whether anybody read the query's stream within the last seconds."""
    return bool(client.zcount(_watchers_key(query_id), time.time() - _WATCHER_TTL_S, "+inf"))
