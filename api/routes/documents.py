"""`/v1/documents`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request, Response
from sqlalchemy.orm import Session
from starlette.responses import FileResponse

from api import audit
from api.deps import AppSettings, Cursor, Db, Limit, Reader, Writer, in_write
from api.downloads import SOURCE_CSP, attachment
from api.paging import decode_cursor, encode_cursor
from api.schemas.common import Listed, PathId, clean_json
from api.schemas.documents import DocumentOut, DocumentPatch, DocumentReprocess, PassageOut, given_choices
from api.uploads import Upload as Received
from api.uploads import read_upload
from core.errors import InvalidInput
from core.settings import Settings
from core.types import DocumentStatus, Scope
from ingest import service as ingest
from ingest.values import Content, Trust, Upload

router = APIRouter(prefix="/v1/documents", tags=["documents"])

Version = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="default: the one that is served")]
_FORM = {"file": {"type": "string", "format": "binary"}}
_NEW = {
    "collection": {"type": "string", "description": "id or name"},
    "metadata": {"type": "string", "description": "a JSON object"},
    "tags": {"type": "string", "description": "a JSON list of strings"},
    "trust": {"type": "string", "enum": [t.value for t in Trust]},
}


def _form(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


@router.post(
    "",
    status_code=202,
    responses={200: {"model": DocumentOut, "description": "These bytes are known"}},
    openapi_extra=_form({**_FORM, **_NEW}, ["file", "collection"]),
)
async def upload_document(
    request: Request, response: Response, scope: Writer, db: Db, settings: AppSettings
) -> DocumentOut:
    """Take a document in. 202: its work was queued; 200: the same bytes are in this collection already."""
    received = await _receive(request, settings)
    try:
        given = _described(received.fields)

        def register(session: Session) -> Upload:
            return ingest.register_upload(
                session,
                scope,
                collection=given.collection,
                blob=received.blob,
                file_name=received.file_name,
                declared_type=received.declared_type,
                metadata=given.metadata,
                tags=given.tags,
                trust=given.trust,
            )

        upload = await _store(db, scope, "document.upload", register)
    finally:
        await run_sync(received.blob.discard)
    return _answer(upload, response)


@router.put(
    "/{document_id}",
    status_code=202,
    responses={200: {"model": DocumentOut, "description": "These bytes are the newest version already"}},
    openapi_extra=_form(_FORM, ["file"]),
)
async def new_version(
    document_id: PathId, request: Request, response: Response, scope: Writer, db: Db, settings: AppSettings
) -> DocumentOut:
    """Replace the content; the old version is served until the new one is indexed."""
    await run_sync(_require_document, db, scope, document_id)
    received = await _receive(request, settings)
    try:

        def register(session: Session) -> Upload:
            return ingest.new_version(
                session,
                scope,
                document_id=document_id,
                blob=received.blob,
                file_name=received.file_name,
                declared_type=received.declared_type,
            )

        upload = await _store(db, scope, "document.new_version", register)
    finally:
        await run_sync(received.blob.discard)
    return _answer(upload, response)


@router.get("")
def list_documents(
    scope: Reader,
    db: Db,
    collection: Annotated[str | None, Query(max_length=200, description="id or name")] = None,
    status: DocumentStatus | None = None,
    outdated: Annotated[
        bool | None, Query(description="read with other choices or parsers than today")
    ] = None,
    near_duplicates: Annotated[bool | None, Query(description="nearly the same text as another")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Listed[DocumentOut]:
    """Documents that the key may read, newest first."""
    with db.read() as session:
        page = ingest.list_documents(
            session,
            scope,
            collection=collection,
            status=status,
            outdated=outdated,
            near_duplicates=near_duplicates,
            cursor=decode_cursor(cursor) or None,
            limit=limit,
        )
    following = encode_cursor(page.next_cursor) if page.next_cursor else None
    return Listed(items=[DocumentOut.of(d) for d in page.items], next_cursor=following)


@router.get("/{document_id}")
def get_document(document_id: PathId, scope: Reader, db: Db) -> DocumentOut:
    """State, stage, progress and counts of one document."""
    with db.read() as session:
        return DocumentOut.of(ingest.get_document(session, scope, document_id=document_id))


@router.get("/{document_id}/source", response_class=FileResponse)
def get_source(document_id: PathId, scope: Reader, db: Db, version: Version = None) -> FileResponse:
    """The original bytes, as an attachment."""
    with db.read() as session:
        source = ingest.document_source(session, scope, document_id=document_id, version=version)
    headers = {
        "Content-Type": source.media_type,  # as a header, else the framework claims UTF-8 for every text
        "Content-Disposition": attachment(source.name),
        "Content-Security-Policy": SOURCE_CSP,
    }
    return FileResponse(source.path, headers=headers)


@router.get("/{document_id}/content")
def get_content(document_id: PathId, scope: Reader, db: Db, version: Version = None) -> Content:
    """The normalized text that spans and quotes point into."""
    with db.read() as session:
        return ingest.document_content(session, scope, document_id=document_id, version=version)


@router.get("/{document_id}/passages")
def list_passages(
    document_id: PathId,
    scope: Reader,
    db: Db,
    version: Version = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Listed[PassageOut]:
    """Passages in order, each with its places in the source."""
    with db.read() as session:
        page = ingest.document_passages(
            session,
            scope,
            document_id=document_id,
            version=version,
            cursor=decode_cursor(cursor) or None,
            limit=limit,
        )
    following = encode_cursor(page.next_cursor) if page.next_cursor else None
    return Listed(items=[PassageOut.of(p) for p in page.items], next_cursor=following)


@router.get("/{document_id}/annotation")
def get_annotation(document_id: PathId, scope: Reader, db: Db) -> dict[str, Any]:
    """The served version as schema.org JSON-LD."""
    with db.read() as session:
        return ingest.document_annotation(session, scope, document_id=document_id)


@router.patch("/{document_id}")
def patch_document(document_id: PathId, body: DocumentPatch, scope: Writer, db: Db) -> DocumentOut:
    """Change name, metadata, tags or trust."""
    changes = body.model_dump(exclude_unset=True)
    with db.write() as session:
        document = ingest.patch_document(session, scope, document_id=document_id, **changes)
        audit.record(session, scope, "document.patch", document.id, fields=sorted(changes))
    return DocumentOut.of(document)


@router.delete("/{document_id}", status_code=202)
def delete_document(document_id: PathId, scope: Writer, db: Db) -> DocumentOut:
    """Unreadable from now on; files, vectors, links and rows follow."""
    with db.write() as session:
        document = ingest.delete_document(session, scope, document_id=document_id)
        audit.record(session, scope, "document.delete", document.id, name=document.name)
    return DocumentOut.of(document)


@router.post("/{document_id}/reprocess", status_code=202)
def reprocess_document(
    document_id: PathId, scope: Writer, db: Db, body: DocumentReprocess | None = None
) -> DocumentOut:
    """Walk the stored original through all stages again, with other choices if some are given."""
    choices = given_choices(body.parse) if body else None
    with db.write() as session:
        document = ingest.reprocess(session, scope, document_id=document_id, parse=choices)
        audit.record(session, scope, "document.reprocess", document.id, version=document.version)
    return DocumentOut.of(document)


async def _receive(request: Request, settings: Settings) -> Received:
    return await read_upload(request, ingest.BlobStore.of(settings), settings.api.max_upload_bytes)


def _require_document(db: Db, scope: Scope, document_id: str) -> None:
    """Refuse a foreign id before its body is taken in."""
    with db.read() as session:
        ingest.get_document(session, scope, document_id=document_id)


async def _store(db: Db, scope: Scope, action: str, register: Callable[[Session], Upload]) -> Upload:
    def work(session: Session) -> Upload:
        upload = register(session)
        if upload.created:
            document = upload.document
            audit.record(session, scope, action, document.id, version=document.version, name=document.name)
        return upload

    return await in_write(db, work)


def _answer(upload: Upload, response: Response) -> DocumentOut:
    out = DocumentOut.of(upload.document)
    response.status_code = 202 if upload.created else 200
    response.headers["Location"] = out.status_url
    return out


@dataclass(frozen=True, slots=True)
class _Described:
    """The text fields of an upload form."""

    collection: str
    metadata: dict[str, Any]
    tags: list[str]
    trust: Trust


def _described(fields: dict[str, str]) -> _Described:
    unknown = sorted(set(fields) - set(_NEW))
    if unknown:
        raise InvalidInput(f"Unknown fields: {', '.join(unknown)[:200]}; known: {', '.join(_NEW)}.")
    if not (collection := fields.get("collection", "").strip()):
        raise InvalidInput("The form has no field `collection`.")
    try:
        trust = Trust(fields.get("trust", "").strip() or Trust.NORMAL)
    except ValueError as error:
        raise InvalidInput(f"trust takes {', '.join(Trust)}.") from error
    return _Described(
        collection, _object(fields.get("metadata", "")), _strings(fields.get("tags", "")), trust
    )


def _object(given: str) -> dict[str, Any]:
    value = _json(given, "metadata") if given.strip() else {}
    if not isinstance(value, dict):
        raise InvalidInput("metadata must be a JSON object.")
    return value


def _strings(given: str) -> list[str]:
    value = _json(given, "tags") if given.strip() else []
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise InvalidInput("tags must be a JSON list of strings.")
    return value


def _json(given: str, field: str) -> Any:
    try:
        return clean_json(json.loads(given))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{field} is not acceptable JSON: {error}") from error
