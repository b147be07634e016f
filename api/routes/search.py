"""`/v1/search`."""

from __future__ import annotations

from fastapi import APIRouter

from api import asking
from api.deps import AppSettings, Db, Reader, Redis, in_read, in_write
from api.schemas.queries import SearchBody, SearchOut
from generation import service as answers
from retrieval import service as retrieval
from retrieval.service import SearchResult

_TRIES = 3  # a document replaced between the ranking and the reading leaves a gap; the next ranking has none

router = APIRouter(prefix="/v1/search", tags=["search"])


@router.post("")
async def search(body: SearchBody, scope: Reader, db: Db, client: Redis, settings: AppSettings) -> SearchOut:
    """Passages for a question, with the rank and score of every route; nothing is generated.

    504 when the result is not there within `api.question_deadline_s`.
    """
    found = await _search(body, scope, db, client, settings)
    for _ in range(_TRIES - 1):
        if not found.gone:
            break
        found = await _search(body, scope, db, client, settings)
    return SearchOut.of(found)


async def _search(
    body: SearchBody, scope: Reader, db: Db, client: Redis, settings: AppSettings
) -> SearchResult:
    options = {"top_k": body.top_k, "offset": body.offset, "explain": body.explain}
    query_id = await in_write(
        db,
        lambda session: asking.submit(
            session,
            scope,
            collections=body.collection,
            question=body.question,
            history=[turn.model_dump() for turn in body.history],
            task="search",
            filters=body.filters,
            policy={"rewrite": body.rewrite} if body.rewrite else None,
            options=options,
        ),
    )
    deadline_s = settings.api.question_deadline_s
    await answers.wait_end(client, scope, query_id, deadline_s=deadline_s, just_asked=True)
    found = await in_read(db, lambda session: retrieval.get_search_result(session, scope, query_id))
    error = {"code": found.error_code, "detail": found.error_detail}
    asking.raise_if_unanswered(query_id, found.status, error)
    return found
