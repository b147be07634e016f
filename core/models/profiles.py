"""Retrieval profiles and which of them is in force."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from core.db import utcnow
from core.models.base import Base, BigId, created


class RetrievalProfileRow(Base):
    """A version of the numbers of the ranking, for a tenant or one collection of it, and what it scored."""

    __tablename__ = "retrieval_profiles"
    __table_args__ = (UniqueConstraint("target", "version"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), index=True)
    collection_id: Mapped[str | None] = mapped_column(
        ForeignKey("collections.id", ondelete="CASCADE"), index=True
    )
    target: Mapped[str] = mapped_column(String(40), doc="the collection, or else the tenant")
    version: Mapped[int]
    body: Mapped[dict[str, Any]]
    figures: Mapped[dict[str, Any]] = mapped_column(default=dict, doc="what a tune measured")
    created_by: Mapped[str] = mapped_column(String(40))
    created_at: Mapped[datetime] = created()


class ProfileUseRow(Base):
    """One change of the profile in force; the newest of a target holds. Rows are added, never changed.

    No `profile_id`: none of its own, so the tenant's or the built-in one is in force.
    """

    __tablename__ = "retrieval_profile_uses"
    __table_args__ = (Index("ix_retrieval_profile_uses_target", "target", "id"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    target: Mapped[str] = mapped_column(String(40))
    profile_id: Mapped[str | None] = mapped_column(ForeignKey("retrieval_profiles.id", ondelete="CASCADE"))
    before: Mapped[int | None] = mapped_column(BigId, doc="the use that a rollback returns to")
    action: Mapped[str] = mapped_column(String(16), doc="apply, rollback")
    forced: Mapped[bool] = mapped_column(Boolean, default=False)
    applied_by: Mapped[str] = mapped_column(String(40))
    applied_at: Mapped[datetime] = mapped_column(default=utcnow)
