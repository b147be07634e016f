"""Redis connections: one pool per process; synchronous for workers, asyncio for the HTTP process."""

from __future__ import annotations

from functools import lru_cache

import redis
import redis.asyncio

from core.settings import get_settings

# `driver_info=None` below: otherwise each new connection reads the metadata of the installed package (2 ms)
# and tells the server its version, which Redis 6 does not take.
_CONNECTIONS = 9_000  # below the 10,000 clients that a Redis server takes by default


@lru_cache(maxsize=1)
def get_redis() -> redis.Redis:
    """Synchronous client; `socket_timeout` is off because blocking reads outlast redis-py's 5 s default."""
    return redis.Redis.from_url(
        get_settings().redis_url, decode_responses=True, socket_timeout=None, driver_info=None
    )


def make_async_redis() -> redis.asyncio.Redis:
    """A new asyncio client, bound to the running loop by its first use.

    Each request at work takes a connection for moments, each 64 open event streams one for good; redis-py's
    default of 100 would fail the others.
    """
    return redis.asyncio.Redis.from_url(
        get_settings().redis_url,
        decode_responses=True,
        socket_timeout=None,
        max_connections=_CONNECTIONS,
        driver_info=None,
    )
