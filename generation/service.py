"""The light door of generation for the HTTP process: ask, read, follow, cancel, replay, policies, engine.

Imports no engine. Functions that take a session run inside the caller's transaction; the async ones open
their own short sessions and hold none while they wait.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from core.errors import InvalidInput
from core.redis_client import get_redis
from core.settings import get_settings
from core.types import Scope
from generation import repository
from generation.admitting import admit
from generation.following import cancel as cancel
from generation.following import cancel_if_unwatched as cancel_if_unwatched
from generation.following import events as events
from generation.following import wait_answer as wait_answer
from generation.following import wait_end as wait_end
from generation.policy import CitationPolicy, merged, parse_policy, resolved
from generation.replays import comparison as comparison
from generation.replays import replay as replay
from generation.sources import with_source_rules
from generation.summarize import document_of
from generation.summary_repository import require_document
from generation.values import AnswerPage, AnswerView, EngineStatus, PolicyView
from retrieval.filters import parse_filters
from retrieval.service import submit_query

log = logging.getLogger(__name__)

ENGINE_KEY = "geo:engine"  # live state of the generation worker's engine, short time to live
_MAX_PAGE = 200


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
        NotFound: a collection, or the document to summarize, is unknown to this scope.
        Conflict: the document to summarize cannot be read yet.
        EngineBusy: the engine has no room for it now; it says when to ask again.
    """
    distinct = tuple(dict.fromkeys(collection_ids))
    base, version = _base_policy(session, scope, distinct)
    parse_filters(filters or {})
    if task == "summarize" and (document_id := document_of(filters or {})) is not None:
        require_document(session, scope.narrowed(distinct), document_id)
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
    kind = effective.rewrite if task != "summarize" else "off"
    waits = kind != "off" and _live_engine().get("state") == "ready"
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
        rewrite_within_s=settings.generation.rewrite_budget_s if waits else 0.0,
        rewriting=None if kind == "off" or waits else {"kind": kind, "state": "engine_not_ready"},
    )


def _base_policy(
    session: Session, scope: Scope, collection_ids: Sequence[str]
) -> tuple[CitationPolicy, int | None]:
    """The policy that a request's fields are laid over, and its version: a single collection's own."""
    if len(collection_ids) != 1:
        return CitationPolicy(), None
    in_force = repository.policy_in_force(session, scope, collection_ids[0])
    return parse_policy(in_force.body), in_force.version


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
    live = _live_engine()
    if not live:
        detail = "No generation worker was heard of in the last seconds."
        return EngineStatus("unknown", detail, plan, None, None, None, published[1] if published else None)
    return EngineStatus(
        state=live["state"],
        detail=live.get("detail", ""),
        plan=plan,
        kv_free_share=live.get("kv_free_share"),
        running=live.get("running"),
        waiting=live.get("waiting"),
        heard_at=datetime.fromtimestamp(live["at"], UTC),
    )


def _live_engine() -> dict[str, Any]:
    """What the generation worker said in the last seconds; empty when nothing was heard."""
    try:
        raw = get_redis().get(ENGINE_KEY)
    except RedisError:
        return {}
    return json.loads(str(raw)) if raw else {}
