"""All tables. Rows stay inside `repository.py` files and `core/jobs.py`; callers get values.

Passage ids are 64-bit integers because FAISS and tantivy key on them. Every row that a person can
own carries its tenant.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from core.db import UtcDateTime, utcnow

_Json = JSON().with_variant(postgresql.JSONB(), "postgresql")
_EPOCH = text("'1970-01-01 00:00:00'")
_BigId = BigInteger().with_variant(Integer, "sqlite")  # SQLite autoincrements INTEGER only


class Base(DeclarativeBase):
    """Declarative base with stable constraint names, so that migrations can drop them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - read by SQLAlchemy as a class attribute
        datetime: UtcDateTime,
        dict[str, Any]: _Json,
        list[Any]: _Json,
        list[str]: _Json,
    }


def _created() -> Mapped[datetime]:
    return mapped_column(default=utcnow)


# -- who ---------------------------------------------------------------------------------------


class TenantRow(Base):
    __tablename__ = "tenants"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    created_at: Mapped[datetime] = _created()


class ApiKeyRow(Base):
    """A hashed key. `collection_ids` None means every collection of the tenant."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    role: Mapped[str] = mapped_column(String(16))
    key_hash: Mapped[str] = mapped_column(String(64), unique=True)
    collection_ids: Mapped[list[str] | None]
    created_at: Mapped[datetime] = _created()
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class AuditRow(Base):
    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(_BigId, primary_key=True, autoincrement=True)
    at: Mapped[datetime] = mapped_column(default=utcnow, index=True)
    tenant_id: Mapped[str] = mapped_column(String(40), index=True)
    principal: Mapped[str] = mapped_column(String(40))
    action: Mapped[str] = mapped_column(String(60))
    subject: Mapped[str] = mapped_column(String(80))
    request_id: Mapped[str] = mapped_column(String(64), default="-")
    details: Mapped[dict[str, Any]] = mapped_column(default=dict)


# -- work --------------------------------------------------------------------------------------


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
    created_at: Mapped[datetime] = _created()
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class LeaseRow(Base):
    """A named exclusive right with a fencing number that only grows."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    holder: Mapped[str | None] = mapped_column(String(80))
    fence: Mapped[int] = mapped_column(BigInteger, default=0)
    expires_at: Mapped[datetime | None]


# -- documents ---------------------------------------------------------------------------------


class CollectionRow(Base):
    """A collection. Once `deleted_at` is set it is hidden; the row goes with its last document."""

    __tablename__ = "collections"
    __table_args__ = (UniqueConstraint("tenant_id", "name"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    parse: Mapped[dict[str, Any]] = mapped_column(default=dict, doc="what differs from the settings")
    created_at: Mapped[datetime] = _created()
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
    created_at: Mapped[datetime] = _created()


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
    created_at: Mapped[datetime] = _created()
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
    created_at: Mapped[datetime] = _created()


class SignatureRow(Base):
    """MinHash signature of a version's text, for near-duplicates (see `ingest/near.py`)."""

    __tablename__ = "signatures"
    __table_args__ = (
        ForeignKeyConstraint(
            ["document_id", "version"],
            ["document_versions.document_id", "document_versions.version"],
            ondelete="CASCADE",
        ),
    )

    document_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    values: Mapped[bytes] = mapped_column(LargeBinary, doc="uint32, little endian")


class SignatureBandRow(Base):
    """One band of a signature: documents of a collection that share a key may be near-duplicates."""

    __tablename__ = "signature_bands"
    __table_args__ = (
        ForeignKeyConstraint(
            ["document_id", "version"],
            ["document_versions.document_id", "document_versions.version"],
            ondelete="CASCADE",
        ),
        Index("ix_signature_bands_key", "collection_id", "key"),
    )

    document_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[int] = mapped_column(BigInteger, primary_key=True, doc="hash of band number and values")
    collection_id: Mapped[str] = mapped_column(String(40))


class NearDuplicateRow(Base):
    """Two versions of different documents whose texts overlap; `document_id` is the smaller id."""

    __tablename__ = "near_duplicates"
    __table_args__ = (
        ForeignKeyConstraint(
            ["document_id", "version"],
            ["document_versions.document_id", "document_versions.version"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["other_id", "other_version"],
            ["document_versions.document_id", "document_versions.version"],
            ondelete="CASCADE",
        ),
        Index("ix_near_duplicates_other", "other_id", "other_version"),
    )

    document_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    other_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    other_version: Mapped[int] = mapped_column(primary_key=True)
    similarity: Mapped[float] = mapped_column(doc="Jaccard index of shingles, 0 to 1")


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
    created_at: Mapped[datetime] = _created()
    finished_at: Mapped[datetime | None]


class PassageRow(Base):
    __tablename__ = "passages"
    __table_args__ = (
        UniqueConstraint("document_id", "version", "ordinal"),
        ForeignKeyConstraint(
            ["document_id", "version"],
            ["document_versions.document_id", "document_versions.version"],
            ondelete="CASCADE",
        ),
        {"sqlite_autoincrement": True},  # a deleted id is never given again, so an index cannot confuse them
    )

    id: Mapped[int] = mapped_column(_BigId, primary_key=True, autoincrement=True)
    tenant_id: Mapped[str] = mapped_column(String(40), index=True)
    collection_id: Mapped[str] = mapped_column(String(40), index=True)
    document_id: Mapped[str] = mapped_column(String(40))
    version: Mapped[int]
    ordinal: Mapped[int]
    start: Mapped[int]
    end: Mapped[int]
    page: Mapped[int | None]
    heading_path: Mapped[list[str]] = mapped_column(default=list)
    page_breaks: Mapped[list[Any]] = mapped_column(
        default=list, server_default=text("'[]'"), doc="(offset, page) of each page that begins inside"
    )
    lang: Mapped[str] = mapped_column(String(8))
    text: Mapped[str] = mapped_column(Text)


class PassageVectorRow(Base):
    """The unit vector of a passage, fp16 little endian; index files are derived from these rows."""

    __tablename__ = "passage_vectors"

    passage_id: Mapped[int] = mapped_column(ForeignKey("passages.id", ondelete="CASCADE"), primary_key=True)
    model: Mapped[str] = mapped_column(String(120), primary_key=True)
    vector: Mapped[bytes] = mapped_column(LargeBinary)


class PassageTokensRow(Base):
    """Token vectors of a passage for the rerank, as `retrieval/token_codec.py` packs them (at most 16 kB)."""

    __tablename__ = "passage_tokens"

    passage_id: Mapped[int] = mapped_column(ForeignKey("passages.id", ondelete="CASCADE"), primary_key=True)
    model: Mapped[str] = mapped_column(String(120), primary_key=True)
    packed: Mapped[bytes] = mapped_column(LargeBinary)


# -- entities ----------------------------------------------------------------------------------


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
    created_at: Mapped[datetime] = _created()


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
        default=utcnow, onupdate=utcnow, server_default=_EPOCH, doc="tells a re-link what is new"
    )


class EntityEventRow(Base):
    """A human override; the list of events is replayed by every re-link."""

    __tablename__ = "entity_events"

    id: Mapped[int] = mapped_column(_BigId, primary_key=True, autoincrement=True)
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

    id: Mapped[int] = mapped_column(_BigId, primary_key=True, autoincrement=True)
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


# -- index -------------------------------------------------------------------------------------


class IndexLogRow(Base):
    """Every add, delete and move of the index in order; the writer alone appends (decision 4)."""

    __tablename__ = "index_log"
    __table_args__ = ({"sqlite_autoincrement": True},)

    seq: Mapped[int] = mapped_column(_BigId, primary_key=True, autoincrement=True)
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
    created_at: Mapped[datetime] = _created()
    finished_at: Mapped[datetime | None]


# -- placement and recall ----------------------------------------------------------------------


class PlacementPolicyRow(Base):
    """One version of a collection's placement policy; the highest version is in force."""

    __tablename__ = "placement_policies"

    collection_id: Mapped[str] = mapped_column(
        ForeignKey("collections.id", ondelete="CASCADE"), primary_key=True
    )
    version: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[dict[str, Any]]
    created_by: Mapped[str] = mapped_column(String(40))
    created_at: Mapped[datetime] = _created()


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

    id: Mapped[int] = mapped_column(_BigId, primary_key=True, autoincrement=True)
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
    created_at: Mapped[datetime] = _created()
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

    id: Mapped[int] = mapped_column(_BigId, primary_key=True, autoincrement=True)
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
    created_at: Mapped[datetime] = _created()


class ProfileUseRow(Base):
    """One change of the profile in force; the newest of a target holds. Rows are added, never changed.

    No `profile_id`: none of its own, so the tenant's or the built-in one is in force.
    """

    __tablename__ = "retrieval_profile_uses"
    __table_args__ = (Index("ix_retrieval_profile_uses_target", "target", "id"),)

    id: Mapped[int] = mapped_column(_BigId, primary_key=True, autoincrement=True)
    target: Mapped[str] = mapped_column(String(40))
    profile_id: Mapped[str | None] = mapped_column(ForeignKey("retrieval_profiles.id", ondelete="CASCADE"))
    before: Mapped[int | None] = mapped_column(_BigId, doc="the use that a rollback returns to")
    action: Mapped[str] = mapped_column(String(16), doc="apply, rollback")
    forced: Mapped[bool] = mapped_column(Boolean, default=False)
    applied_by: Mapped[str] = mapped_column(String(40))
    applied_at: Mapped[datetime] = mapped_column(default=utcnow)


# -- queries -----------------------------------------------------------------------------------


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
    created_at: Mapped[datetime] = _created()
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
