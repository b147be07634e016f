"""What the tasks write. Each function locks the document first and does nothing once it is being deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import delete, exists, insert, select
from sqlalchemy.orm import Session

from core.models import (
    CollectionRow,
    DocumentRow,
    DocumentVersionRow,
    MentionRow,
    PassageRow,
)
from core.types import DocumentStatus, LinkedMention
from ingest import growth
from ingest.blobs import BlobStore
from ingest.clean import clean
from ingest.collections import delete_row_if_empty
from ingest.near_duplicates import Key, write_pairs, write_signature
from ingest.nil_clusters import SEPARATOR, name_key
from ingest.recipe import Recipe, parser_version
from ingest.removal import erase_from_answers
from ingest.repository import lock_blobs

if TYPE_CHECKING:
    from ingest.near import Signature
    from ingest.normalize import NormalizedDocument
    from ingest.split import PassageDraft

PROPERTIES = ("author", "created", "modified", "published", "description", "language")
_PROPERTY_MAX = 2000
_INSERT_ROWS = 1000


def write_normalized(
    session: Session,
    document_id: str,
    version: int,
    document: NormalizedDocument,
    drafts: Sequence[PassageDraft],
    recipe: Recipe,
    signature: Signature | None = None,
) -> bool:
    """Replace a version's text, map, signature and passages.

    Returns:
        False when the document is gone or being deleted.
    """
    mentions = (MentionRow.document_id == document_id) & (MentionRow.version == version)
    went_further = session.scalar(select(exists().where(mentions)))  # an earlier attempt
    if went_further:
        growth.serialise_document(session, document_id)
    row = _present(session, document_id)
    stored = session.get(DocumentVersionRow, (document_id, version)) if row is not None else None
    if row is None or stored is None:
        return False
    first = stored.text is None
    stored.text = document.text
    stored.offset_map = document.offset_map.to_bytes()
    stored.outline = document.outline
    stored.title = document.title[:400]
    stored.lang = document.lang.value
    stored.media_type = document.media_type[:120]
    stored.encoding = document.encoding
    stored.encoding_confidence = document.encoding_confidence
    stored.pages = document.pages
    stored.warnings = document.warnings
    stored.passage_count = len(drafts)
    stored.properties = _properties(document.properties)
    _note_recipe(stored, recipe)
    write_signature(session, row, version, signature, first=first)
    session.flush()
    removed = growth.removed_with(session, row.tenant_id, mentions) if went_further else None
    session.execute(
        delete(PassageRow).where(PassageRow.document_id == document_id, PassageRow.version == version)
    )
    growth.forget(session, removed)
    rows = [
        {
            "tenant_id": row.tenant_id,
            "collection_id": row.collection_id,
            "document_id": document_id,
            "version": version,
            "ordinal": d.ordinal,
            "start": d.span.start,
            "end": d.span.end,
            "page": d.page,
            "heading_path": list(d.heading_path),
            "page_breaks": [list(pair) for pair in d.page_breaks],
            "lang": d.lang.value,
            "text": d.text,
        }
        for d in drafts
    ]
    for at in range(0, len(rows), _INSERT_ROWS):
        session.execute(insert(PassageRow), rows[at : at + _INSERT_ROWS])
    return True


def write_attempt(session: Session, document_id: str, version: int, recipe: Recipe) -> None:
    """Note the recipe that a version could not be made with, so that it is tried again once that changes."""
    stored = session.get(DocumentVersionRow, (document_id, version))
    if stored is not None:
        _note_recipe(stored, recipe)


def _note_recipe(stored: DocumentVersionRow, recipe: Recipe) -> None:
    stored.parse = recipe.choices
    stored.parser_version = parser_version()
    stored.recipe = recipe.digest


def _properties(given: Mapping[str, str]) -> dict[str, str]:
    cleaned = {name: clean(str(given.get(name, "")))[:_PROPERTY_MAX] for name in PROPERTIES}
    return {name: value for name, value in cleaned.items() if value}


def write_mentions(
    session: Session,
    document_id: str,
    version: int,
    linked: Sequence[LinkedMention],
    near: Sequence[tuple[Key, float]] = (),
    beside: Sequence[frozenset[str]] | None = None,
) -> bool:
    """Replace a version's mentions and near-duplicates; False when the document is gone or being deleted."""
    growth.serialise_document(session, document_id)
    row = _present(session, document_id)
    if row is None:
        return False
    write_pairs(session, document_id, version, near)
    ties = [frozenset[str]()] * len(linked) if beside is None else beside
    replace_mentions(session, row.tenant_id, document_id, version, linked, ties)
    return True


def write_links(
    session: Session,
    document_id: str,
    version: int,
    linked: Sequence[LinkedMention],
    beside: Sequence[frozenset[str]],
) -> None:
    """Replace a version's mentions, if it still has its passages."""
    growth.serialise_document(session, document_id)
    row = _present(session, document_id)
    if row is None:
        return
    left = set(
        session.scalars(
            select(PassageRow.id).where(PassageRow.document_id == document_id, PassageRow.version == version)
        )
    )
    if {m.passage_id for m in linked} <= left:
        replace_mentions(session, row.tenant_id, document_id, version, linked, beside)


def replace_mentions(
    session: Session,
    tenant_id: str,
    document_id: str,
    version: int,
    linked: Sequence[LinkedMention],
    beside: Sequence[frozenset[str]],
) -> None:
    """Write the mentions of a version in place of those it has, and settle what the names in them bring."""
    old = (MentionRow.document_id == document_id) & (MentionRow.version == version)
    removed = growth.removed_with(session, tenant_id, old)
    session.execute(delete(MentionRow).where(old))
    linked = growth.grow_by_name(session, tenant_id, linked)
    rows = [
        {
            "tenant_id": tenant_id,
            "passage_id": m.passage_id,
            "document_id": document_id,
            "version": version,
            "start": m.span.start,
            "end": m.span.end,
            "surface": m.surface[:300],
            "type": m.type[:40],
            "entity_id": m.entity_id,
            "score": m.score,
            "reason": m.reason,
            "key": name_key(m.name),
            "affiliations": SEPARATOR.join(sorted(ties)),
            "growing": growth.is_growing_person(m),
        }
        for m, ties in zip(linked, beside, strict=True)
    ]
    for at in range(0, len(rows), _INSERT_ROWS):
        # With its nulls every row has the same columns, so that they go in one statement.
        session.execute(
            insert(MentionRow), rows[at : at + _INSERT_ROWS], execution_options={"render_nulls": True}
        )
    growth.settle_people(
        session, tenant_id, {name_key(m.name) for m in linked if growth.is_growing_person(m)}
    )
    growth.forget(session, removed)


def purge_document(session: Session, document_id: str, digests: Sequence[str]) -> list[str]:
    """Remove a document that is being deleted, with all that hangs on it; its row goes last.

    Args:
        session: a write session that holds the locks of `digests`.
        document_id: the document; unless it is in `deleting`, nothing happens.
        digests: the blobs of its versions.

    Returns:
        Those blobs that no version of any document refers to any more.
    """
    growth.serialise_document(session, document_id)
    deleting = (DocumentRow.id == document_id) & (DocumentRow.status == DocumentStatus.DELETING.value)
    # The collection is locked before the document, as everywhere, so that two holders never wait in a ring.
    session.execute(
        select(CollectionRow.id)
        .where(CollectionRow.id == select(DocumentRow.collection_id).where(deleting).scalar_subquery())
        .with_for_update()
    )
    row = session.scalar(select(DocumentRow).where(deleting).with_for_update())
    if row is None:
        return []
    erase_from_answers(session, document_id)  # answers that were being written when it was deleted
    removed = growth.removed_with(session, row.tenant_id, MentionRow.document_id == document_id)
    session.execute(delete(MentionRow).where(MentionRow.document_id == document_id))
    # Passages carry their vectors and mentions along (ON DELETE CASCADE).
    session.execute(delete(PassageRow).where(PassageRow.document_id == document_id))
    session.execute(delete(DocumentVersionRow).where(DocumentVersionRow.document_id == document_id))
    growth.forget(session, removed)
    collection_id = row.collection_id
    session.delete(row)
    session.flush()
    delete_row_if_empty(session, collection_id)
    return unreferenced(session, digests)


def unreferenced(session: Session, digests: Sequence[str]) -> list[str]:
    """Those of `digests` that no document version needs."""
    needed = set(
        session.scalars(
            select(DocumentVersionRow.blob_hash).where(DocumentVersionRow.blob_hash.in_(digests)).distinct()
        )
    )
    return [d for d in digests if d not in needed]


def delete_unreferenced_blobs(session: Session, store: BlobStore) -> list[str]:
    """Remove stored originals that no document version needs, as a rolled-back upload leaves behind.

    Uploads that are under way are safe: each holds the lock of its blob until it commits.
    """
    stored = sorted(store.digests())
    removed: list[str] = []
    for at in range(0, len(stored), _INSERT_ROWS):
        chunk = stored[at : at + _INSERT_ROWS]
        orphans = unreferenced(session, chunk)
        lock_blobs(session, orphans)
        for digest in unreferenced(session, orphans):
            store.delete(digest)
            removed.append(digest)
    return removed


def _present(session: Session, document_id: str) -> DocumentRow | None:
    return session.scalar(
        select(DocumentRow)
        .where(DocumentRow.id == document_id, DocumentRow.status != DocumentStatus.DELETING.value)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
