"""`/v1/queries`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Annotated, Any, Literal

import redis.asyncio
from fastapi import APIRouter, Header, Query, Request, Response

from api import asking, audit
from api.deps import Cursor, Db, Limit, Reader, Redis, in_write
from api.paging import decode_cursor, encode_cursor
from api.schemas.common import Listed, PathId
from api.schemas.queries import QueryAccepted, QueryBody
from api.sse import KEEP_ALIVE, EventStream, encode_text
from core.streams import StreamEvent
from core.types import Scope
from generation import service as answers
from generation.values import AnswerSummary, AnswerView
from ingest import service as ingest

router = APIRouter(prefix="/v1/queries", tags=["queries"])

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "The event stream", "content": {"text/event-stream": {}}}
}


@router.post("", status_code=202, response_model=QueryAccepted, responses=_STREAM)
async def ask(
    body: QueryBody, request: Request, response: Response, scope: Reader, db: Db, client: Redis
) -> object:
    """Ask. 202 with the query's id, or the event stream at once with `Accept: text/event-stream`."""
    query_id = await in_write(
        db,
        lambda session: asking.submit(
            session,
            scope,
            collections=body.collection,
            question=body.question,
            history=[turn.model_dump() for turn in body.history],
            task=body.task,
            priority=body.priority,
            deadline_s=body.deadline_s,
            policy=body.policy,
            filters=body.filters,
        ),
    )
    return await _accepted(query_id, request, response, scope, client, stream=body.stream)


@router.get("")
def list_queries(
    scope: Reader,
    db: Db,
    collection: Annotated[str | None, Query(max_length=200, description="id or name")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Listed[AnswerSummary]:
    """Queries over collections that the key may read, newest first."""
    with db.read() as session:
        wanted = None
        if collection is not None:
            wanted = ingest.collection_id(session, scope, collection=collection)
        page = answers.list_answers(
            session, scope, cursor=decode_cursor(cursor) or None, limit=limit, collection_id=wanted
        )
    following = encode_cursor(page.next_cursor) if page.next_cursor else None
    return Listed(items=list(page.items), next_cursor=following)


@router.get("/{query_id}")
def get_query(query_id: PathId, scope: Reader, db: Db) -> AnswerView:
    """A query and what is known of its answer."""
    with db.read() as session:
        return answers.get_answer(session, scope, query_id)


@router.delete("/{query_id}", status_code=202)
def cancel_query(query_id: PathId, scope: Reader, db: Db) -> AnswerView:
    """Stop it, in the engine too; an ended query stays as it is."""
    with db.write() as session:
        view = answers.cancel(session, scope, query_id)
        audit.record(session, scope, "query.cancel", query_id)
    return view


@router.get("/{query_id}/events", status_code=200, response_class=EventStream, responses=_STREAM)
async def follow_query(
    query_id: PathId,
    scope: Reader,
    client: Redis,
    last_event_id: Annotated[str | None, Header(max_length=64)] = None,
) -> EventStream:
    """Follow the answer as it is made; `Last-Event-ID` resumes where a broken connection stopped."""
    return await _stream(answers.events(client, scope, query_id, last_event_id=last_event_id or ""))


@router.post("/{query_id}/replay", status_code=202, response_model=QueryAccepted, responses=_STREAM)
async def replay_query(
    query_id: PathId,
    request: Request,
    response: Response,
    scope: Reader,
    db: Db,
    client: Redis,
    evidence: Annotated[
        Literal["fresh", "stored"], Query(description="retrieve anew, or answer from the stored passages")
    ] = "fresh",
) -> object:
    """Ask the same again, with the same policy. 202, or the event stream at once, as for a question."""
    new = await in_write(db, lambda session: answers.replay(session, scope, query_id, evidence=evidence))
    return await _accepted(new, request, response, scope, client)


@router.get("/{query_id}/comparison")
def compare_query(query_id: PathId, scope: Reader, db: Db) -> dict[str, Any]:
    """What an ended replay has in common with the query that it repeats, and where they differ."""
    with db.read() as session:
        return answers.comparison(session, scope, query_id)


async def _accepted(
    query_id: str,
    request: Request,
    response: Response,
    scope: Scope,
    client: redis.asyncio.Redis,
    *,
    stream: bool = False,
) -> EventStream | QueryAccepted:
    """What is answered to a question that was just stored."""
    accepted = QueryAccepted.of(query_id)
    if stream or "text/event-stream" in request.headers.get("accept", ""):
        followed = answers.events(client, scope, query_id, just_asked=True)
        return await _stream(followed, headers={"Location": accepted.status_url})
    response.headers["Location"] = accepted.status_url
    return accepted


async def _stream(
    followed: AsyncGenerator[StreamEvent | None], headers: Mapping[str, str] | None = None
) -> EventStream:
    await anext(followed)
    return EventStream(_events(followed), headers, source=followed)


async def _events(followed: AsyncGenerator[StreamEvent | None]) -> AsyncIterator[bytes]:
    yield KEEP_ALIVE  # headers and a first byte at once, so that a proxy shows the stream as open
    async with aclosing(followed):
        async for entry in followed:
            yield KEEP_ALIVE if entry is None else encode_text(entry.event, entry.text.encode(), entry.id)
