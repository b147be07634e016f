"""Which tier documents are in and why, and what recall was measured there."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from core.db import utcnow
from core.models.base import Base, BigId, created


class PlacementPolicyRow(Base):
    """One version of a collection's placement policy; the highest version is in force."""

    __tablename__ = "placement_policies"

    collection_id: Mapped[str] = mapped_column(
        ForeignKey("collections.id", ondelete="CASCADE"), primary_key=True
    )
    version: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[dict[str, Any]]
    created_by: Mapped[str] = mapped_column(String(40))
    created_at: Mapped[datetime] = created()


class DocumentPlacementRow(Base):
    """How much a document is used, and where an operator wants it; no row: never used, never moved.

    `score` is the number of uses, decayed up to `scored_at`: an idle document needs no writes.
    """

    __tablename__ = "document_placements"

    document_id: Mapped[str] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True)
    score: Mapped[float] = mapped_column(default=0.0)
    scored_at: Mapped[datetime | None]
    pinned: Mapped[str | None] = mapped_column(String(8), doc="tier that an operator chose")
    pinned_by: Mapped[str | None] = mapped_column(String(40))
    moved_at: Mapped[datetime | None]


class MoveRow(Base):
    """One move of a document between tiers, written before it is made; it outlives its document."""

    __tablename__ = "moves"
    __table_args__ = (Index("ix_moves_status", "status", "id"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    tenant_id: Mapped[str] = mapped_column(String(40))
    collection_id: Mapped[str] = mapped_column(String(40), index=True)
    document_id: Mapped[str] = mapped_column(String(40), index=True)
    open_key: Mapped[str | None] = mapped_column(
        String(40), unique=True, doc="the document while open: one move at a time"
    )
    from_tier: Mapped[str] = mapped_column(String(8))
    to_tier: Mapped[str] = mapped_column(String(8))
    reason: Mapped[str] = mapped_column(String(16))
    facts: Mapped[dict[str, Any]] = mapped_column(default=dict, doc="the numbers behind the reason")
    vectors: Mapped[int] = mapped_column(default=0)
    status: Mapped[str] = mapped_column(String(16), default="planned")
    moved_by: Mapped[str] = mapped_column(String(40))
    generation: Mapped[int | None] = mapped_column(doc="first one that serves it from the new tier")
    created_at: Mapped[datetime] = created()
    finished_at: Mapped[datetime | None]


class QuestionVectorRow(Base):
    """The vector of a sampled question, kept for the recall monitor and the gate of a build."""

    __tablename__ = "question_vectors"
    __table_args__ = (Index("ix_question_vectors_at", "measured_at", "at"),)

    query_id: Mapped[str] = mapped_column(ForeignKey("queries.id", ondelete="CASCADE"), primary_key=True)
    model: Mapped[str] = mapped_column(String(120))
    vector: Mapped[bytes] = mapped_column(LargeBinary, doc="unit length, fp16 little endian")
    at: Mapped[datetime] = mapped_column(default=utcnow)
    measured_at: Mapped[datetime | None]


class RecallSampleRow(Base):
    """Recall of one sampled question in one tier, against exact search of the same generation."""

    __tablename__ = "recall_samples"
    __table_args__ = (Index("ix_recall_samples_tier", "tier", "at"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    tier: Mapped[str] = mapped_column(String(8))
    generation: Mapped[int]
    effort: Mapped[float] = mapped_column(default=1.0)
    recall: Mapped[float]
    at: Mapped[datetime] = mapped_column(default=utcnow)


class CursorRow(Base):
    """How far a background reader has come through rows that are ordered by time."""

    __tablename__ = "cursors"

    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    at: Mapped[datetime]
