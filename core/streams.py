"""The append-only event stream of a query (decision 11), on Redis.

One Redis stream per query with a time to live. Entry ids are Redis stream ids and serve as SSE
`Last-Event-ID`. The last entry is always `done`. The stored answer is the truth; the stream is a fast
copy that may vanish.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

import redis
import redis.asyncio
from redis.exceptions import RedisError

from core.settings import get_settings
from core.stream_reader import reader_of

CANCEL_CHANNEL = "geo:cancel"
_MOST_ENTRIES = 20_000  # roughly; older ones go first


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One entry. `event` is `sources`, `delta`, `claim`, `search` or `done`; `text` its payload as JSON."""

    id: str
    event: str
    text: str

    @property
    def payload(self) -> dict[str, Any]:
        """The payload, read anew at each look: most entries are passed on as they stand."""
        return json.loads(self.text)


def as_text(payload: Mapping[str, Any]) -> str:
    """The payload as it stands on the stream."""
    return json.dumps(payload, ensure_ascii=False)


def stream_key(query_id: str) -> str:
    """Redis key of a query's stream."""
    return f"geo:query:{query_id}:events"


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to append. `renew`: the stream's time to live begins anew."""

    query_id: str
    event: str
    text: str
    renew: bool = True


def publish(client: redis.Redis, query_id: str, event: str, payload: dict[str, Any]) -> None:
    """Append one event, and renew the stream's time to live."""
    for failed in publish_all(client, (NewEntry(query_id, event, as_text(payload)),)).values():
        raise failed


def publish_all(client: redis.Redis, entries: Sequence[NewEntry]) -> dict[int, RedisError]:
    """Append entries of any streams in one step, so that who reads several of them is woken once.

    Returns:
        By place in `entries`, why Redis refused it; the others are there.

    Raises:
        RedisError: Redis is away; it is not known what was appended.
    """
    ttl_s = get_settings().redis.stream_ttl_s
    pipe = client.pipeline(transaction=len(entries) > 1)
    places: list[int] = []  # of each command's entry
    for place, entry in enumerate(entries):
        key, fields = stream_key(entry.query_id), {"event": entry.event, "data": entry.text}
        pipe.xadd(key, fields, maxlen=_MOST_ENTRIES)  # pyright: ignore[reportArgumentType] # invariant dict
        places.append(place)
        if entry.renew:
            pipe.expire(key, ttl_s)
            places.append(place)
    answers = pipe.execute(raise_on_error=False)
    told = zip(places, answers, strict=True)
    return {place: answer for place, answer in told if isinstance(answer, RedisError)}


def last(client: redis.Redis, query_id: str) -> StreamEvent | None:
    """The newest entry; None where the stream is empty or gone."""
    newest = cast("list[tuple[str, dict[str, str]]]", client.xrevrange(stream_key(query_id), count=1))
    for entry_id, fields in newest:
        return StreamEvent(entry_id, fields["event"], fields["data"])
    return None


def restart(client: redis.Redis, query_id: str) -> None:
    """Tell readers that a new attempt begins: provisional text sent so far is void."""
    publish(client, query_id, "restart", {})


def drop(client: redis.Redis, query_id: str) -> None:
    """Remove a query's stream (its answer was erased)."""
    client.delete(stream_key(query_id))


def announce_cancel(client: redis.Redis, query_id: str) -> None:
    """Tell the workers at once; the row's `cancel_requested` is the truth they check as well."""
    client.publish(CANCEL_CHANNEL, query_id)


async def follow(
    client: redis.asyncio.Redis, query_id: str, *, after: str = "0-0"
) -> AsyncGenerator[StreamEvent | None]:
    """Yield events after `after`, in order, until `done`.

    Yields None about every two quiet seconds, so that the caller can look at the stored state, send a
    keep-alive or notice a disconnect.

    Raises:
        RedisError: the connection is lost.
    """
    key = stream_key(query_id)
    async with aclosing(reader_of(client, key).follow(key, after=after)) as entries:
        async for entry in entries:
            if entry is None:
                yield None
                continue
            entry_id, fields = entry
            yield StreamEvent(entry_id, fields["event"], fields["data"])
            if fields["event"] == "done":
                return
