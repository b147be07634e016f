"""Request bodies are capped while they arrive; `Content-Length` may speed a refusal up, never replace it."""

from __future__ import annotations

import asyncio
import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import Problem
from core.settings import ApiSettings

FRAMING_BYTES = 64 * 1024  # multipart boundaries, part headers and the small fields beside the file
_IDLE_S = 60.0  # a client that sends nothing for this long gives its connection up
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
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and int(declared) > cap:
            await _refusal(cap)(scope, receive, send)
            return
        seen, complete = 0, False

        async def receive_capped() -> Message:
            nonlocal seen, complete
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

        await self.app(scope, receive_capped, send)


def _detail(cap: int) -> str:
    return f"The body is larger than this door takes ({cap} bytes)."


def _refusal(cap: int) -> Problem:
    return Problem(413, "too_large", "Too large", _detail(cap), headers={"Connection": "close"})
