"""Server-sent events on the wire."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import anyio
import orjson
from fastapi.sse import KEEPALIVE_COMMENT
from starlette.responses import StreamingResponse
from starlette.types import Send

KEEP_ALIVE = KEEPALIVE_COMMENT
_OTHER_BREAKS = tuple((c.encode(), b"\\u%04x" % ord(c)) for c in "\x85\u2028\u2029")


class EventStream(StreamingResponse):
    """A `text/event-stream` response that no proxy should buffer or cache.

    However it ends, its generator is closed at once and not when it is collected: closing is what tells
    that nobody listens any more. `source` is what it reads from, begun already: a client that leaves before
    the first byte is sent never begins the generator, and closing one that has not begun runs nothing of it.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncIterator[bytes],
        headers: Mapping[str, str] | None = None,
        *,
        source: AsyncGenerator[Any] | None = None,
    ) -> None:
        self._source = source
        super().__init__(
            events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", **(headers or {})}
        )

    async def stream_response(self, send: Send) -> None:
        """Send until the end, the client's departure or an error."""
        try:
            await super().stream_response(send)
        finally:
            close = getattr(self.body_iterator, "aclose", None)
            if close is not None:
                with anyio.CancelScope(shield=True):  # we may be here because the request was cancelled
                    await close()
                    if self._source is not None:
                        await self._source.aclose()


def encode(event: str | None, payload: Any, event_id: str | None = None) -> bytes:
    """One event with this payload."""
    return encode_text(event, orjson.dumps(payload, default=str), event_id)


def encode_text(event: str | None, text: bytes, event_id: str | None = None) -> bytes:
    """One event whose payload is JSON already.

    JSON holds no raw line feed or carriage return, so it is one `data:` line. Other line breaks of Unicode
    end no line of an event stream, but many clients split at them: they are escaped.
    """
    for raw, escaped in _OTHER_BREAKS:
        text = text.replace(raw, escaped)
    named = b"event: " + event.encode() + b"\n" if event is not None else b""
    numbered = b"id: " + event_id.encode() + b"\n" if event_id is not None else b""
    return named + b"data: " + text + b"\n" + numbered + b"\n"
