"""Bulk import: passages that come with their vectors, many documents to a transaction and to a publish.

For corpora that were split and encoded elsewhere with the encoder of this installation. A batch is stored
as one original, its documents with passages, vectors and log entries in one transaction; then the writer
publishes it and one statement brings its documents to life. An import that was interrupted is given again:
what is there is left alone, and what was not published is finished.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sqlalchemy import (
    ColumnDefault,
    ColumnElement,
    Dialect,
    String,
    Table,
    bindparam,
    insert,
    literal,
    literal_column,
    select,
    text,
    update,
)
from sqlalchemy.orm import Session

from core.db import Database, utcnow
from core.errors import InvalidInput
from core.ids import new_id
from core.models import Base, DocumentRow, DocumentVersionRow, IndexLogRow, PassageRow, PassageVectorRow
from core.types import DocumentStatus, Scope
from ingest.blobs import BlobStore
from retrieval.side_merge import merge_aside
from retrieval.writer import IndexWriter, VectorSpace, index_writer

MEDIA_TYPE = "application/vnd.geo.passages"
BATCH = 5000  # documents to a transaction and a publish: about 30 MB in memory
_SEPARATOR = "\n\n"
_MAGIC = b"GEO passages 1\n\x00"  # no text format begins so: nobody can take it for a document of its own
_MAX_BATCH_BYTES = 1 << 30
_PER_STATEMENT = 500


@dataclass(frozen=True, slots=True)
class BulkDocument:
    """One document: passages in reading order and their unit vectors [n, d]."""

    name: str
    passages: Sequence[str]
    vectors: npt.NDArray[np.float32]
    lang: str = "und"


@dataclass(slots=True)
class Imported:
    """What became of the documents given."""

    added: int = 0
    known: int = 0


@dataclass(slots=True)
class _Rows:
    documents: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    versions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    passages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    vectors: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    log: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def import_documents(
    db: Database, scope: Scope, collection_id: str, documents: Sequence[BulkDocument], space: VectorSpace
) -> Imported:
    """Store documents and make them searchable; returns when both routes find them.

    Args:
        db: each batch is two short transactions.
        scope: the importing tenant.
        collection_id: a collection of that tenant.
        documents: any number.
        space: the encoder that made the vectors; it must be the one that the index holds.

    Raises:
        InvalidInput: a document has no passage, or a vector that is not finite or has another width.
        ConfigError: the index holds another encoder's vectors.
    """
    done = Imported()
    with index_writer(db, space) as writer:
        writer.current()  # refuses another encoder's vectors before anything is stored
        for start in range(0, len(documents), BATCH):
            batch = documents[start : start + BATCH]
            for document in batch:
                _check(document, space)
            original = _store_original(batch)
            _insert(writer, scope, collection_id, batch, original, done)
            writer.catch_up()
            with db.write() as session:
                _go_live(session, scope, collection_id, original["blob_hash"])
    merge_aside(db)  # a batch is a segment, and each question searches all of them
    return done


def _check(document: BulkDocument, space: VectorSpace) -> None:
    if not document.passages or not all(document.passages):
        raise InvalidInput(f"{document.name}: a document needs passages, and each needs text.")
    if document.vectors.shape != (len(document.passages), space.dimension):
        raise InvalidInput(
            f"{document.name}: {document.vectors.shape} vectors for {len(document.passages)} passages; "
            f"{space.model} gives {space.dimension} numbers."
        )
    if not np.isfinite(document.vectors).all():
        raise InvalidInput(f"{document.name}: a vector is not finite.")


def _store_original(batch: Sequence[BulkDocument]) -> dict[str, Any]:
    store = BlobStore.of()
    blob = store.stage(_serialized(batch), _MAX_BATCH_BYTES)
    store.commit(blob)
    return {"blob_hash": blob.digest, "size_bytes": blob.size_bytes}


def _serialized(batch: Sequence[BulkDocument]) -> Iterator[bytes]:
    yield _MAGIC
    for document in batch:
        yield "\x1f".join((document.name, *document.passages)).encode() + b"\x1e"


def _insert(
    writer: IndexWriter,
    scope: Scope,
    collection_id: str,
    batch: Sequence[BulkDocument],
    original: dict[str, Any],
    done: Imported,
) -> None:
    hashes = [hashlib.sha256("\x1f".join((d.name, *d.passages)).encode()).hexdigest() for d in batch]
    with writer.db.write() as session:
        writer.lease.check(session)
        known = _known(session, collection_id, hashes)
        fresh = {h: d for h, d in zip(hashes, batch, strict=True) if h not in known}
        done.added += len(fresh)
        done.known += len(batch) - len(fresh)
        if not fresh:
            return
        ids = iter(_reserve_ids(session, sum(len(d.passages) for d in fresh.values())))
        rows = _Rows()
        for content_hash, document in fresh.items():
            _add(rows, document, content_hash, ids)
        owner = {"tenant_id": scope.tenant_id, "collection_id": collection_id}
        for table, values, same in (
            (DocumentRow, rows.documents, {**owner, "status": DocumentStatus.PROCESSING.value}),
            (DocumentVersionRow, rows.versions, {**original, "version": 1, "media_type": MEDIA_TYPE}),
            (PassageRow, rows.passages, {**owner, "version": 1}),
            (PassageVectorRow, rows.vectors, {"model": writer.space.model}),
            (IndexLogRow, rows.log, {"op": "add", "version": 1}),
        ):
            _insert_rows(session, table, values, same)


def _insert_rows(
    session: Session, row: type[Base], values: list[dict[str, Any]], same: dict[str, Any]
) -> None:
    """Insert many rows of one table.

    What they have in common, defaults included, is written into the statement, so that it is converted once
    and not for each row.
    """
    table = cast("Table", row.__table__)
    columns = table.columns
    shared: dict[str, Any] = dict(same)
    for column in columns:
        if column.name not in values[0] and column.name not in same and column.default is not None:
            default: Any = cast("ColumnDefault[Any]", column.default).arg
            shared[column.name] = default(None) if callable(default) else default
    dialect = session.get_bind().dialect
    fixed = {name: _written(value, columns[name].type, dialect) for name, value in shared.items()}
    own = {name: bindparam(name) for name in values[0]}
    session.connection().execute(insert(table).values({**fixed, **own}), values)


def _written(value: Any, kind: Any, dialect: Dialect) -> ColumnElement[Any]:
    """A value as it stands in a statement of this database."""
    if isinstance(value, (dict, list)):
        value, kind = json.dumps(value), String()
    compiled = literal(value, kind).compile(dialect=dialect, compile_kwargs={"literal_binds": True})
    return literal_column(str(compiled))


def _add(rows: _Rows, document: BulkDocument, content_hash: str, ids: Iterator[int]) -> None:
    document_id = new_id("doc")
    name, passages, lang = document.name, document.passages, document.lang
    rows.documents.append({"id": document_id, "name": name, "content_hash": content_hash})
    rows.versions.append(
        {
            "document_id": document_id, "file_name": name, "title": name,
            "text": _SEPARATOR.join(passages), "lang": lang, "passage_count": len(passages),
        }
    )  # fmt: skip
    own: list[int] = []
    start = 0
    stored = document.vectors.astype("<f2")
    for ordinal, passage in enumerate(passages):
        passage_id, end = next(ids), start + len(passage)
        own.append(passage_id)
        rows.passages.append(
            {
                "id": passage_id, "document_id": document_id, "ordinal": ordinal,
                "start": start, "end": end, "lang": lang, "text": passage,
            }
        )  # fmt: skip
        rows.vectors.append({"passage_id": passage_id, "vector": stored[ordinal].tobytes()})
        start = end + len(_SEPARATOR)
    rows.log.append({"document_id": document_id, "passage_ids": own})


def _known(session: Session, collection_id: str, hashes: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(hashes), _PER_STATEMENT):
        found.update(
            session.scalars(
                select(DocumentRow.content_hash).where(
                    DocumentRow.collection_id == collection_id,
                    DocumentRow.content_hash.in_(hashes[start : start + _PER_STATEMENT]),
                )
            )
        )
    return found


def _reserve_ids(session: Session, count: int) -> Sequence[int]:
    """Passage ids that nobody else gets; the caller's transaction uses them."""
    if session.get_bind().dialect.name == "postgresql":
        sequence = text(
            "SELECT nextval(pg_get_serial_sequence('passages', 'id')) FROM generate_series(1, :count)"
        )
        return list(session.scalars(sequence, {"count": count}))
    last = session.scalar(text("SELECT seq FROM sqlite_sequence WHERE name = 'passages'")) or 0
    return range(int(last) + 1, int(last) + 1 + count)  # the transaction is the only writer


def _go_live(session: Session, scope: Scope, collection_id: str, digest: str) -> None:
    imported = select(DocumentVersionRow.document_id).where(DocumentVersionRow.blob_hash == digest)
    session.execute(
        update(DocumentRow)
        .where(
            DocumentRow.tenant_id == scope.tenant_id,
            DocumentRow.collection_id == collection_id,
            DocumentRow.status == DocumentStatus.PROCESSING.value,
            DocumentRow.live_version.is_(None),
            DocumentRow.id.in_(imported),
        )
        .values(live_version=1, status=DocumentStatus.READY.value, updated_at=utcnow())
        .execution_options(synchronize_session=False)
    )
