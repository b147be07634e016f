"""Rows of documents and collections ↔ values. Every read takes a scope and filters by it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, false, func, not_, or_, select, text, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from core.db import utcnow
from core.errors import NotFound
from core.models import (
    CollectionRow,
    DocumentRow,
    DocumentVersionRow,
    JobRow,
    MentionRow,
    PassageRow,
)
from core.types import DocumentStatus, JobStatus, Lang, Passage, Scope, Span
from ingest.near_duplicates import ids_with_near_duplicates, near_duplicates_of
from ingest.recipe import Recipe
from ingest.values import Collection, Counts, Document, NearDuplicate, Problem, Progress, Trust

SETTLED = (DocumentStatus.READY.value, DocumentStatus.FAILED.value)
_READY = DocumentStatus.READY.value
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


def own_choices(stored: str) -> dict[str, Any]:
    """The choices of a document, as its row holds them."""
    return json.loads(stored) if stored else {}


def stored_choices(chosen: dict[str, Any]) -> str:
    """The form in which a document's row holds its choices: equal choices are equal strings."""
    return json.dumps(chosen, sort_keys=True) if chosen else ""


def wanted_recipes(session: Session, rows: Sequence[DocumentRow]) -> dict[str, str]:
    """Per document: the digest that a version made now would get."""
    ids = {r.collection_id for r in rows}
    chosen = dict(
        session.execute(select(CollectionRow.id, CollectionRow.parse).where(CollectionRow.id.in_(ids))).all()
    )
    made: dict[tuple[str, str], str] = {}
    for row in rows:
        key = (row.collection_id, row.parse)
        if key not in made:
            made[key] = Recipe.of(chosen.get(row.collection_id, {}), own_choices(row.parse)).digest
    return {row.id: made[row.collection_id, row.parse] for row in rows}


def is_outdated(session: Session, within: ColumnElement[bool]) -> ColumnElement[bool]:
    """Settled documents of `within` whose newest version was made or tried with another recipe than today's.

    Few different choices are in use at a time, so each is compared by its digest.
    """
    used = session.execute(
        select(DocumentRow.collection_id, DocumentRow.parse, CollectionRow.parse)
        .join(CollectionRow, CollectionRow.id == DocumentRow.collection_id)
        .where(within)
        .group_by(DocumentRow.collection_id, DocumentRow.parse, CollectionRow.parse)
    ).all()
    v = DocumentVersionRow
    return or_(
        false(),
        *(
            and_(
                DocumentRow.collection_id == collection_id,
                DocumentRow.parse == own,
                DocumentRow.status.in_(SETTLED),
                exists().where(
                    v.document_id == DocumentRow.id,
                    v.version == DocumentRow.latest_version,
                    v.recipe != Recipe.of(shared, own_choices(own)).digest,
                ),
            )
            for collection_id, own, shared in used
        ),
    )


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


def document_values(session: Session, rows: Sequence[DocumentRow]) -> tuple[Document, ...]:
    """Rows to values; stage, progress and counts come from the jobs and outputs themselves."""
    keys = [(r.id, r.latest_version) for r in rows]
    if not keys:
        return ()
    # Read columns, not rows: a list must not load the texts.
    v = DocumentVersionRow
    columns = (
        v.document_id, v.media_type, v.declared_type, v.size_bytes, v.encoding, v.encoding_confidence,
        v.title, v.lang, v.pages, v.warnings, v.passage_count, v.properties, v.parse, v.parser_version,
        v.recipe,
    )  # fmt: skip
    versions = {
        r.document_id: r
        for r in session.execute(select(*columns).where(tuple_(v.document_id, v.version).in_(keys)))
    }
    jobs = _present_jobs(session, [(r.id, r.latest_version) for r in rows if r.status != _READY])
    counts = _mention_counts(session, keys)
    wanted = wanted_recipes(session, rows)
    near = near_duplicates_of(session, [r.id for r in rows])
    return tuple(
        _document_value(
            r, versions[r.id], jobs.get(r.id), counts.get(r.id, (0, 0)), wanted[r.id], near.get(r.id, ())
        )
        for r in rows
    )


def _present_jobs(session: Session, keys: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Per document: the open job of its newest version, or the job that ended last."""
    jobs: dict[str, Any] = {}
    if not keys:
        return jobs
    j = JobRow
    rows = session.execute(
        select(
            j.id, j.subject_id, j.task, j.status, j.progress_done, j.progress_total, j.error_code,
            j.error_detail, j.created_at,
        ).where(j.subject_kind == "document", tuple_(j.subject_id, j.subject_version).in_(keys))
    ).all()  # fmt: skip
    for row in sorted(rows, key=lambda j: (j.status in OPEN_JOBS, j.created_at, j.id)):
        jobs[row.subject_id] = row
    return jobs


def _mention_counts(session: Session, keys: Sequence[tuple[str, int]]) -> dict[str, tuple[int, int]]:
    rows = session.execute(
        select(MentionRow.document_id, func.count(), func.count(MentionRow.entity_id.distinct()))
        .where(tuple_(MentionRow.document_id, MentionRow.version).in_(keys))
        .group_by(MentionRow.document_id)
    )
    return {document_id: (int(mentions), int(entities)) for document_id, mentions, entities in rows}


def _document_value(
    row: DocumentRow,
    version: Any,
    job: Any,
    counts: tuple[int, int],
    wanted: str,
    near: tuple[NearDuplicate, ...],
) -> Document:
    status = DocumentStatus(row.status)
    error = None
    if row.error_code is not None and status is DocumentStatus.FAILED:
        error = Problem(row.error_code, row.error_detail or "")
    elif job is not None and job.error_code is not None and job.status in OPEN_JOBS:
        error = Problem(job.error_code, job.error_detail or "")  # waits for its next attempt
    total = version.passage_count
    progress = Progress(total, total) if job is None else _progress(job)
    return Document(
        id=row.id,
        collection_id=row.collection_id,
        name=row.name,
        status=status,
        stage=job.task.rpartition(".")[2] if job else None,
        progress=progress,
        error=error,
        version=row.latest_version,
        live_version=row.live_version,
        media_type=version.media_type or version.declared_type,
        size_bytes=version.size_bytes,
        encoding=version.encoding,
        encoding_confidence=version.encoding_confidence,
        title=version.title,
        lang=version.lang,
        pages=version.pages,
        counts=Counts(total, *counts),
        warnings=tuple(version.warnings),
        tags=tuple(row.tags),
        trust=Trust(row.trust),
        metadata=dict(row.meta),
        properties=dict(version.properties),
        parse=dict(version.parse),
        parser_version=version.parser_version,
        outdated=row.status in SETTLED and version.recipe != wanted,
        near_duplicates=near,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _progress(job: Any) -> Progress:
    """The last unit counts when the stage's end is stored: nothing is complete before that."""
    return Progress(min(job.progress_done, max(job.progress_total - 1, 0)), job.progress_total)


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
