"""What a handler may ask for: the database, Redis, the settings, and a scope of sufficient role."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import redis.asyncio
from anyio.to_thread import run_sync
from fastapi import Depends, Query, Request
from sqlalchemy.orm import Session

from core.db import Database
from core.errors import Forbidden, Unauthenticated
from core.settings import Settings
from core.types import Role, Scope

T = TypeVar("T")


# `async`, because FastAPI has a thread call each dependency that is not.
async def _database(request: Request) -> Database:
    return request.app.state.db


async def _redis(request: Request) -> redis.asyncio.Redis:
    return request.app.state.redis


async def _settings(request: Request) -> Settings:
    return request.app.state.settings


def require(role: Role) -> Callable[[Request], Awaitable[Scope]]:
    """A dependency that yields the caller's scope if its role is `role` or stronger."""

    async def scope_of(request: Request) -> Scope:
        scope: Scope | None = getattr(request.state, "key_scope", None)
        if scope is None:
            raise Unauthenticated
        if scope.may.rank < role.rank:
            raise Forbidden(f"This door needs the role {role.value}; the key is a {scope.may.value}.")
        return scope

    scope_of.__name__ = f"require_{role.value}"
    return scope_of


Db = Annotated[Database, Depends(_database)]
Redis = Annotated[redis.asyncio.Redis, Depends(_redis)]
AppSettings = Annotated[Settings, Depends(_settings)]
Reader = Annotated[Scope, Depends(require(Role.READER))]
Writer = Annotated[Scope, Depends(require(Role.WRITER))]
Admin = Annotated[Scope, Depends(require(Role.ADMIN))]
Operator = Annotated[Scope, Depends(require(Role.OPERATOR))]
Limit = Annotated[int, Query(ge=1, le=200, description="entries per page")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before")]


async def in_read(db: Database, work: Callable[[Session], T]) -> T:
    """Run `work` with a short reading session on a thread; for streaming handlers."""

    def run() -> T:
        with db.read() as session:
            return work(session)

    return await run_sync(run)


async def in_write(db: Database, work: Callable[[Session], T]) -> T:
    """Run `work` with a short writing session on a thread; committed when this returns."""

    def run() -> T:
        with db.write() as session:
            return work(session)

    return await run_sync(run)
