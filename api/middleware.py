"""The outermost layer: request id, access log, metrics, security headers, and the last word on errors.

Pure ASGI, because a wrapped response would buffer streams and lose context variables.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import Problem, problem_of
from core.ids import new_id
from core.logs import request_id
from core.metrics import REQUEST_SECONDS, REQUESTS

log = logging.getLogger("geo.access")

_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_QUIET = ("/healthz", "/readyz", "/metrics")
CONSOLE_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
DOOR_CSP = "default-src 'none'; frame-ancestors 'none'"


class RequestContext:
    """Give the request an id, time it, log it, and turn whatever escapes into a problem document."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        current = given if _SANE_ID.fullmatch(given) else new_id("req")
        token = request_id.set(current)
        start, status = time.perf_counter(), 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _mark(scope, MutableHeaders(scope=message), current)
            await send(message)

        try:
            if _has_nul(scope):
                refusal = Problem(400, "bad_request", "Bad Request", "The address holds a NUL character.")
                await refusal(scope, receive, send_marked)
            else:
                await self.app(scope, receive, send_marked)
        except Exception as error:
            if status:
                log.exception("response_broke_off")
                raise
            await problem_of(error)(scope, receive, send_marked)
        finally:
            _account(scope, status, time.perf_counter() - start)
            request_id.reset(token)


def _has_nul(scope: Scope) -> bool:
    return "\x00" in scope["path"] or b"%00" in scope.get("query_string", b"")


def _mark(scope: Scope, headers: MutableHeaders, current: str) -> None:
    headers["X-Request-ID"] = current
    is_door = scope["path"].startswith("/v1/") or scope["path"] in (*_QUIET, "/openapi.json")
    for name, value in _security_headers(is_door):
        headers.setdefault(name, value)


def _security_headers(is_door: bool) -> Iterable[tuple[str, str]]:
    yield "X-Content-Type-Options", "nosniff"
    yield "Referrer-Policy", "no-referrer"
    yield "Cross-Origin-Resource-Policy", "same-origin"
    yield "Content-Security-Policy", DOOR_CSP if is_door else CONSOLE_CSP
    yield "Cache-Control", "no-store" if is_door else "no-cache"


def _account(scope: Scope, status: int, seconds: float) -> None:
    route = scope.get("route")
    path = getattr(route, "path", None) or "(unmatched)"  # the template: ids would make a label per document
    REQUESTS.labels(scope["method"], path, str(status)).inc()
    REQUEST_SECONDS.labels(scope["method"], path).observe(seconds)
    log.log(
        logging.DEBUG if scope["path"] in _QUIET else logging.INFO,
        "request",
        extra={
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "ms": round(seconds * 1000, 1),
            "principal": scope.get("state", {}).get("principal", "-"),
        },
    )
