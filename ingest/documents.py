"""Documents: upload, new version, change, delete, reprocess; and everything that is read of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.db import utcnow
from core.errors import Conflict, InvalidInput, NotFound
from core.ids import new_id
from core.jobs import add_job
from core.models import DocumentRow, DocumentVersionRow
from core.types import DocumentStatus, Scope
from core.worker import Task
from ingest import repository
from ingest.blobs import BlobStore, StagedBlob
from ingest.document_values import document_values
from ingest.names import clean_metadata, clean_tags, display_name, title_of
from ingest.recipe import changed_choices
from ingest.removal import remove_document
from ingest.values import Document, Page, Trust, Upload
from ingest.wanted_recipes import SETTLED, own_choices, stored_choices


def register_upload(
    session: Session,
    scope: Scope,
    *,
    collection: str,
    blob: StagedBlob,
    file_name: str,
    declared_type: str = "",
    metadata: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    trust: Trust = Trust.NORMAL,
) -> Upload:
    """Take a staged file into a collection and queue its work, or return the document that has its bytes.

    Any number of simultaneous uploads of the same bytes end in one document with one job. Known bytes of a
    failed document start a new attempt. The caller discards `blob` when this raises.

    Raises:
        NotFound: the collection (id or name) is not visible.
        InvalidInput: the file is empty, or tags or metadata are not acceptable.
    """
    _require_bytes(blob)
    repository.lock_blobs(session, [blob.digest])
    target = repository.find_collection(session, scope, collection, share=True)
    name, meta = display_name(file_name), clean_metadata(metadata or {})
    document_id = repository.insert_document(
        session,
        id=new_id("doc"),
        tenant_id=scope.tenant_id,
        collection_id=target.id,
        name=name,
        content_hash=blob.digest,
        status=DocumentStatus.QUEUED.value,
        latest_version=1,
        trust=trust.value,
        tags=clean_tags(tags),
        meta=meta,
    )
    BlobStore.of().commit(blob)
    if document_id is None:
        return _known_bytes(session, scope, target.id, blob.digest)
    row = repository.find_document(session, scope, document_id)
    _begin_version(session, row, 1, blob.digest, blob.size_bytes, name, declared_type)
    return Upload(_value(session, row), created=True)


def new_version(
    session: Session,
    scope: Scope,
    *,
    document_id: str,
    blob: StagedBlob,
    file_name: str = "",
    declared_type: str = "",
) -> Upload:
    """Replace a document's content; the old version serves until the new one is indexed.

    Raises:
        Conflict: another document of the collection has these bytes.
        NotFound: unknown, not visible or being deleted.
        InvalidInput: the file is empty.
    """
    _require_bytes(blob)
    repository.lock_blobs(session, [blob.digest])
    row = _changeable(session, scope, document_id)
    if row.content_hash == blob.digest:
        BlobStore.of().commit(blob)
        return _retry_if_failed(session, row)
    other = repository.document_by_hash(
        session, scope.narrowed((row.collection_id,)), row.collection_id, blob.digest
    )
    if other is not None:
        raise Conflict("Another document of this collection has the same bytes.", document_id=other.id)
    before = _newest(session, row)
    name = display_name(file_name) if file_name else before.file_name
    if row.name == before.file_name:
        row.name = name
    BlobStore.of().commit(blob)
    row.content_hash = blob.digest
    _begin_version(session, row, row.latest_version + 1, blob.digest, blob.size_bytes, name, declared_type)
    return Upload(_value(session, row), created=True)


def reprocess(
    session: Session, scope: Scope, *, document_id: str, parse: Mapping[str, Any] | None = None
) -> Document:
    """Walk the stored original through all stages again, as a new version beside the served one.

    Args:
        session: a write session.
        scope: who asks.
        document_id: the document.
        parse: choices of this document from now on, above its collection's; one set to None is given back.

    Raises:
        Conflict: its work is still under way.
        InvalidInput: an unknown choice, or a value out of bounds.
        NotFound: unknown, not visible or being deleted.
    """
    row = _changeable(session, scope, document_id)
    if row.status not in SETTLED:
        raise Conflict("The document is still being processed.", document_id=row.id)
    if parse is not None:
        row.parse = stored_choices(changed_choices(own_choices(row.parse), parse))
    _begin_again(session, row)
    return _value(session, row)


def begin_again(session: Session, document_id: str, *, walk: str) -> bool:
    """The same for one document of a walk, giving way to fresh uploads; False when it is not settled."""
    row = session.scalar(
        select(DocumentRow)
        .where(DocumentRow.id == document_id, DocumentRow.status.in_(SETTLED))
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    if row is None:
        return False
    _begin_again(session, row, walk)
    return True


def patch_document(
    session: Session,
    scope: Scope,
    *,
    document_id: str,
    name: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    tags: Sequence[str] | None = None,
    trust: Trust | None = None,
) -> Document:
    """Change what is given. `metadata` is merged into the present one; a key set to None is removed."""
    row = _changeable(session, scope, document_id)
    if name is not None:
        row.name = title_of(name, "name")
    if metadata is not None:
        merged = {**row.meta, **metadata}
        row.meta = clean_metadata({k: v for k, v in merged.items() if v is not None})
    if tags is not None:
        row.tags = clean_tags(tags)
    if trust is not None:
        row.trust = trust.value
    row.updated_at = utcnow()
    session.flush()
    return _value(session, row)


def delete_document(session: Session, scope: Scope, *, document_id: str) -> Document:
    """Make it unreadable now; files, vectors, links and rows follow. Asking twice is fine."""
    row = repository.find_document(session, scope, document_id, lock=True)
    remove_document(session, row)
    return _value(session, row)


def list_documents(
    session: Session,
    scope: Scope,
    *,
    collection: str | None = None,
    status: DocumentStatus | None = None,
    outdated: bool | None = None,
    near_duplicates: bool | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[Document]:
    """Documents of the scope, newest first; `collection` is an id or a name, None for no filter."""
    collection_id = None
    if collection is not None:
        collection_id = repository.find_collection(session, scope, collection).id
    rows = repository.documents_page(
        session,
        scope,
        collection_id=collection_id,
        status=status,
        outdated=outdated,
        near_duplicates=near_duplicates,
        cursor=cursor,
        limit=limit + 1,
    )
    values = document_values(session, rows[:limit])
    return Page(values, values[-1].id if len(rows) > limit else None)


def get_document(session: Session, scope: Scope, *, document_id: str) -> Document:
    """One document with its stage, progress and error; raises `NotFound`."""
    return _value(session, repository.find_document(session, scope, document_id))


# -- steps -------------------------------------------------------------------------------------


def _require_bytes(blob: StagedBlob) -> None:
    if blob.size_bytes == 0:
        raise InvalidInput("The file is empty (0 bytes).")


def _changeable(session: Session, scope: Scope, document_id: str) -> DocumentRow:
    row = repository.find_document(session, scope, document_id, lock=True)
    if row.status == DocumentStatus.DELETING.value:
        raise NotFound("The document is being deleted.", document_id=document_id)
    return row


def _newest(session: Session, row: DocumentRow) -> DocumentVersionRow:
    return session.scalars(
        select(DocumentVersionRow).where(
            DocumentVersionRow.document_id == row.id, DocumentVersionRow.version == row.latest_version
        )
    ).one()


def _begin_again(session: Session, row: DocumentRow, walk: str = "") -> None:
    last = _newest(session, row)
    number = row.latest_version + 1
    _begin_version(
        session, row, number, last.blob_hash, last.size_bytes, last.file_name, last.declared_type, walk
    )


def _value(session: Session, row: DocumentRow) -> Document:
    return document_values(session, [row])[0]


def _known_bytes(session: Session, scope: Scope, collection_id: str, digest: str) -> Upload:
    row = repository.document_by_hash(session, scope, collection_id, digest)
    if row is None:  # it was deleted between the insert and this read
        raise Conflict("The document with these bytes was just deleted; upload again.")
    return _retry_if_failed(session, row)


def _retry_if_failed(session: Session, row: DocumentRow) -> Upload:
    if row.status != DocumentStatus.FAILED.value:
        return Upload(_value(session, row), created=False)
    _queue(session, row, attempt_key=new_id("att"))
    return Upload(_value(session, row), created=True)


def _begin_version(
    session: Session,
    row: DocumentRow,
    version: int,
    digest: str,
    size: int,
    file_name: str,
    declared_type: str,
    walk: str = "",
) -> None:
    row.latest_version = version
    repository.add_version(
        session,
        row.id,
        version,
        blob_hash=digest,
        size_bytes=size,
        file_name=file_name,
        declared_type=declared_type[:120],
    )
    _queue(session, row, attempt_key=walk, gives_way=bool(walk))


def _queue(session: Session, row: DocumentRow, *, attempt_key: str = "", gives_way: bool = False) -> None:
    row.status = DocumentStatus.QUEUED.value
    row.error_code = row.error_detail = None
    row.updated_at = utcnow()
    session.flush()
    add_job(
        session,
        Task.NORMALIZE,
        tenant_id=row.tenant_id,
        subject_kind="document",
        subject_id=row.id,
        subject_version=row.latest_version,
        attempt_key=attempt_key,
        gives_way=gives_way,
    )
