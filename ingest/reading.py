"""What is read of one document: original, text, passages with their source places, annotation."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.errors import InvalidInput, NotFound
from core.models import DocumentRow, DocumentVersionRow, EntityRow, MentionRow
from core.types import Scope, SourcePlace, Span
from ingest import repository
from ingest.annotate import AnnotatedMention, annotate
from ingest.blobs import BlobStore
from ingest.offset_map import OffsetMap
from ingest.values import Content, Page, PlacedPassage, Source


def document_source(
    session: Session, scope: Scope, *, document_id: str, version: int | None = None
) -> Source:
    """The original as uploaded: the given version, or the served one, or the newest if none is served.

    Raises:
        NotFound: unknown, not visible, being deleted, or no such version.
    """
    row = repository.find_live(session, scope, document_id)
    wanted = version or row.live_version or row.latest_version
    stored = session.get(DocumentVersionRow, (row.id, wanted))
    if stored is None:
        raise NotFound("No such version.", document_id=document_id)
    path = BlobStore.of().existing(stored.blob_hash)
    media_type = stored.media_type or "application/octet-stream"
    return Source(row.id, wanted, path, stored.file_name, media_type, stored.size_bytes)


def document_content(
    session: Session, scope: Scope, *, document_id: str, version: int | None = None
) -> Content:
    """The normalized text that spans and citations point into."""
    _, stored = _readable(session, scope, document_id, version)
    return Content(
        document_id, stored.version, stored.title, stored.lang, stored.text or "", tuple(stored.outline)
    )


def document_passages(
    session: Session,
    scope: Scope,
    *,
    document_id: str,
    version: int | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[PlacedPassage]:
    """Passages in order, each with its place in the source."""
    row, stored = _readable(session, scope, document_id, version)
    after = _ordinal(cursor)
    passages = repository.passages_of(session, row.id, stored.version, after=after, limit=limit + 1)
    places = OffsetMap.from_bytes(stored.offset_map) if stored.offset_map else None
    items = tuple(PlacedPassage(p, tuple(places.places(p.span)) if places else ()) for p in passages[:limit])
    return Page(items, str(items[-1].passage.ordinal) if len(passages) > limit else None)


def locate(
    session: Session, scope: Scope, *, document_id: str, span: Span, version: int | None = None
) -> tuple[SourcePlace, ...]:
    """Where a span of the normalized text stands in the source: one place per page that it touches.

    Raises:
        InvalidInput: the span reaches past the text.
        NotFound: no such document, version or map.
    """
    _, stored = _readable(session, scope, document_id, version)
    if span.end > len(stored.text or ""):
        raise InvalidInput("The span reaches past the end of the text.", document_id=document_id)
    if not stored.offset_map:
        raise NotFound("No source map is stored for this version.", document_id=document_id)
    return tuple(OffsetMap.from_bytes(stored.offset_map).places(span))


def document_annotation(session: Session, scope: Scope, *, document_id: str) -> dict[str, Any]:
    """The served version as schema.org JSON-LD, with its linked entities."""
    row, stored = _readable(session, scope, document_id, None)
    return annotate(
        name=stored.title or row.name,
        lang=stored.lang,
        media_type=stored.media_type,
        identifier=row.id,
        version=stored.version,
        outline=stored.outline,
        keywords=row.tags,
        created_at=row.created_at,
        modified_at=stored.created_at,
        mentions=_annotated_mentions(session, row, stored.version),
        properties=stored.properties,
    )


def _readable(
    session: Session, scope: Scope, document_id: str, version: int | None
) -> tuple[DocumentRow, DocumentVersionRow]:
    row = repository.find_live(session, scope, document_id)
    return row, repository.find_version(session, row, version)


def _ordinal(cursor: str | None) -> int:
    if cursor is None:
        return -1
    if not cursor.isdecimal() or len(cursor) > 9:
        raise InvalidInput("The cursor is not one that this list gave.")
    return int(cursor)


def _annotated_mentions(session: Session, row: DocumentRow, version: int) -> list[AnnotatedMention]:
    found = session.scalars(
        select(MentionRow)
        .where(MentionRow.document_id == row.id, MentionRow.version == version)
        .order_by(MentionRow.start, MentionRow.id)
    ).all()
    ids = {m.entity_id for m in found if m.entity_id is not None}
    entities = {
        e.id: e
        for e in session.scalars(
            select(EntityRow).where(EntityRow.tenant_id == row.tenant_id, EntityRow.id.in_(ids))
        )
    }
    return [_annotated(m, entities.get(m.entity_id or "")) for m in found]


def _annotated(mention: MentionRow, entity: EntityRow | None) -> AnnotatedMention:
    if entity is None:
        return AnnotatedMention(mention.surface, mention.type, None, mention.surface, "", (), mention.score)
    return AnnotatedMention(
        mention.surface,
        entity.type,
        entity.id,
        entity.name,
        entity.description,
        tuple(entity.same_as),
        mention.score,
    )
