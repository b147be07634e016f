"""The log of the index, what each tier serves, and builds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from core.db import utcnow
from core.models.base import Base, BigId, created


class IndexLogRow(Base):
    """Every add, delete and move of the index in order; the writer alone appends (decision 4)."""

    __tablename__ = "index_log"
    __table_args__ = ({"sqlite_autoincrement": True},)

    seq: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    op: Mapped[str] = mapped_column(String(8), doc="add, delete or place")
    tier: Mapped[str] = mapped_column(
        String(8),
        default="hot",
        server_default="hot",
        doc="the one that holds the passages after an add or place",
    )
    document_id: Mapped[str] = mapped_column(String(40), index=True)
    version: Mapped[int]
    passage_ids: Mapped[list[Any]] = mapped_column(default=list)
    at: Mapped[datetime] = mapped_column(default=utcnow)


class TierRow(Base):
    """What each tier serves; `generation` is authoritative, the manifest on disk must agree."""

    __tablename__ = "tiers"

    tier: Mapped[str] = mapped_column(String(8), primary_key=True)
    generation: Mapped[int] = mapped_column(default=0)
    applied_seq: Mapped[int] = mapped_column(BigInteger, default=0)
    model: Mapped[str] = mapped_column(String(120), default="")
    dimension: Mapped[int] = mapped_column(default=0)
    published_at: Mapped[datetime | None]
    previous: Mapped[list[Any]] = mapped_column(
        default=list, doc="generations kept for rollback, newest first"
    )
    refused: Mapped[str | None] = mapped_column(Text, doc="why readers refuse it, while it is damaged")
    ram_bytes: Mapped[int | None] = mapped_column(BigInteger, doc="held by a process that serves it")


class BuildRow(Base):
    __tablename__ = "builds"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tier: Mapped[str] = mapped_column(String(8), index=True)
    mode: Mapped[str] = mapped_column(String(16), default="full")
    status: Mapped[str] = mapped_column(String(16), default="queued")
    open_key: Mapped[str | None] = mapped_column(
        String(8), unique=True, doc="the tier while open: one build per tier"
    )
    model: Mapped[str] = mapped_column(
        String(120), default="", server_default="", doc="the encoder to build with; empty: the served one"
    )
    options: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default=text("'{}'"))
    wanted: Mapped[str] = mapped_column(
        String(16), default="", server_default="", doc="pause or cancel: what somebody asked of it"
    )
    seq: Mapped[int] = mapped_column(
        BigInteger, default=0, server_default="0", doc="it will replay the index log from here: keep that"
    )
    from_generation: Mapped[int] = mapped_column(default=0)
    to_generation: Mapped[int | None]
    stats: Mapped[dict[str, Any]] = mapped_column(default=dict)
    error_code: Mapped[str | None] = mapped_column(String(60))
    error_detail: Mapped[str | None] = mapped_column(Text)
    created_by: Mapped[str] = mapped_column(String(40))
    created_at: Mapped[datetime] = created()
    finished_at: Mapped[datetime | None]
