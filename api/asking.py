"""What the search, query and chat doors share: names become ids, and a failed query becomes an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from core.errors import Conflict, TransientError
from core.types import AnswerStatus, Scope
from generation import service as answers
from ingest import service as ingest


def submit(session: Session, scope: Scope, *, collections: Sequence[str], **question: Any) -> str:
    """`generation.service.submit` with collections by id or name."""
    ids = [ingest.collection_id(session, scope, collection=name) for name in collections]
    return answers.submit(session, scope, collection_ids=ids, **question)


def raise_if_unanswered(query_id: str, status: AnswerStatus, error: Mapping[str, Any] | None) -> None:
    """Turn a failed or cancelled query into a problem; a refusal is an answer.

    Raises:
        TransientError: the query failed; asking again may help.
        Conflict: somebody cancelled it.
    """
    if status is AnswerStatus.CANCELLED:
        raise Conflict("The query was cancelled.", query_id=query_id)
    if status is AnswerStatus.FAILED:
        reason = dict(error or {})
        raise QueryFailed(
            str(reason.get("detail") or "The query failed."),
            query_id=query_id,
            reason=str(reason.get("code") or "unknown"),
        )


class QueryFailed(TransientError):
    """Retrieval or the engine failed this query; an empty result would be a lie."""

    code = "query_failed"
    title = "The query failed"
