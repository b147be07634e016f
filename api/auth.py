"""Every path below `/v1/` is closed until a valid key opens it, whether a door stands there or not."""

from __future__ import annotations

import logging
from datetime import datetime

from anyio.to_thread import run_sync
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from api import keys
from api.errors import problem_of
from api.rate_limit import RateLimiter
from core.db import Database, utcnow
from core.errors import GeoError, Unauthenticated
from core.settings import ApiSettings
from core.types import Scope as KeyScope

log = logging.getLogger(__name__)


class Authentication:
    """Turn `Authorization: Bearer …` into a `Scope` before a body is read, and count the request.

    A valid key is counted by its id alone. A request without one is counted by its address, so guessing
    keys is slow while a neighbour behind the same proxy is not affected.
    """

    def __init__(self, app: ASGIApp, *, settings: ApiSettings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http" or not self._is_closed(scope["path"]):
            await self.app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        limiter: RateLimiter = scope["app"].state.limiter
        try:
            key_scope = await self._identify(connection)
            if key_scope is None:
                await limiter.take_for_address(connection)
                raise Unauthenticated("Send a valid key as `Authorization: Bearer geo_…`.")
            scope.setdefault("state", {}).update(key_scope=key_scope, principal=key_scope.principal)
            await limiter.take_for_key(key_scope.principal)
        except GeoError as error:
            await problem_of(error)(scope, receive, send)
            return
        scope["app"].state.used_keys[key_scope.principal] = utcnow()
        await self.app(scope, receive, send)

    def _is_closed(self, path: str) -> bool:
        return path.startswith("/v1/") or (path == "/metrics" and not self.settings.public_metrics)

    async def _identify(self, connection: HTTPConnection) -> KeyScope | None:
        plaintext = bearer(connection.headers.get("authorization", ""))
        if not plaintext:
            return None
        return await run_sync(_find, connection.app.state.db, plaintext)


def bearer(header: str) -> str:
    """The key in an `Authorization` header; empty for none, blank or another scheme."""
    scheme, _, value = header.partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


def _find(db: Database, plaintext: str) -> KeyScope | None:
    with db.read() as session:
        return keys.find_scope(session, plaintext)


def drain_used(used: dict[str, datetime]) -> dict[str, datetime]:
    """Take what is there, leaving an empty mapping for the next round."""
    taken = dict(used)
    used.clear()
    return taken
