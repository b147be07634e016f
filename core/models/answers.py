"""Questions, their evidence and claims, and the plan of the engine that writes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from core.db import utcnow
from core.models.base import Base, created


class QueryRow(Base):
    """A question and its answer. `task` is `search`, `answer` or `summarize`."""

    __tablename__ = "queries"
    __table_args__ = (
        Index("ix_queries_tenant_created", "tenant_id", "created_at"),
        Index("ix_queries_finished", "finished_at"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    principal: Mapped[str] = mapped_column(String(40))
    collection_ids: Mapped[list[str]]
    question: Mapped[str] = mapped_column(Text)
    history: Mapped[list[Any]] = mapped_column(default=list)
    task: Mapped[str] = mapped_column(String(16), default="answer")
    priority: Mapped[str] = mapped_column(String(16), default="interactive")
    filters: Mapped[dict[str, Any]] = mapped_column(default=dict)
    variants: Mapped[list[Any]] = mapped_column(
        default=list, server_default="[]", doc="{kind, text} that are searched for beside the question"
    )
    options: Mapped[dict[str, Any]] = mapped_column(default=dict, doc="top_k, explain …")
    policy: Mapped[dict[str, Any]] = mapped_column(default=dict, doc="effective citation policy")
    policy_version: Mapped[int | None]
    status: Mapped[str] = mapped_column(String(16), default="queued")
    kv_tokens: Mapped[int] = mapped_column(
        default=0, server_default="0", doc="expected need of the engine, at the end the true one; 0: none"
    )
    deadline_at: Mapped[datetime | None] = mapped_column(doc="not answered by then, it ends as it is")
    cancel_requested: Mapped[bool] = mapped_column(Boolean, default=False)
    error_code: Mapped[str | None] = mapped_column(String(60))
    error_detail: Mapped[str | None] = mapped_column(Text)
    trace: Mapped[dict[str, Any]] = mapped_column(default=dict, doc="routes, ranks, scores, dropped and why")
    usage: Mapped[dict[str, Any]] = mapped_column(default=dict)
    timings_ms: Mapped[dict[str, Any]] = mapped_column(default=dict)
    index_generation: Mapped[int | None]
    stale_since: Mapped[datetime | None]
    replay_of: Mapped[str | None] = mapped_column(String(40))
    created_at: Mapped[datetime] = created()
    finished_at: Mapped[datetime | None]


class EvidenceRow(Base):
    """What a query may cite. Plain ids, no foreign keys: an answer outlives the passages it cites."""

    __tablename__ = "evidence"

    query_id: Mapped[str] = mapped_column(ForeignKey("queries.id", ondelete="CASCADE"), primary_key=True)
    marker: Mapped[int] = mapped_column(primary_key=True)
    passage_id: Mapped[int] = mapped_column(BigInteger)
    document_id: Mapped[str] = mapped_column(String(40), index=True)
    version: Mapped[int]
    score: Mapped[float]
    routes: Mapped[list[Any]] = mapped_column(default=list)
    sentences: Mapped[list[Any]] = mapped_column(default=list)
    collapsed: Mapped[int] = mapped_column(default=0)


class ClaimRow(Base):
    """One sentence of an answer. `erased` when a cited document was deleted: marker and reason stay."""

    __tablename__ = "claims"

    query_id: Mapped[str] = mapped_column(ForeignKey("queries.id", ondelete="CASCADE"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(Text)
    verdict: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str] = mapped_column(Text, default="")
    citations: Mapped[list[Any]] = mapped_column(default=list)
    erased: Mapped[bool] = mapped_column(Boolean, default=False)


class EnginePlanRow(Base):
    """The plan the generation worker last published; one row."""

    __tablename__ = "engine_plans"

    id: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[dict[str, Any]]
    published_at: Mapped[datetime] = mapped_column(default=utcnow)
