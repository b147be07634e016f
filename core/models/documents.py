"""Collections, their citation policies, documents and their versions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from core.db import utcnow
from core.models.base import Base, created


class CollectionRow(Base):
    """A collection. Once `deleted_at` is set it is hidden; the row goes with its last document."""

    __tablename__ = "collections"
    __table_args__ = (UniqueConstraint("tenant_id", "name"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    parse: Mapped[dict[str, Any]] = mapped_column(default=dict, doc="what differs from the settings")
    created_at: Mapped[datetime] = created()
    deleted_at: Mapped[datetime | None]


class PolicyRow(Base):
    """One version of a collection's citation policy; the highest version is in force."""

    __tablename__ = "policies"

    collection_id: Mapped[str] = mapped_column(
        ForeignKey("collections.id", ondelete="CASCADE"), primary_key=True
    )
    version: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[dict[str, Any]]
    created_by: Mapped[str] = mapped_column(String(40))
    created_at: Mapped[datetime] = created()


class DocumentRow(Base):
    """A document. `live_version` is what every route serves; None until the first version is indexed.

    `content_hash` is that of the newest version, or `deleting:<id>` while it is being deleted, so that
    the same bytes may come again.
    """

    __tablename__ = "documents"
    __table_args__ = (
        UniqueConstraint("tenant_id", "collection_id", "content_hash"),
        Index("ix_documents_collection_status", "collection_id", "status"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), index=True)
    collection_id: Mapped[str] = mapped_column(ForeignKey("collections.id"))
    name: Mapped[str] = mapped_column(String(400))
    content_hash: Mapped[str] = mapped_column(String(80))
    status: Mapped[str] = mapped_column(String(16), default="queued")
    latest_version: Mapped[int] = mapped_column(default=1)
    live_version: Mapped[int | None]
    error_code: Mapped[str | None] = mapped_column(String(60))
    error_detail: Mapped[str | None] = mapped_column(Text)
    trust: Mapped[str] = mapped_column(String(16), default="normal")
    tags: Mapped[list[str]] = mapped_column(default=list)
    meta: Mapped[dict[str, Any]] = mapped_column(default=dict)
    parse: Mapped[str] = mapped_column(
        String(400), default="", doc="canonical JSON of what differs from the collection; empty: nothing"
    )
    tier: Mapped[str] = mapped_column(
        String(8), default="hot", server_default="hot", doc="where the live version's vectors are"
    )
    wanted_tier: Mapped[str | None] = mapped_column(
        String(8), index=True, doc="where they are to be moved; None: where they are"
    )
    created_at: Mapped[datetime] = created()
    updated_at: Mapped[datetime] = mapped_column(default=utcnow, onupdate=utcnow)


class DocumentVersionRow(Base):
    """One upload of a document: its original in the blob store and what normalize made of it."""

    __tablename__ = "document_versions"

    document_id: Mapped[str] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    blob_hash: Mapped[str] = mapped_column(String(64), index=True)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    file_name: Mapped[str] = mapped_column(String(400))
    declared_type: Mapped[str] = mapped_column(String(120), default="")
    media_type: Mapped[str] = mapped_column(String(120), default="", doc="as sniffed")
    encoding: Mapped[str | None] = mapped_column(String(40))
    encoding_confidence: Mapped[float | None]
    title: Mapped[str] = mapped_column(String(400), default="")
    lang: Mapped[str] = mapped_column(String(8), default="und")
    text: Mapped[str | None] = mapped_column(Text, doc="normalized, as shown and cited")
    offset_map: Mapped[bytes | None] = mapped_column(LargeBinary, doc="compressed; see ingest/normalize.py")
    outline: Mapped[list[Any]] = mapped_column(default=list, doc="headings with spans")
    warnings: Mapped[list[Any]] = mapped_column(default=list)
    pages: Mapped[int | None]
    passage_count: Mapped[int] = mapped_column(default=0)
    properties: Mapped[dict[str, Any]] = mapped_column(default=dict, doc="author, dates … as the file says")
    parse: Mapped[dict[str, Any]] = mapped_column(default=dict, doc="the choices it was made with")
    parser_version: Mapped[str] = mapped_column(String(40), default="")
    recipe: Mapped[str] = mapped_column(
        String(40), default="", doc="digest of parser version and choices; another one means outdated"
    )
    created_at: Mapped[datetime] = created()


class ReprocessRow(Base):
    """A walk over a collection's documents that makes a new version of each one wanted.

    Documents are taken in the order of their ids; `cursor` is the last one looked at.
    """

    __tablename__ = "reprocesses"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(String(40), index=True)
    collection_id: Mapped[str] = mapped_column(ForeignKey("collections.id", ondelete="CASCADE"), index=True)
    open_key: Mapped[str | None] = mapped_column(
        String(40), unique=True, doc="the collection while open: one walk per collection"
    )
    only: Mapped[str] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16), default="running")
    cursor: Mapped[str] = mapped_column(String(40), default="")
    until: Mapped[str] = mapped_column(String(40), doc="ids up to this one were there when it began")
    total: Mapped[int] = mapped_column(default=0)
    queued: Mapped[int] = mapped_column(default=0)
    skipped: Mapped[int] = mapped_column(default=0)
    created_by: Mapped[str] = mapped_column(String(40))
    created_at: Mapped[datetime] = created()
    finished_at: Mapped[datetime | None]
