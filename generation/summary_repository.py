"""The evidence of a summary: all passages of one document."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.errors import Conflict, NotFound
from core.models import DocumentRow, PassageRow
from core.types import DocumentStatus, Evidence, Scope
from generation.summarize import MAX_PASSAGES
from retrieval.filters import Filters
from retrieval.live import live_passages, visible
from retrieval.query_repository import replace_evidence as replace_evidence


def require_document(session: Session, scope: Scope, document_id: str) -> None:
    """Look whether a document can be summarized.

    Raises:
        NotFound: it is not in the scope's collections.
        Conflict: no version of it can be read yet.
    """
    row = session.get(DocumentRow, document_id)
    if (
        row is None
        or row.tenant_id != scope.tenant_id
        or not scope.allows_collection(row.collection_id)
        or row.status == DocumentStatus.DELETING.value
    ):
        raise NotFound("No such document in the collections that were named.", document_id=document_id)
    if row.live_version is None:
        raise Conflict(
            f"The document is {row.status}; it can be summarized once it is ready.", document_id=document_id
        )


def document_evidence(
    session: Session, scope: Scope, document_id: str, filters: Filters | None = None
) -> tuple[Evidence, ...]:
    """The live passages of a document in order, marked from 1; empty when it is not visible or not live.

    Args:
        session: any.
        scope: who asks, and where.
        document_id: the document.
        filters: what else its passages have to meet, such as a language or pages.
    """
    dialect = session.get_bind().dialect.name
    ids = session.scalars(
        select(PassageRow.id)
        .join(DocumentRow, DocumentRow.id == PassageRow.document_id)
        .where(DocumentRow.id == document_id, visible(scope, filters or Filters(), dialect=dialect))
        .order_by(PassageRow.ordinal)
        .limit(MAX_PASSAGES)
    ).all()
    live = live_passages(session, scope, ids)
    known = [live[passage_id] for passage_id in ids if passage_id in live]
    return tuple(
        Evidence(
            marker=marker,
            passage=one.passage,
            score=1.0,
            document_name=one.document_name,
            collection_id=one.collection_id,
        )
        for marker, one in enumerate(known, 1)
    )


def document_length(session: Session, scope: Scope, document_id: str, filters: Filters) -> int:
    """How many passages `document_evidence` would give were it not for `MAX_PASSAGES`."""
    dialect = session.get_bind().dialect.name
    counted = session.scalar(
        select(func.count(PassageRow.id))
        .join(DocumentRow, DocumentRow.id == PassageRow.document_id)
        .where(DocumentRow.id == document_id, visible(scope, filters, dialect=dialect))
    )
    return counted or 0
