"""How much each document is used, counted from the queries that are stored anyway.

A query writes its evidence or its hits when it ends; a background reader takes finished queries in order and
gives each document one use per query that showed it. Nothing is added to a query. A use counts half after
`placement.half_life_days`: `(score, scored_at)` tells the score at any later time, so idle documents need no
writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from core.db import Database, utcnow
from core.models import (
    CursorRow,
    DocumentPlacementRow,
    DocumentRow,
    EvidenceRow,
    PassageRow,
    QueryRow,
)
from core.settings import get_settings
from core.types import AnswerStatus
from retrieval.placement import decayed

CURSOR = "access"
_SHOWN = (AnswerStatus.ANSWERED.value, AnswerStatus.INCOMPLETE.value)  # a refusal shows what was of no use
_HITS = 10  # of a search; below them nobody looks
_BATCH = 500
# `finished_at` is read from the clock before its transaction commits, so the newest queries are left for the
# next round: one that commits late is not skipped.
_SETTLE = timedelta(seconds=30)


def count_uses(db: Database, now: datetime | None = None) -> int:
    """Count the uses of all queries that finished since the last call.

    The uses and the place where counting stopped commit together, a few hundred queries at a time, so a kill
    neither loses nor repeats any.

    Returns:
        How many queries were counted.
    """
    now = now or utcnow()
    counted = 0
    while True:
        with db.write() as session:
            batch = _next(session, now)
            counted += len(batch)
        if not batch:
            return counted


def _next(session: Session, now: datetime) -> list[str]:
    """Count one batch and move the cursor behind it; returns its queries."""
    half_life = get_settings().placement.half_life_days
    cursor = session.get(CursorRow, CURSOR, with_for_update=True)
    if cursor is None:
        cursor = CursorRow(name=CURSOR, at=now - timedelta(days=4 * half_life))
        session.add(cursor)
    until = _batch_end(session, cursor.at, now - _SETTLE)
    if until is None:
        return []
    queries = _finished(session, cursor.at, until)
    uses: dict[str, float] = {}
    for query_id, document_ids in _documents_of(session, queries):
        weight = decayed(1.0, queries[query_id][0], now, half_life)
        for document_id in document_ids:
            uses[document_id] = uses.get(document_id, 0.0) + weight
    _add(session, uses, now, half_life)
    cursor.at = until
    return list(queries)


def _batch_end(session: Session, after: datetime, until: datetime) -> datetime | None:
    """When the last query of the next batch finished."""
    ends = session.scalars(
        select(QueryRow.finished_at)
        .where(QueryRow.finished_at > after, QueryRow.finished_at <= until)
        .order_by(QueryRow.finished_at)
        .limit(_BATCH)
    ).all()
    return ends[-1] if ends else None


def _finished(
    session: Session, after: datetime, until: datetime
) -> dict[str, tuple[datetime, str, list[int]]]:
    """Queries of the batch: when each ended, its task, and the passages that a search showed."""
    rows = session.execute(
        select(QueryRow.id, QueryRow.finished_at, QueryRow.task, QueryRow.trace, QueryRow.status).where(
            QueryRow.finished_at > after, QueryRow.finished_at <= until
        )
    )
    return {
        query_id: (cast("datetime", at), task, _hits(trace) if task == "search" else [])
        if status in _SHOWN
        else (cast("datetime", at), "", [])
        for query_id, at, task, trace, status in rows
    }


def _hits(trace: Mapping[str, Any]) -> list[int]:
    return [int(hit["passage_id"]) for hit in trace.get("hits", ()) if hit.get("rank", 0) <= _HITS]


def _documents_of(
    session: Session, queries: Mapping[str, tuple[datetime, str, list[int]]]
) -> Iterator[tuple[str, set[str]]]:
    """Each query with the documents that it showed."""
    answers = [query_id for query_id, (_, task, _hits) in queries.items() if task and task != "search"]
    shown: dict[str, set[str]] = {}
    for start in range(0, len(answers), _BATCH):
        rows = session.execute(
            select(EvidenceRow.query_id, EvidenceRow.document_id).where(
                EvidenceRow.query_id.in_(answers[start : start + _BATCH])
            )
        )
        for query_id, document_id in rows:
            shown.setdefault(query_id, set()).add(document_id)
    yield from shown.items()
    owner = _owners(session, {p for _, _, hits in queries.values() for p in hits})
    for query_id, (_, _, hits) in queries.items():
        if hits:
            yield query_id, {owner[p] for p in hits if p in owner}


def _owners(session: Session, passage_ids: set[int]) -> dict[int, str]:
    owner: dict[int, str] = {}
    ids = sorted(passage_ids)
    for start in range(0, len(ids), _BATCH):
        rows = session.execute(
            select(PassageRow.id, PassageRow.document_id).where(
                PassageRow.id.in_(ids[start : start + _BATCH])
            )
        )
        owner.update((passage, document) for passage, document in rows)
    return owner


def _add(session: Session, uses: Mapping[str, float], now: datetime, half_life_days: float) -> None:
    ids = sorted(uses)
    for start in range(0, len(ids), _BATCH):
        _add_batch(session, {i: uses[i] for i in ids[start : start + _BATCH]}, now, half_life_days)


def _add_batch(session: Session, uses: Mapping[str, float], now: datetime, half_life_days: float) -> None:
    present = lock_documents(session, list(uses))
    known = {
        document_id: decayed(score, at, now, half_life_days)
        for document_id, score, at in session.execute(
            select(
                DocumentPlacementRow.document_id, DocumentPlacementRow.score, DocumentPlacementRow.scored_at
            ).where(DocumentPlacementRow.document_id.in_(present))
        )
    }
    old = [
        {"document_id": i, "score": known[i] + uses[i], "scored_at": now}
        for i in sorted(present & set(known))
    ]
    new = [{"document_id": i, "score": uses[i], "scored_at": now} for i in sorted(present - set(known))]
    if old:
        session.execute(update(DocumentPlacementRow), old)
    if new:
        session.execute(insert(DocumentPlacementRow), new)


def lock_documents(session: Session, document_ids: list[str]) -> set[str]:
    """Those of the documents that are there, kept from being deleted or placed by others until the commit."""
    return set(
        session.scalars(
            select(DocumentRow.id)
            .where(DocumentRow.id.in_(document_ids))
            .order_by(DocumentRow.id)
            .with_for_update(key_share=True)
        )
    )
