"""The light door of generation for the HTTP process: ask, read, follow, cancel, replay, policies, engine.

Imports no engine. Functions that take a session run inside the caller's transaction; the async ones open
their own short sessions and hold none while they wait.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import redis.asyncio
from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from core import streams
from core.db import get_database
from core.errors import ClientLeft, DeadlineExceeded, GeoError, InvalidInput
from core.redis_client import get_redis
from core.settings import get_settings
from core.streams import StreamEvent
from core.types import AnswerStatus, Scope
from generation import repository, stream
from generation.admitting import admit
from generation.policy import CitationPolicy, merged, parse_policy, resolved
from generation.replays import comparison as comparison
from generation.replays import replay as replay
from generation.sources import with_source_rules
from generation.values import AnswerPage, AnswerView, EngineStatus, PolicyView
from retrieval.service import submit_query

log = logging.getLogger(__name__)

ENGINE_KEY = "geo:engine"  # live state of the generation worker's engine, short time to live
_MAX_PAGE = 200
_leaving: set[asyncio.Task[None]] = set()


# -- ask ---------------------------------------------------------------------------------------


def submit(
    session: Session,
    scope: Scope,
    *,
    question: str,
    collection_ids: Sequence[str],
    task: str = "answer",
    priority: str = "interactive",
    policy: Mapping[str, Any] | None = None,
    filters: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    history: Sequence[Mapping[str, Any]] = (),
    deadline_s: float | None = None,
) -> str:
    """Accept a question and return the query's id; workers are rung after the commit.

    Args:
        session: an open `Database.write()` session.
        scope: who asks.
        question: any text up to `api.max_question_chars`.
        collection_ids: where to look; the policy is that of a single collection, the default for several.
        task: `answer` or `summarize` (or `search`, which the engine never sees).
        priority: `interactive` or `batch`.
        policy: fields laid over the collection's policy for this request.
        filters: see `retrieval/filters.py`.
        options: kept with the query; `top_k`, `offset`, `explain` are retrieval's.
        history: earlier turns, `{role, content}`, oldest first.
        deadline_s: seconds from now within which it ends, answered or not; default by priority.

    Raises:
        InvalidInput: blank question, unknown policy field, filter, task or priority, deadline out of bounds.
        TooLarge: the question is above its cap.
        NotFound: a collection is unknown to this scope.
        EngineBusy: the engine has no room for it now; it says when to ask again.
    """
    base, version = CitationPolicy(), None
    distinct = tuple(dict.fromkeys(collection_ids))
    if len(distinct) == 1:
        in_force = repository.policy_in_force(session, scope, distinct[0])
        base, version = parse_policy(in_force.body), in_force.version
    settings = get_settings()
    effective = resolved(merged(base, policy), settings.generation, settings.retrieval)
    admitted = admit(
        session,
        settings,
        question=question,
        task=task,
        policy=effective,
        priority=priority,
        deadline_s=deadline_s,
    )
    return submit_query(
        session,
        scope,
        question=question,
        collection_ids=distinct,
        task=task,
        priority=priority,
        filters=with_source_rules(filters, effective.sources),
        options=options,
        policy=effective.model_dump(mode="json"),
        policy_version=version,
        history=history,
        kv_tokens=admitted.kv_tokens,
        deadline_s=admitted.deadline_s,
    )


# -- read --------------------------------------------------------------------------------------


def get_answer(session: Session, scope: Scope, query_id: str) -> AnswerView:
    """A query and what is known of its answer.

    Raises:
        NotFound: unknown to this scope.
    """
    return repository.answer_view(session, scope, query_id)


def list_answers(
    session: Session,
    scope: Scope,
    *,
    cursor: str | None = None,
    limit: int = 50,
    collection_id: str | None = None,
) -> AnswerPage:
    """Queries this scope may see, newest first.

    Raises:
        InvalidInput: `limit` is out of bounds.
    """
    if not 1 <= limit <= _MAX_PAGE:
        raise InvalidInput(f"limit must be from 1 to {_MAX_PAGE}.")
    items, more = repository.summaries(
        session, scope, before=cursor, limit=limit, collection_id=collection_id
    )
    return AnswerPage(tuple(items), items[-1].id if more and items else None)


async def wait_answer(
    client: redis.asyncio.Redis,
    scope: Scope,
    query_id: str,
    *,
    deadline_s: float | None = None,
    left: Callable[[], Awaitable[bool]] | None = None,
) -> AnswerView:
    """Wait on the query's stream until it has ended.

    Args:
        client: asyncio Redis of the running loop.
        scope: who asks.
        query_id: the query.
        deadline_s: default `api.question_deadline_s`.
        left: whether the asker is gone, asked at each event and about every two quiet seconds. A query that
            nobody else watches is then cancelled, as when a stream is closed.

    Raises:
        DeadlineExceeded: it goes on; read it later by its id, which the error carries.
        ClientLeft: `left` said so.
        NotFound: unknown to this scope.
    """
    deadline_s = get_settings().api.question_deadline_s if deadline_s is None else deadline_s
    gone = False
    followed = events(client, scope, query_id, cancel_when_unwatched=lambda: gone)
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
    return await asyncio.to_thread(_load, scope, query_id)


async def events(
    client: redis.asyncio.Redis,
    scope: Scope,
    query_id: str,
    *,
    last_event_id: str = "",
    cancel_when_unwatched: bool | Callable[[], bool] = True,
) -> AsyncGenerator[StreamEvent | None]:
    """Follow a query: its events after `last_event_id`, until `done`.

    When the consumer closes this generator before `done` and nobody else watches, the query is cancelled
    after `api.disconnect_grace_s`, unless `cancel_when_unwatched` is off (or says so, asked at the end).

    Yields:
        Events, and None about every two quiet seconds, for a keep-alive.

    Raises:
        NotFound: unknown to this scope (before the first event).
    """
    await asyncio.to_thread(_status, scope, query_id)
    watcher, ended = uuid.uuid4().hex, False
    follower = stream.follow_query(
        client,
        query_id,
        lambda: _load(scope, query_id),
        status=lambda: _status(scope, query_id),
        after=last_event_id,
    )
    loop = asyncio.get_running_loop()
    watched_until = 0.0
    try:
        async for entry in follower:
            if loop.time() > watched_until:
                await _quietly(stream.watch(client, query_id, watcher))
                watched_until = loop.time() + 3
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
    await _quietly(stream.unwatch(client, query_id, watcher))
    if not cancel:
        return
    await asyncio.sleep(get_settings().api.disconnect_grace_s)
    try:
        await asyncio.to_thread(cancel_if_unwatched, scope, query_id)
    except GeoError:
        log.warning("cancel_after_disconnect_failed", extra={"query_id": query_id}, exc_info=True)


def answer_status(session: Session, scope: Scope, query_id: str) -> AnswerStatus:
    """How far a query is; much cheaper than its answer.

    Raises:
        NotFound: unknown to this scope.
    """
    return AnswerStatus(repository.query_row(session, scope, query_id).status)


def _status(scope: Scope, query_id: str) -> AnswerStatus:
    with get_database().read() as session:
        return answer_status(session, scope, query_id)


def _load(scope: Scope, query_id: str) -> AnswerView:
    with get_database().read() as session:
        return repository.answer_view(session, scope, query_id)


# -- cancel ------------------------------------------------------------------------------------


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
        if stream.watched(get_redis(), query_id):
            return False
    except RedisError:
        return False  # nobody can tell who watches: the engine's deadline ends it
    with get_database().write() as session:
        if repository.query_row(session, scope, query_id).status not in ("queued", "running"):
            return False
        cancel(session, scope, query_id)
    return True


# -- policies ----------------------------------------------------------------------------------


def get_policy(session: Session, scope: Scope, collection_id: str) -> PolicyView:
    """The policy in force; version 0 is the built-in default.

    Raises:
        NotFound: the collection is unknown to this scope.
    """
    return repository.policy_in_force(session, scope, collection_id)


def put_policy(session: Session, scope: Scope, collection_id: str, body: Mapping[str, Any]) -> PolicyView:
    """Store a new version; answers keep the version they were made with.

    Raises:
        InvalidInput: unknown field or value out of bounds.
        NotFound: the collection is unknown to this scope.
    """
    return repository.add_policy(session, scope, collection_id, parse_policy(body))


# -- engine ------------------------------------------------------------------------------------


def engine_status(session: Session) -> EngineStatus:
    """State of the engine: the live key while the generation worker breathes, else the last plan."""
    published = repository.published_plan(session)
    plan = published[0] if published else None
    try:
        raw = get_redis().get(ENGINE_KEY)
    except RedisError:
        raw = None
    if not raw:
        detail = "No generation worker was heard of in the last seconds."
        return EngineStatus("unknown", detail, plan, None, None, None, published[1] if published else None)
    live: dict[str, Any] = json.loads(str(raw))
    return EngineStatus(
        state=live["state"],
        detail=live.get("detail", ""),
        plan=plan,
        kv_free_share=live.get("kv_free_share"),
        running=live.get("running"),
        waiting=live.get("waiting"),
        heard_at=datetime.fromtimestamp(live["at"], UTC),
    )
