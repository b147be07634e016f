"""The HTTP application. Building it loads no model library and opens no connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Match, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from api import keys
from api.auth import Authentication, drain_used
from api.body_limit import BodyLimit
from api.errors import install_error_handlers
from api.middleware import RequestContext
from api.openapi import publish_schema
from api.parameters import only_known
from api.rate_limit import RateLimiter
from api.routes import ANY_PARAMETERS, ROUTERS
from core.db import get_database
from core.errors import GeoError
from core.redis_client import make_async_redis
from core.settings import Settings, get_settings
from ingest.service import STALE_STAGING_S, BlobStore

log = logging.getLogger(__name__)

_CONSOLE = Path(__file__).parent / "console"
_THREADS = 64  # handlers that wait for the database; a pooled connection is held only while one works
_FLUSH_USED_S = 30.0


def create_app(settings: Settings | None = None) -> FastAPI:
    """Build the application.

    Args:
        settings: taken from the environment when None.
    """
    settings = settings or get_settings()
    app = FastAPI(
        title="geo-engine",
        version="0.1.0",
        description="Documents in, answers with checked citations out. Errors are RFC 9457 problems.",
        lifespan=_lifespan,
        docs_url=None,  # their pages load scripts from elsewhere; /openapi.json is served
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.settings = settings
    app.add_middleware(Authentication, settings=settings.api)
    app.add_middleware(BodyLimit, settings=settings.api)
    app.add_middleware(RequestContext)
    install_error_handlers(app)
    for router in ROUTERS:
        checked = [] if router in ANY_PARAMETERS else [Depends(only_known)]
        app.include_router(router, dependencies=checked)
    publish_schema(app)
    if (_CONSOLE / "index.html").is_file():
        app.router.routes.append(
            _ConsoleMount("/", StaticFiles(directory=_CONSOLE, html=True), name="console")
        )
    return app


class _ConsoleMount(Mount):
    """The console takes every path but the doors', whose wrong methods and typos stay theirs to answer."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match outside `/v1/`."""
        if scope["path"].startswith("/v1/"):
            return Match.NONE, {}
        return super().matches(scope)


def doors(app: FastAPI) -> list[APIRoute]:
    """Every door of the application, for tests and for the generated reference."""
    return [route for route in app.routes if isinstance(route, APIRoute)]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    settings: Settings = app.state.settings
    anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
    db = get_database()
    app.state.db = db
    app.state.redis = make_async_redis()
    app.state.limiter = RateLimiter(app.state.redis, settings.api)
    app.state.used_keys = {}
    made = await anyio.to_thread.run_sync(keys.ensure_bootstrap, db, settings)
    if made is not None:  # to the terminal, not to the log: it is shown once and kept nowhere
        sys.stderr.write(f"\nFirst operator key (shown once, store it now): {made}\n\n")
    await anyio.to_thread.run_sync(_remove_stale_staging)
    flusher = asyncio.create_task(_flush_used_keys(app))
    try:
        yield
    finally:
        flusher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await flusher
        await _store_used_keys(app)
        await app.state.redis.aclose()
        db.dispose()


def _remove_stale_staging() -> None:
    """What an upload left behind whose process was killed; living ones are far younger."""
    removed = BlobStore.of().delete_stale_staging(STALE_STAGING_S, time.time())
    if removed:
        log.info("stale_staging_removed", extra={"files": removed})


async def _flush_used_keys(app: FastAPI) -> None:
    while True:
        await asyncio.sleep(_FLUSH_USED_S)
        await _store_used_keys(app)


async def _store_used_keys(app: FastAPI) -> None:
    try:
        await anyio.to_thread.run_sync(keys.mark_used, app.state.db, drain_used(app.state.used_keys))
    except GeoError:
        log.warning("key_use_not_stored", exc_info=True)
