"""Entities, their names, mentions of them, and what people decided about them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, ForeignKey, Index, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from core.db import utcnow
from core.models.base import EPOCH, Base, BigId, created


class EntityRow(Base):
    __tablename__ = "entities"
    __table_args__ = (Index("ix_entities_provenance", "tenant_id", "provenance"),)

    id: Mapped[str] = mapped_column(String(80), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), index=True)
    type: Mapped[str] = mapped_column(String(40))
    name: Mapped[str] = mapped_column(String(300))
    description: Mapped[str] = mapped_column(Text, default="")
    same_as: Mapped[list[str]] = mapped_column(default=list, doc="external ids as URLs")
    provenance: Mapped[str] = mapped_column(String(40), default="import")
    merged_into: Mapped[str | None] = mapped_column(String(80))
    blocked: Mapped[bool] = mapped_column(Boolean, default=False)
    created_at: Mapped[datetime] = created()


class EntityAliasRow(Base):
    __tablename__ = "entity_aliases"
    __table_args__ = (
        Index("ix_entity_aliases_folded", "tenant_id", "folded"),
        Index("ix_entity_aliases_changed", "tenant_id", "changed_at"),
    )

    entity_id: Mapped[str] = mapped_column(ForeignKey("entities.id", ondelete="CASCADE"), primary_key=True)
    folded: Mapped[str] = mapped_column(String(300), primary_key=True, doc="search form of the alias")
    tenant_id: Mapped[str] = mapped_column(String(40))
    alias: Mapped[str] = mapped_column(String(300))
    lang: Mapped[str] = mapped_column(String(8), default="und")
    weight: Mapped[float] = mapped_column(default=1.0, doc="relative frequency, for the prior")
    changed_at: Mapped[datetime] = mapped_column(
        default=utcnow, onupdate=utcnow, server_default=EPOCH, doc="tells a re-link what is new"
    )


class EntityEventRow(Base):
    """A human override; the list of events is replayed by every re-link."""

    __tablename__ = "entity_events"

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    tenant_id: Mapped[str] = mapped_column(String(40), index=True)
    entity_id: Mapped[str] = mapped_column(String(80), index=True)
    action: Mapped[str] = mapped_column(String(20))
    payload: Mapped[dict[str, Any]] = mapped_column(default=dict)
    principal: Mapped[str] = mapped_column(String(40))
    undone: Mapped[bool] = mapped_column(Boolean, default=False)
    at: Mapped[datetime] = mapped_column(default=utcnow)


class MentionRow(Base):
    __tablename__ = "mentions"
    __table_args__ = (
        Index("ix_mentions_document_version", "document_id", "version"),
        Index("ix_mentions_entity", "tenant_id", "entity_id"),
        Index("ix_mentions_key", "tenant_id", "key"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=True)
    tenant_id: Mapped[str] = mapped_column(String(40))
    passage_id: Mapped[int] = mapped_column(ForeignKey("passages.id", ondelete="CASCADE"), index=True)
    document_id: Mapped[str] = mapped_column(String(40))
    version: Mapped[int]
    start: Mapped[int]
    end: Mapped[int]
    surface: Mapped[str] = mapped_column(String(300))
    type: Mapped[str] = mapped_column(String(40), default="")
    entity_id: Mapped[str | None] = mapped_column(String(80))
    score: Mapped[float] = mapped_column(default=0.0)
    reason: Mapped[str] = mapped_column(Text, default="")
    key: Mapped[str] = mapped_column(
        String(300), default="", server_default="", doc="folded full name; see ingest/nil_clusters.py"
    )
    affiliations: Mapped[str] = mapped_column(
        Text, default="", server_default="", doc="of a person: organisations beside the name, joined by |"
    )
    growing: Mapped[bool] = mapped_column(
        Boolean, default=False, server_default=false(), doc="no catalogue knows the name"
    )
