"""Follow a query's events, wait for its end, and stop it when it is not wanted any more.

The async functions open their own short sessions and hold none while they wait.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import redis.asyncio
from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from core import streams
from core.db import get_database
from core.errors import ClientLeft, DeadlineExceeded, GeoError
from core.redis_client import get_redis
from core.settings import get_settings
from core.streams import StreamEvent
from core.types import AnswerStatus, Scope
from generation import repository, stream, watchers
from generation.replays import comparison as comparison
from generation.replays import replay as replay
from generation.values import AnswerView

log = logging.getLogger(__name__)

_WATCH_S = 3.0  # a reader says so often that it is there
_leaving: set[asyncio.Task[None]] = set()


async def wait_answer(
    client: redis.asyncio.Redis,
    scope: Scope,
    query_id: str,
    *,
    deadline_s: float | None = None,
    left: Callable[[], Awaitable[bool]] | None = None,
    just_asked: bool = False,
) -> AnswerView:
    """`wait_end`, then the answer."""
    await wait_end(client, scope, query_id, deadline_s=deadline_s, left=left, just_asked=just_asked)
    return await asyncio.to_thread(_load, scope, query_id)


async def wait_end(
    client: redis.asyncio.Redis,
    scope: Scope,
    query_id: str,
    *,
    deadline_s: float | None = None,
    left: Callable[[], Awaitable[bool]] | None = None,
    just_asked: bool = False,
) -> None:
    """Wait on the query's stream until it has ended.

    Args:
        client: asyncio Redis of the running loop.
        scope: who asks.
        query_id: the query.
        deadline_s: default `api.question_deadline_s`.
        left: whether the asker is gone, asked at each event and about every two quiet seconds. A query that
            nobody else watches is then cancelled, as when a stream is closed.
        just_asked: see `events`.

    Raises:
        DeadlineExceeded: it goes on; read it later by its id, which the error carries.
        ClientLeft: `left` said so.
        NotFound: unknown to this scope.
    """
    deadline_s = get_settings().api.question_deadline_s if deadline_s is None else deadline_s
    gone = False
    followed = events(client, scope, query_id, cancel_when_unwatched=lambda: gone, just_asked=just_asked)
    try:
        async with asyncio.timeout(deadline_s), aclosing(followed):
            async for entry in followed:
                if entry is not None and entry.event == "done":
                    break
                if left is not None and await left():
                    gone = True
                    raise ClientLeft(query_id=query_id)
    except TimeoutError:
        raise DeadlineExceeded(
            f"The answer was not ready within {deadline_s:g} s; read it at /v1/queries/{query_id}.",
            query_id=query_id,
        ) from None


async def events(
    client: redis.asyncio.Redis,
    scope: Scope,
    query_id: str,
    *,
    last_event_id: str = "",
    cancel_when_unwatched: bool | Callable[[], bool] = True,
    just_asked: bool = False,
) -> AsyncGenerator[StreamEvent | None]:
    """Follow a query: its events after `last_event_id`, until `done`.

    When the consumer closes this generator before `done` and nobody else watches, the query is cancelled
    after `api.disconnect_grace_s`, unless `cancel_when_unwatched` is off (or says so, asked at the end).
    `just_asked`: this scope stored the query a moment ago, so it need not be looked up.

    Yields:
        None at once, then events, and None about every two quiet seconds, for a keep-alive.

    Raises:
        NotFound: unknown to this scope (before the first event).
    """
    known = AnswerStatus.QUEUED if just_asked else await asyncio.to_thread(_status, scope, query_id)
    watcher, ended = uuid.uuid4().hex, False
    follower = stream.follow_query(
        client,
        query_id,
        lambda: _load(scope, query_id),
        status=lambda: _status(scope, query_id),
        known=known,
        after=last_event_id,
    )
    loop = asyncio.get_running_loop()
    watched_until = 0.0
    try:
        await _quietly(watchers.watch(client, query_id, watcher))
        watched_until = loop.time() + _WATCH_S
        yield None  # whoever has this has begun to watch, and is missed when it leaves
        async for entry in follower:
            if loop.time() > watched_until:
                await _quietly(watchers.watch(client, query_id, watcher))
                watched_until = loop.time() + _WATCH_S
            ended = ended or (entry is not None and entry.event == "done")
            yield entry
    finally:
        cancels = (
            cancel_when_unwatched if isinstance(cancel_when_unwatched, bool) else cancel_when_unwatched()
        )
        # A task of its own, because the consumer's task may be on its way down.
        leaving = loop.create_task(_leave(client, scope, query_id, watcher, cancel=cancels and not ended))
        _leaving.add(leaving)
        leaving.add_done_callback(_leaving.discard)


async def _quietly(action: Awaitable[None]) -> None:
    try:
        await action
    except RedisError:
        log.debug("watcher_not_recorded", exc_info=True)


async def _leave(
    client: redis.asyncio.Redis, scope: Scope, query_id: str, watcher: str, *, cancel: bool
) -> None:
    await _quietly(watchers.unwatch(client, query_id, watcher))
    if not cancel:
        return
    await asyncio.sleep(get_settings().api.disconnect_grace_s)
    try:
        await asyncio.to_thread(cancel_if_unwatched, scope, query_id)
    except GeoError:
        log.warning("cancel_after_disconnect_failed", extra={"query_id": query_id}, exc_info=True)


def _status(scope: Scope, query_id: str) -> AnswerStatus:
    with get_database().read() as session:
        return repository.query_status(session, scope, query_id)


def _load(scope: Scope, query_id: str) -> AnswerView:
    with get_database().read() as session:
        return repository.answer_view(session, scope, query_id)


def cancel(session: Session, scope: Scope, query_id: str) -> AnswerView:
    """Ask for the query to stop; an ended query is left as it is.

    A query that no worker holds ends at once. Otherwise the worker is told through Redis after the commit
    and aborts in the engine; the row stays the truth if the message is lost.

    Raises:
        NotFound: unknown to this scope.
    """
    row = repository.query_row(session, scope, query_id)
    if not AnswerStatus(row.status).terminal:
        ended = repository.request_cancel(session, row)
        view = repository.answer_view(session, scope, query_id)

        def tell() -> None:
            streams.announce_cancel(get_redis(), query_id)
            if ended:
                streams.publish(get_redis(), query_id, "done", stream.done_payload(view))

        stream.after_commit(session, tell)
        return view
    return repository.answer_view(session, scope, query_id)


def cancel_if_unwatched(scope: Scope, query_id: str) -> bool:
    """Cancel the query when nobody reads its stream; opens its own session.

    Returns:
        Whether a cancel was asked for.
    """
    try:
        if watchers.watched(get_redis(), query_id):
            return False
    except RedisError:
        return False  # nobody can tell who watches: the engine's deadline ends it
    with get_database().write() as session:
        if repository.query_row(session, scope, query_id).status not in ("queued", "running"):
            return False
        cancel(session, scope, query_id)
    return True
