"""Rows of documents and collections ↔ values. Every read takes a scope and filters by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, false, func, not_, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from core.db import utcnow
from core.errors import NotFound
from core.models import (
    CollectionRow,
    DocumentRow,
    DocumentVersionRow,
    JobRow,
    PassageRow,
)
from core.types import DocumentStatus, JobStatus, Lang, Passage, Scope, Span
from ingest.near_duplicates import ids_with_near_duplicates
from ingest.recipe import Recipe
from ingest.values import Collection
from ingest.wanted_recipes import is_outdated, own_choices

OPEN_JOBS = (JobStatus.WAITING.value, JobStatus.RUNNING.value)


# -- scope -------------------------------------------------------------------------------------


def in_scope(scope: Scope, tenant: Any, collection: Any) -> ColumnElement[bool]:
    """The filter that every read carries: same tenant, and a collection the key may read."""
    if not scope.tenant_id:
        return false()
    if scope.collection_ids is None:
        return tenant == scope.tenant_id
    return and_(tenant == scope.tenant_id, collection.in_(scope.collection_ids))


def lock_blobs(session: Session, digests: Iterable[str]) -> None:
    """Serialise uploads and purges of the same bytes until the transaction ends.

    Always taken before row locks, in sorted order, so that two holders cannot wait for each other. SQLite
    has a single writer already.
    """
    if session.get_bind().dialect.name != "postgresql":
        return
    for digest in sorted(set(digests)):
        session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": int(digest[:15], 16)})


# -- collections -------------------------------------------------------------------------------


def find_collection(
    session: Session, scope: Scope, reference: str, *, share: bool = False, lock: bool = False
) -> CollectionRow:
    """A visible collection by id or name.

    Args:
        session: any session.
        scope: who asks.
        reference: id or name; an id wins.
        share: keep it from being deleted until the transaction ends.
        lock: take it exclusively, to delete or rename it.

    Raises:
        NotFound: unknown, deleted or not visible.
    """
    query = select(CollectionRow).where(
        in_scope(scope, CollectionRow.tenant_id, CollectionRow.id),
        CollectionRow.deleted_at.is_(None),
        (CollectionRow.id == reference) | (CollectionRow.name == reference),
    )
    if lock or share:
        query = query.with_for_update(read=not lock)
    rows = session.scalars(query.execution_options(populate_existing=True)).all()
    if not rows:
        raise NotFound(f"No such collection: {reference}", collection=reference)
    return next((r for r in rows if r.id == reference), rows[0])


def collections_page(session: Session, scope: Scope, cursor: str | None, limit: int) -> list[CollectionRow]:
    """Up to `limit` collections after `cursor`, oldest first."""
    query = select(CollectionRow).where(
        in_scope(scope, CollectionRow.tenant_id, CollectionRow.id), CollectionRow.deleted_at.is_(None)
    )
    if cursor is not None:
        query = query.where(CollectionRow.id > cursor)
    return list(session.scalars(query.order_by(CollectionRow.id).limit(limit)))


def collection_values(session: Session, rows: Sequence[CollectionRow]) -> tuple[Collection, ...]:
    """Rows to values, with document counts in one query."""
    counted = session.execute(
        select(DocumentRow.collection_id, func.count())
        .where(
            DocumentRow.collection_id.in_([r.id for r in rows]),
            DocumentRow.status != DocumentStatus.DELETING.value,
        )
        .group_by(DocumentRow.collection_id)
    )
    counts = {collection_id: int(n) for collection_id, n in counted}
    return tuple(
        Collection(r.id, r.name, counts.get(r.id, 0), dict(r.parse), Recipe.of(r.parse).choices, r.created_at)
        for r in rows
    )


# -- documents ---------------------------------------------------------------------------------


def insert_document(session: Session, **values: Any) -> str | None:
    """Insert a document unless its (tenant, collection, content hash) is taken; the id, or None."""
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    return session.scalar(
        insert(DocumentRow)
        .values(**values)
        .on_conflict_do_nothing(index_elements=["tenant_id", "collection_id", "content_hash"])
        .returning(DocumentRow.id)
    )


def document_by_hash(session: Session, scope: Scope, collection_id: str, digest: str) -> DocumentRow | None:
    """The document whose newest version has these bytes."""
    return session.scalar(
        select(DocumentRow)
        .where(
            in_scope(scope, DocumentRow.tenant_id, DocumentRow.collection_id),
            DocumentRow.collection_id == collection_id,
            DocumentRow.content_hash == digest,
        )
        .with_for_update()
        .execution_options(populate_existing=True)
    )


def find_document(session: Session, scope: Scope, document_id: str, *, lock: bool = False) -> DocumentRow:
    """A visible document, one being deleted included; raises `NotFound`."""
    query = select(DocumentRow).where(
        in_scope(scope, DocumentRow.tenant_id, DocumentRow.collection_id), DocumentRow.id == document_id
    )
    if lock:
        query = query.with_for_update().execution_options(populate_existing=True)
    row = session.scalar(query)
    if row is None:
        raise NotFound("No such document.", document_id=document_id)
    return row


def find_live(session: Session, scope: Scope, document_id: str) -> DocumentRow:
    """A document that routes may read; one being deleted does not exist any more for them."""
    row = find_document(session, scope, document_id)
    if row.status == DocumentStatus.DELETING.value:
        raise NotFound("The document is being deleted.", document_id=document_id)
    return row


def find_version(session: Session, document: DocumentRow, version: int | None) -> DocumentVersionRow:
    """A version with its text: the given one, or the live one.

    Raises:
        NotFound: no such version, or it has no text (yet).
    """
    wanted = version if version is not None else document.live_version
    row = None if wanted is None else session.get(DocumentVersionRow, (document.id, wanted))
    if row is None or row.text is None:
        raise NotFound(
            "The document has no readable version yet; see its status."
            if version is None
            else "No such version.",
            document_id=document.id,
        )
    return row


def documents_page(
    session: Session,
    scope: Scope,
    *,
    collection_id: str | None,
    status: DocumentStatus | None,
    outdated: bool | None,
    near_duplicates: bool | None,
    cursor: str | None,
    limit: int,
) -> list[DocumentRow]:
    """Up to `limit` documents before `cursor`, newest first."""
    within = in_scope(scope, DocumentRow.tenant_id, DocumentRow.collection_id)
    if collection_id is not None:
        within = and_(within, DocumentRow.collection_id == collection_id)
    query = select(DocumentRow).where(within)
    if outdated is not None:
        wrong = is_outdated(session, within)
        query = query.where(wrong if outdated else not_(wrong))
    if near_duplicates is not None:
        alike = DocumentRow.id.in_(ids_with_near_duplicates())
        query = query.where(alike if near_duplicates else not_(alike))
    if status is not None:
        query = query.where(DocumentRow.status == status.value)
    if cursor is not None:
        query = query.where(DocumentRow.id < cursor)
    return list(session.scalars(query.order_by(DocumentRow.id.desc()).limit(limit)))


def add_version(session: Session, document_id: str, version: int, **values: Any) -> None:
    """Add the row of a version whose work has not begun."""
    session.add(DocumentVersionRow(document_id=document_id, version=version, **values))
    session.flush()


def cancel_jobs(session: Session, document_id: str) -> None:
    """Take back the waiting work of a document and ask the running one to stop."""
    rows = session.scalars(
        select(JobRow)
        .where(
            JobRow.subject_kind == "document",
            JobRow.subject_id == document_id,
            JobRow.status.in_(OPEN_JOBS),
        )
        .with_for_update()
    )
    for row in rows:
        row.cancel_requested = True
        if row.status == JobStatus.WAITING.value:
            row.status, row.finished_at = JobStatus.CANCELLED.value, utcnow()
    session.flush()


# -- passages ----------------------------------------------------------------------------------


def passage_value(row: PassageRow) -> Passage:
    """Row to value."""
    return Passage(
        id=row.id,
        document_id=row.document_id,
        version=row.version,
        ordinal=row.ordinal,
        span=Span(row.start, row.end),
        page=row.page,
        heading_path=tuple(row.heading_path),
        lang=Lang(row.lang),
        text=row.text,
        page_breaks=tuple((start, page) for start, page in row.page_breaks),
    )


def passages_of(
    session: Session, document_id: str, version: int, *, after: int = -1, limit: int | None = None
) -> tuple[Passage, ...]:
    """Passages of a version in order, those after ordinal `after`."""
    query = (
        select(PassageRow)
        .where(
            PassageRow.document_id == document_id, PassageRow.version == version, PassageRow.ordinal > after
        )
        .order_by(PassageRow.ordinal)
        .limit(limit)
    )
    return tuple(passage_value(r) for r in session.scalars(query))


# -- for the tasks -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Original:
    """Where a version's bytes are, what the client called them, and how to read them today."""

    blob_hash: str
    file_name: str
    declared_type: str
    recipe: Recipe


def original_of(session: Session, document_id: str, version: int) -> Original | None:
    """The original of a version, or None when the document is gone or being deleted."""
    v = DocumentVersionRow
    found = session.execute(
        select(v.blob_hash, v.file_name, v.declared_type, CollectionRow.parse, DocumentRow.parse)
        .join(DocumentRow, DocumentRow.id == v.document_id)
        .join(CollectionRow, CollectionRow.id == DocumentRow.collection_id)
        .where(
            v.document_id == document_id,
            v.version == version,
            DocumentRow.status != DocumentStatus.DELETING.value,
        )
    ).one_or_none()
    if found is None:
        return None
    blob_hash, file_name, declared_type, of_collection, of_document = found
    return Original(blob_hash, file_name, declared_type, Recipe.of(of_collection, own_choices(of_document)))


def passages_to_link(
    session: Session, scope: Scope, document_id: str, version: int
) -> tuple[str, tuple[Passage, ...]] | None:
    """Title and passages of a version, or None when the document is gone or being deleted."""
    v = DocumentVersionRow
    title = session.scalar(
        select(v.title)
        .join(DocumentRow, DocumentRow.id == v.document_id)
        .where(
            in_scope(scope, DocumentRow.tenant_id, DocumentRow.collection_id),
            v.document_id == document_id,
            v.version == version,
            DocumentRow.status != DocumentStatus.DELETING.value,
        )
    )
    return None if title is None else (title, passages_of(session, document_id, version))


def blobs_of(session: Session, document_id: str) -> list[str]:
    """Hashes of all originals of a document."""
    return list(
        session.scalars(
            select(DocumentVersionRow.blob_hash)
            .where(DocumentVersionRow.document_id == document_id)
            .distinct()
        )
    )
