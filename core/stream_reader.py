"""One blocking read for all the event streams that a process follows.

A read per stream wakes the process once for each entry of each stream, and keeps a connection for each.
Here one connection reads up to `_STREAMS` of them: entries that a worker wrote together come in one answer.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import WeakKeyDictionary

import redis.asyncio
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

QUIET_S = 2.0  # a follower that hears nothing for so long is told so
_BLOCK_MS = 1000
_LOOK_S = 0.5  # between two looks for quiet followers
_STREAMS = 64  # of one connection: Redis looks at each of them at each read
_AT_ONCE = 100  # entries of one stream in one answer
_HELD = 400  # entries that wait for a slow client; more stay in Redis until it has taken these
_WAKE_TTL_S = 3600

Entry = tuple[str, Mapping[str, str]]
_Batches = list[tuple[str, list[tuple[str, dict[str, str]]]]]  # as redis-py answers XREAD


@dataclass(slots=True, eq=False)
class _Follower:
    """Who follows a stream: what it was given and has not taken yet. `read_to` is the last id given."""

    key: str
    read_to: str
    heard_at: float
    held: deque[Entry | None] = field(default_factory=deque[Entry | None])
    failed: BaseException | None = None
    more: asyncio.Event = field(default_factory=asyncio.Event)

    def give(self, entries: list[tuple[str, dict[str, str]]], now: float) -> None:
        self.held.extend(entries)
        self.read_to, self.heard_at = entries[-1][0], now
        self.more.set()


class StreamReader:
    """Reads up to `_STREAMS` streams of one Redis, for the followers of one event loop, while there are any.

    Args:
        client: asyncio Redis of the running loop; one of its connections is kept meanwhile.
    """

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._followers: dict[str, list[_Follower]] = {}
        self._wake_key, self._woken = f"geo:reader:{uuid.uuid4().hex}", "0-0"
        self._renew_at = 0.0  # when the time to live of that key is renewed next
        self._blocked = False  # in a read that does not know the newest followers
        self._look_at = 0.0
        self._rousing: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None

    def takes(self, key: str) -> bool:
        """Whether one more follower of this stream finds room here."""
        open_ = self._reading is None or not self._reading.done()
        here = open_ and self._loop is asyncio.get_running_loop()
        return here and (key in self._followers or len(self._followers) < _STREAMS)

    async def follow(self, key: str, *, after: str) -> AsyncGenerator[Entry | None]:
        """Yield entries behind id `after`, in order and without end, and None about every two quiet seconds.

        Raises:
            RedisError: the connection is lost; entries not yielded are still in the stream.
        """
        follower = _Follower(key, after, self._loop.time())
        self._followers.setdefault(key, []).append(follower)
        self._rouse()
        try:
            while True:
                while not follower.held:
                    if follower.failed is not None:
                        raise follower.failed
                    follower.more.clear()
                    await follower.more.wait()
                full = len(follower.held) >= _HELD
                yield follower.held.popleft()
                if full:
                    self._rouse()
        finally:
            self._leave(follower)

    def _leave(self, follower: _Follower) -> None:
        others = [f for f in self._followers.get(follower.key, ()) if f is not follower]
        if others:
            self._followers[follower.key] = others
        else:
            self._followers.pop(follower.key, None)

    def _rouse(self) -> None:
        """Begin to read, or end the read that does not know this follower."""
        if self._reading is None:
            self._reading = self._loop.create_task(self._read())
        elif self._blocked and (self._rousing is None or self._rousing.done()):
            self._rousing = self._loop.create_task(self._end_read())

    async def _end_read(self) -> None:
        try:
            # An entry, and no `CLIENT UNBLOCK`: it stays, so it also ends a read that is still on its way.
            async with self._client.pipeline(transaction=False) as pipe:
                pipe.xadd(self._wake_key, {"": ""}, maxlen=1, approximate=False)
                if (now := self._loop.time()) >= self._renew_at:
                    pipe.expire(self._wake_key, _WAKE_TTL_S)
                    self._renew_at = now + _WAKE_TTL_S / 2
                await pipe.execute()
        except RedisError:
            log.debug("stream_reader_not_woken", exc_info=True)  # it looks by itself within a second

    async def _read(self) -> None:
        try:
            while self._followers:
                await self._round()
        except RedisError as error:
            self._fail(error)
        finally:
            self._fail(ConnectionLost("the streams are not read any more"))
            _forget(self._client, self)

    def _fail(self, error: RedisError) -> None:
        for follower in self._all():
            follower.failed = error
            follower.more.set()
        self._followers.clear()

    async def _round(self) -> None:
        positions = {
            key: min((f.read_to for f in wanting), key=_as_numbers)
            for key, of_key in self._followers.items()
            if (wanting := [f for f in of_key if len(f.held) < _HELD])
        }
        self._blocked = True
        try:
            wanted: Any = {**positions, self._wake_key: self._woken}
            got = cast(_Batches, await self._client.xread(wanted, count=_AT_ONCE, block=_BLOCK_MS))
        finally:
            self._blocked = False
        now = self._loop.time()
        for key, entries in got or ():
            if key == self._wake_key:
                self._woken = entries[-1][0]
            else:
                self._give(key, positions[key], entries, now)
        if now >= self._look_at:
            self._look_at = now + _LOOK_S
            self._tell_quiet(now)

    def _give(self, key: str, after: str, entries: list[tuple[str, dict[str, str]]], now: float) -> None:
        for follower in self._followers.get(key, ()):
            if len(follower.held) >= _HELD:
                continue
            if follower.read_to != after:
                seen = _as_numbers(follower.read_to)
                if _as_numbers(after) > seen:  # it came during the read, and begins further back
                    continue
                unseen = [entry for entry in entries if _as_numbers(entry[0]) > seen]
            else:
                unseen = entries
            if unseen:
                follower.give(unseen, now)

    def _tell_quiet(self, now: float) -> None:
        for follower in self._all():
            if now - follower.heard_at >= QUIET_S and not follower.held:
                follower.held.append(None)
                follower.heard_at = now
                follower.more.set()

    def _all(self) -> list[_Follower]:
        return [f for of_key in self._followers.values() for f in of_key]


def _as_numbers(entry_id: str) -> tuple[int, int]:
    time_ms, _, sequence = entry_id.partition("-")
    return int(time_ms), int(sequence or 0)


_readers: WeakKeyDictionary[redis.asyncio.Redis, list[StreamReader]] = WeakKeyDictionary()


def reader_of(client: redis.asyncio.Redis, key: str) -> StreamReader:
    """The reader of this client that has room for the stream; a new one where all are full."""
    readers = _readers.setdefault(client, [])
    for reader in readers:
        if reader.takes(key):
            return reader
    readers.append(StreamReader(client))
    return readers[-1]


def _forget(client: redis.asyncio.Redis, reader: StreamReader) -> None:
    """A reader keeps its client alive, so one that has ended is not kept."""
    left = [other for other in _readers.get(client, ()) if other is not reader]
    if left:
        _readers[client] = left
    else:
        _readers.pop(client, None)
