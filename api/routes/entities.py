"""`/v1/entities`."""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Iterator
from typing import IO, Annotated, Literal

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request
from sqlalchemy.orm import Session

from api import audit
from api.deps import Admin, AppSettings, Cursor, Db, Limit, Reader, in_write
from api.paging import decode_cursor, encode_cursor
from api.schemas.common import Listed, PathId
from api.schemas.entities import EntityMerge, EntityPatch, EntitySplit, EntityUndo
from core.errors import InvalidInput, UnsupportedFormat
from ingest import service as ingest
from ingest.values import Entity, EntityEvent, EntityImport, EntityMention

router = APIRouter(prefix="/v1/entities", tags=["entities"])

_FORMS: dict[str, Literal["jsonl", "csv"]] = {
    "application/jsonl": "jsonl",
    "application/x-ndjson": "jsonl",
    "text/csv": "csv",
}
_IN_MEMORY_BYTES = 1 << 20
_IMPORT_BODY = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": {"type": "string"}} for kind in _FORMS},
    }
}


@router.get("")
def search_entities(
    scope: Reader,
    db: Db,
    q: Annotated[str | None, Query(max_length=300, description="part of a name or alias")] = None,
    type: Annotated[str | None, Query(max_length=40)] = None,
    include_merged: bool = False,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Listed[Entity]:
    """Entities of the tenant's catalogue."""
    with db.read() as session:
        page = ingest.search_entities(
            session,
            scope,
            text=q,
            type=type,
            include_merged=include_merged,
            cursor=decode_cursor(cursor) or None,
            limit=limit,
        )
    following = encode_cursor(page.next_cursor) if page.next_cursor else None
    return Listed(items=list(page.items), next_cursor=following)


@router.post("/import", openapi_extra=_IMPORT_BODY)
async def import_entities(request: Request, scope: Admin, db: Db, settings: AppSettings) -> EntityImport:
    """Create or update catalogue entities from JSON lines or CSV; bad rows are reported."""
    form = _FORMS.get(request.headers.get("content-type", "").split(";")[0].strip().lower())
    if form is None:
        raise UnsupportedFormat(f"Send {', '.join(_FORMS)}.")
    ingest.BlobStore.of(settings).require_free()
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as spool:
        async for chunk in request.stream():
            await run_sync(spool.write, chunk)
        spool.seek(0)

        def work(session: Session) -> EntityImport:
            done = ingest.import_entities(session, scope, lines=_lines(spool), form=form)
            audit.record(session, scope, "entity.import", "*", created=done.created, updated=done.updated)
            return done

        return await in_write(db, work)


@router.get("/{entity_id}")
def get_entity(entity_id: PathId, scope: Reader, db: Db) -> Entity:
    """One entity, merged ones included."""
    with db.read() as session:
        return ingest.get_entity(session, scope, entity_id=entity_id)


@router.get("/{entity_id}/events")
def list_events(
    entity_id: PathId, scope: Reader, db: Db, cursor: Cursor = None, limit: Limit = 50
) -> Listed[EntityEvent]:
    """Overrides of an entity, newest first."""
    with db.read() as session:
        page = ingest.entity_events(
            session, scope, entity_id=entity_id, cursor=decode_cursor(cursor) or None, limit=limit
        )
    following = encode_cursor(page.next_cursor) if page.next_cursor else None
    return Listed(items=list(page.items), next_cursor=following)


@router.get("/{entity_id}/mentions")
def list_mentions(
    entity_id: PathId, scope: Reader, db: Db, cursor: Cursor = None, limit: Limit = 50
) -> Listed[EntityMention]:
    """Where live documents name an entity, with the reason of each link."""
    with db.read() as session:
        page = ingest.entity_mentions(
            session, scope, entity_id=entity_id, cursor=decode_cursor(cursor) or None, limit=limit
        )
    following = encode_cursor(page.next_cursor) if page.next_cursor else None
    return Listed(items=list(page.items), next_cursor=following)


@router.patch("/{entity_id}")
def patch_entity(entity_id: PathId, body: EntityPatch, scope: Admin, db: Db) -> Entity:
    """Rename, describe, block, or pin names to it."""
    changes = body.model_dump(exclude_unset=True)
    with db.write() as session:
        entity = ingest.patch_entity(session, scope, entity_id=entity_id, **changes)
        audit.record(session, scope, "entity.patch", entity_id, fields=sorted(changes))
    return entity


@router.post("/{entity_id}/merge")
def merge_entities(entity_id: PathId, body: EntityMerge, scope: Admin, db: Db) -> Entity:
    """Let it stand for others, now and after every re-link."""
    with db.write() as session:
        entity = ingest.merge_entities(session, scope, entity_id=entity_id, others=body.entity_ids)
        audit.record(session, scope, "entity.merge", entity_id, others=list(body.entity_ids))
    return entity


@router.post("/{entity_id}/split", status_code=201)
def split_entity(entity_id: PathId, body: EntitySplit, scope: Admin, db: Db) -> Entity:
    """Make a second entity out of the mentions in some documents; the new one is returned."""
    with db.write() as session:
        entity = ingest.split_entity(
            session,
            scope,
            entity_id=entity_id,
            name=body.name,
            document_ids=body.document_ids,
            type=body.type,
            description=body.description,
        )
        audit.record(session, scope, "entity.split", entity_id, new=entity.id)
    return entity


@router.post("/{entity_id}/undo")
def undo_entity(entity_id: PathId, scope: Admin, db: Db, body: EntityUndo | None = None) -> Entity:
    """Take back the newest override that is in force."""
    event_id = body.event_id if body else None
    with db.write() as session:
        entity = ingest.undo_entity(session, scope, entity_id=entity_id, event_id=event_id)
        audit.record(session, scope, "entity.undo", entity_id, event_id=event_id)
    return entity


def _lines(spool: IO[bytes]) -> Iterator[str]:
    try:
        for number, line in enumerate(spool):
            raw = line.removeprefix(codecs.BOM_UTF8) if number == 0 else line
            yield raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput("The import is not UTF-8.") from error
