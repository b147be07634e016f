"""The append-only event stream of a query (decision 11), on Redis.

One Redis stream per query with a time to live. Entry ids are Redis stream ids and serve as SSE
`Last-Event-ID`. The last entry is always `done`. The stored answer is the truth; the stream is a fast
copy that may vanish.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import redis
import redis.asyncio

from core.settings import get_settings

CANCEL_CHANNEL = "geo:cancel"
_BLOCK_MS = 2000
_MOST_ENTRIES = 20_000  # roughly; older ones go first
_Batches = list[tuple[str, list[tuple[str, dict[str, str]]]]]  # as redis-py answers XREAD on RESP2


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


def publish(
    client: redis.Redis, query_id: str, event: str, payload: dict[str, Any], *, renew: bool = True
) -> None:
    """Append one event, and renew the stream's time to live unless that was done a moment ago."""
    key, fields = stream_key(query_id), {"event": event, "data": as_text(payload)}
    if not renew:
        client.xadd(key, fields, maxlen=_MOST_ENTRIES)  # pyright: ignore[reportArgumentType] # invariant dict
        return
    pipe = client.pipeline(transaction=False)
    pipe.xadd(key, fields, maxlen=_MOST_ENTRIES)  # pyright: ignore[reportArgumentType] # invariant dict
    pipe.expire(key, get_settings().redis.stream_ttl_s)
    pipe.execute()


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
) -> AsyncIterator[StreamEvent | None]:
    """Yield events after `after`, in order, until `done`.

    Yields None after every quiet `_BLOCK_MS`, so that the caller can look at the stored state, send a
    keep-alive or notice a disconnect.
    """
    key = stream_key(query_id)
    while True:
        batches = cast(_Batches, await client.xread({key: after}, count=200, block=_BLOCK_MS))
        if not batches:
            yield None
            continue
        for entry_id, fields in batches[0][1]:
            after = entry_id
            yield StreamEvent(entry_id, fields["event"], fields["data"])
            if fields["event"] == "done":
                return
