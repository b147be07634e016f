"""Work to do, and the leases under which it is done."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from core.models.base import Base, created


class JobRow(Base):
    """One durable unit of work: the intent, its lease and its outcome (see `core/jobs.py`)."""

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("task", "subject_id", "subject_version", "attempt_key"),
        Index("ix_jobs_status_queue", "status", "queue"),
        Index("ix_jobs_subject", "subject_kind", "subject_id"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(String(40), index=True)
    task: Mapped[str] = mapped_column(String(60))
    queue: Mapped[str] = mapped_column(String(20))
    subject_kind: Mapped[str] = mapped_column(String(20))
    subject_id: Mapped[str] = mapped_column(String(40))
    subject_version: Mapped[int] = mapped_column(default=0)
    attempt_key: Mapped[str] = mapped_column(
        String(40), default="", doc="tells a reprocess apart from the first run"
    )
    args: Mapped[dict[str, Any]] = mapped_column(default=dict, doc="ids and small options only")
    gives_way: Mapped[bool] = mapped_column(
        Boolean, default=False, doc="waits behind the work that people wait for"
    )
    status: Mapped[str] = mapped_column(String(16), default="waiting")
    attempts: Mapped[int] = mapped_column(default=0)
    progress_done: Mapped[int] = mapped_column(default=0)
    progress_total: Mapped[int] = mapped_column(default=0)
    lease_token: Mapped[str | None] = mapped_column(String(40))
    lease_expires_at: Mapped[datetime | None]
    cancel_requested: Mapped[bool] = mapped_column(Boolean, default=False)
    sends: Mapped[int] = mapped_column(default=0)
    next_send_at: Mapped[datetime | None]
    error_code: Mapped[str | None] = mapped_column(String(60))
    error_detail: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = created()
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class LeaseRow(Base):
    """A named exclusive right with a fencing number that only grows."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    holder: Mapped[str | None] = mapped_column(String(80))
    fence: Mapped[int] = mapped_column(BigInteger, default=0)
    expires_at: Mapped[datetime | None]
