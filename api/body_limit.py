"""Request bodies are capped while they arrive; `Content-Length` may speed a refusal up, never replace it."""

from __future__ import annotations

import asyncio
import contextlib
import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import Problem
from core.settings import ApiSettings

FRAMING_BYTES = 64 * 1024  # multipart boundaries, part headers and the small fields beside the file
_IDLE_S = 60.0  # a client that sends nothing for this long gives its connection up
_LINGER_S = 2.0  # bytes that still come after our answer are dropped for so long
_UPLOADS = re.compile(r"/v1/(documents(/[^/]+)?|entities/import)")


class BodyLimit:
    """Refuse a body with 413 as soon as it passes the cap of its door."""

    def __init__(self, app: ASGIApp, *, settings: ApiSettings) -> None:
        self.app = app
        self.settings = settings

    def cap(self, scope: Scope) -> int:
        """Bytes that a body may have at this door."""
        if scope["method"] in ("POST", "PUT") and _UPLOADS.fullmatch(scope["path"]):
            return self.settings.max_upload_bytes + FRAMING_BYTES
        return self.settings.max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        cap = self.cap(scope)
        headers = dict(scope["headers"])
        declared = headers.get(b"content-length", b"")
        too_long = declared.isdigit() and int(declared) > cap
        has_body = declared not in (b"", b"0") or b"transfer-encoding" in headers
        asks_first = b"expect" in headers
        seen, complete = 0, not has_body

        async def receive_capped() -> Message:
            nonlocal seen, complete, asks_first
            asks_first = False
            if complete:
                return await receive()  # only a disconnect can follow, and it may take as long as it likes
            try:
                message = await asyncio.wait_for(receive(), _IDLE_S)
            except TimeoutError:
                raise HTTPException(408, f"No byte of the body came for {_IDLE_S:.0f} s.") from None
            seen += len(message.get("body", b""))
            if seen > cap:
                raise HTTPException(413, _detail(cap), headers={"Connection": "close"})
            complete = not message.get("more_body", False)
            return message

        async def send_and_linger(message: Message) -> None:
            """Let a client that is still sending read our answer before the connection goes.

            Closing a socket with unread bytes resets it, and the answer is lost on the way. A client that
            waits for `100 Continue` is not sending.
            """
            last = message["type"] == "http.response.body" and not message.get("more_body", False)
            if not last or complete or asks_first:
                await send(message)
                return
            await send({**message, "more_body": True})
            await _drain(receive)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        if too_long:
            await _refusal(cap)(scope, receive, send_and_linger)
        else:
            await self.app(scope, receive_capped, send_and_linger)


async def _drain(receive: Receive) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return


def _detail(cap: int) -> str:
    return f"The body is larger than this door takes ({cap} bytes)."


def _refusal(cap: int) -> Problem:
    return Problem(413, "too_large", "Too large", _detail(cap), headers={"Connection": "close"})
