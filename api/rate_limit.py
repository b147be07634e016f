"""A token bucket per key, and one per address for callers without a valid key.

The principal comes first: users behind one proxy share an address but not a bucket. An address is
taken from `X-Forwarded-For` only when the peer is a configured proxy, so a made-up header buys nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from dataclasses import dataclass

import redis.asyncio
import redis.exceptions
from starlette.requests import HTTPConnection

from core.errors import RateLimited
from core.metrics import RATE_LIMIT_SKIPPED
from core.settings import ApiSettings

log = logging.getLogger(__name__)

# KEYS[1] bucket; ARGV: tokens per second, capacity. Returns milliseconds to wait, 0 when a token was taken.
# Redis's own clock is used, so that many API processes share one bucket truly.
_TAKE = """
local rate, capacity = tonumber(ARGV[1]), tonumber(ARGV[2])
local t = redis.call('TIME')
local now = t[1] + t[2] / 1000000
local b = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(b[1]) or capacity
local at = tonumber(b[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - at) * rate)
local wait = 0
if tokens >= 1 then tokens = tokens - 1 else wait = math.ceil((1 - tokens) / rate * 1000) end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', tostring(now))
redis.call('PEXPIRE', KEYS[1], math.ceil(capacity / rate * 1000) + 1000)
return wait
"""


_PATIENCE_S = 0.5  # a Redis that hangs must not hang every request


@dataclass(frozen=True, slots=True)
class Bucket:
    """Allowance of one kind of caller."""

    per_minute: int
    burst: int


class RateLimiter:
    """Takes tokens; when Redis is away everybody passes and a metric says so."""

    def __init__(self, client: redis.asyncio.Redis, settings: ApiSettings) -> None:
        self._take = client.register_script(_TAKE)
        self._settings = settings
        self._proxies = [ipaddress.ip_network(p, strict=False) for p in settings.trusted_proxies]

    async def take_for_key(self, key_id: str) -> None:
        """Count one request of a known key. Raises `RateLimited`."""
        await self._count(f"key:{key_id}", Bucket(self._settings.rate_per_minute, self._settings.rate_burst))

    async def take_for_address(self, connection: HTTPConnection) -> None:
        """Count one request without a valid key. Raises `RateLimited`."""
        allowed = self._settings.rate_anonymous_per_minute
        await self._count(f"address:{self.address(connection)}", Bucket(allowed, allowed))

    def address(self, connection: HTTPConnection) -> str:
        """The caller's address: the nearest hop that is not one of our proxies.

        IPv6 callers are counted by /64, the smallest block a customer gets.
        """
        hops = [connection.client.host if connection.client else ""]
        forwarded = ",".join(connection.headers.getlist("x-forwarded-for"))
        hops += [h.strip() for h in reversed(forwarded.split(",")) if h.strip()]
        nearest = hops[0]
        for hop in hops:
            if (ip := _parse(hop)) is None:
                break
            nearest = hop
            if not any(ip in network for network in self._proxies):
                break
        ip = _parse(nearest)
        if isinstance(ip, ipaddress.IPv6Address):
            return str(ipaddress.ip_network(f"{ip}/64", strict=False).network_address)
        return nearest or "local"

    async def _count(self, name: str, bucket: Bucket) -> None:
        take = self._take(keys=[f"geo:rate:{name}"], args=[bucket.per_minute / 60, bucket.burst])
        try:
            wait_ms = int(await asyncio.wait_for(take, _PATIENCE_S))
        except (redis.exceptions.RedisError, OSError, TimeoutError) as error:
            RATE_LIMIT_SKIPPED.inc()
            log.warning("rate_limit_skipped", extra={"error": repr(error)})
            return
        if wait_ms > 0:
            raise RateLimited(
                f"More than {bucket.per_minute} requests a minute; wait {wait_ms / 1000:.1f} s.",
                retry_after_s=wait_ms / 1000,
            )


def _parse(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip
