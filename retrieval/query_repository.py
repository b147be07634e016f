"""Rows ↔ values of the query half; every read of passages is scoped and serves live versions only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from core.db import affected, utcnow
from core.errors import NotFound
from core.models import (
    CollectionRow,
    DocumentRow,
    EnginePlanRow,
    EvidenceRow,
    PassageRow,
    PassageTokensRow,
    QueryRow,
)
from core.types import AnswerStatus, Evidence, Scope
from retrieval.filters import Filters
from retrieval.live import visible
from retrieval.variants import Variant, variants_of

_OPEN = (AnswerStatus.QUEUED.value, AnswerStatus.RUNNING.value)
MAX_FILTER_DOCUMENTS = 2000


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """What the rerank task needs of a query's row."""

    id: str
    tenant_id: str
    collection_ids: tuple[str, ...]
    question: str
    history: Sequence[Mapping[str, str]]
    task: str
    filters: Mapping[str, Any]
    options: Mapping[str, Any]
    policy: Mapping[str, Any]
    status: str
    cancel_requested: bool
    variants: tuple[Variant, ...] = ()
    rewrite: str = ""  # what became of the rewriting that the policy asks for; empty: nothing yet


def require_collections(session: Session, scope: Scope, collection_ids: Sequence[str]) -> tuple[str, ...]:
    """The ids without repeats.

    Raises:
        NotFound: one of them is unknown to this scope.
    """
    wanted = tuple(dict.fromkeys(collection_ids))
    known = set(
        session.scalars(
            select(CollectionRow.id).where(
                CollectionRow.tenant_id == scope.tenant_id,
                CollectionRow.id.in_(wanted),
                CollectionRow.deleted_at.is_(None),
            )
        )
    )
    for collection_id in wanted:
        if collection_id not in known or not scope.allows_collection(collection_id):
            raise NotFound("No such collection.", collection_id=collection_id)
    return wanted


def stored_tokens(session: Session, passage_ids: Sequence[int], model: str) -> dict[int, bytes]:
    """Packed token vectors by id; ids come from `live_passages`, which looked at the scope."""
    rows = session.execute(
        select(PassageTokensRow.passage_id, PassageTokensRow.packed).where(
            PassageTokensRow.passage_id.in_(passage_ids), PassageTokensRow.model == model
        )
    )
    return {row.passage_id: row.packed for row in rows}


def filtered_document_ids(session: Session, scope: Scope, filters: Filters) -> list[str] | None:
    """Live documents that the filter lets through, ascending; None when it does not go by documents alone.

    At most `MAX_FILTER_DOCUMENTS` ids are given, and None above that: the filter is then applied to what the
    route found.
    """
    if filters.empty or not filters.by_document:
        return None
    condition = visible(scope, filters, dialect=session.get_bind().dialect.name)
    ids = session.scalars(
        select(DocumentRow.id)
        .join(PassageRow, (PassageRow.document_id == DocumentRow.id) & (PassageRow.ordinal == 0))
        .where(condition)
        .order_by(DocumentRow.id)
        .limit(MAX_FILTER_DOCUMENTS + 1)
    ).all()
    return None if len(ids) > MAX_FILTER_DOCUMENTS else list(ids)


def live_passage_ids(session: Session, scope: Scope, filters: Filters, *, limit: int) -> list[int] | None:
    """Ids of all passages that this scope and filter may see, ascending, or None above `limit`."""
    condition = visible(scope, filters, dialect=session.get_bind().dialect.name)
    ids = session.scalars(
        select(PassageRow.id)
        .join(DocumentRow, DocumentRow.id == PassageRow.document_id)
        .where(condition)
        .order_by(PassageRow.id)
        .limit(limit + 1)
    ).all()
    return None if len(ids) > limit else list(ids)


def get_query(session: Session, query_id: str) -> StoredQuery:
    """The query as the worker sees it (its id came from a job row).

    Raises:
        NotFound: the row is gone.
    """
    row = session.get(QueryRow, query_id)
    if row is None:
        raise NotFound("No such query.", query_id=query_id)
    return StoredQuery(
        id=row.id,
        tenant_id=row.tenant_id,
        collection_ids=tuple(row.collection_ids),
        question=row.question,
        history=tuple(row.history),
        task=row.task,
        filters=row.filters,
        options=row.options,
        policy=row.policy,
        status=row.status,
        cancel_requested=row.cancel_requested,
        variants=variants_of(row.variants),
        rewrite=row.trace.get("rewrite", {}).get("state", ""),
    )


def lock_query(session: Session, query_id: str) -> StoredQuery:
    """The query read for update inside the transaction that ends the stage."""
    session.get(QueryRow, query_id, with_for_update=True, populate_existing=True)
    return get_query(session, query_id)


def end_query(session: Session, query_id: str, status: AnswerStatus) -> bool:
    """Set a terminal status unless the query already has one; returns whether it was set."""
    done = session.execute(
        update(QueryRow)
        .where(QueryRow.id == query_id, QueryRow.status.in_(_OPEN))
        .values(status=status.value, finished_at=utcnow())
    )
    return affected(done) == 1


def store_ranking(
    session: Session,
    query_id: str,
    *,
    status: AnswerStatus,
    trace: Mapping[str, Any],
    timings_ms: Mapping[str, float],
    generation: int | None,
    evidence: Sequence[Evidence],
    finished_at: datetime | None,
) -> None:
    """Write what the rerank stage found; a second run replaces the first one's evidence."""
    row = session.get_one(QueryRow, query_id)
    row.status = status.value
    row.trace = {**row.trace, **trace}
    row.timings_ms = {**row.timings_ms, **timings_ms}
    row.index_generation = generation
    row.finished_at = finished_at
    replace_evidence(session, query_id, evidence)


def replace_evidence(session: Session, query_id: str, evidence: Sequence[Evidence]) -> None:
    """Let the query's evidence be these passages."""
    session.execute(delete(EvidenceRow).where(EvidenceRow.query_id == query_id))
    session.add_all(
        EvidenceRow(
            query_id=query_id,
            marker=e.marker,
            passage_id=e.passage.id,
            document_id=e.passage.document_id,
            version=e.passage.version,
            score=e.score,
            routes=[{"route": h.route.value, "rank": h.rank, "score": h.score} for h in e.routes],
            sentences=[{"start": s.span.start, "end": s.span.end, "score": s.score} for s in e.sentences],
            collapsed=e.collapsed,
        )
        for e in evidence
    )
    session.flush()


def engine_plan(session: Session) -> dict[str, Any] | None:
    """The body of the plan that the generation worker last published, or None before its first start."""
    return session.scalar(select(EnginePlanRow.body).order_by(EnginePlanRow.published_at.desc()).limit(1))
