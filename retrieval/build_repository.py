"""Reads of a build: live passages in segment order, counts, saved questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from sqlalchemy import Select, and_, delete, func, select
from sqlalchemy.orm import Session

from core.models import (
    DocumentRow,
    PassageRow,
    PassageTokensRow,
    PassageVectorRow,
    QueryRow,
    QuestionVectorRow,
)
from core.types import DocumentStatus, Scope
from retrieval.vector_tier import Vector

_OLD_VECTORS = 2000  # rows of one delete: other writers wait for no longer than that


@dataclass(frozen=True, slots=True)
class SavedQuestion:
    """A question that somebody asked, and what it may see."""

    query_id: str
    text: str
    scope: Scope
    vector: Vector | None


def count_live(session: Session, tier: str | None = None) -> int:
    """Passages of live versions (in one tier)."""
    return int(session.scalar(_live_count(tier)) or 0)


def count_live_vectors(session: Session, model: str, tier: str) -> int:
    """Passages of live versions in a tier that have a vector of this encoder."""
    has_vector = and_(PassageVectorRow.passage_id == PassageRow.id, PassageVectorRow.model == model)
    return int(session.scalar(_live_count(tier).join(PassageVectorRow, has_vector)) or 0)


def _live_count(tier: str | None) -> Select[int]:
    live = and_(DocumentRow.id == PassageRow.document_id, DocumentRow.live_version == PassageRow.version)
    query = (
        select(func.count())
        .select_from(PassageRow)
        .join(DocumentRow, live)
        .where(DocumentRow.status != DocumentStatus.DELETING.value)
    )
    return query if tier is None else query.where(DocumentRow.tier == tier)


def saved_questions(session: Session, model: str, limit: int) -> list[SavedQuestion]:
    """The newest different questions, with their vector of this encoder where one is kept."""
    q, v = QueryRow, QuestionVectorRow
    rows = session.execute(
        select(q.id, q.tenant_id, q.collection_ids, q.question, v.vector)
        .outerjoin(v, and_(v.query_id == q.id, v.model == model))
        .where(q.finished_at.is_not(None))
        .order_by(q.finished_at.desc(), q.id)
        .limit(4 * limit)
    )
    found: dict[tuple[str, str], SavedQuestion] = {}
    for query_id, tenant_id, collection_ids, question, vector in rows:
        scope = Scope(tenant_id, tuple(collection_ids), "build")
        kept = cast("bytes | None", vector)  # an outer join leaves it empty
        decoded = None if kept is None else np.frombuffer(kept, "<f2").astype(np.float32)
        found.setdefault((tenant_id, question), SavedQuestion(query_id, question, scope, decoded))
    return list(found.values())[:limit]


def forget_vectors(session: Session, kept: set[str]) -> int:
    """Delete some vectors of encoders that no kept generation is made of; says how many."""
    gone = 0
    for table in (PassageVectorRow, PassageTokensRow):
        old = select(table.passage_id, table.model).where(table.model.not_in(kept)).limit(_OLD_VECTORS)
        rows = session.execute(old).all()
        gone += len(rows)
        for model in {model for _, model in rows}:
            ids = [passage_id for passage_id, of in rows if of == model]
            session.execute(delete(table).where(table.model == model, table.passage_id.in_(ids)))
    return gone
