"""`/v1/documents/{id}/pages/{page}` and `/places`: where in the original a passage stands."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from api.deps import Db, Reader
from api.downloads import SOURCE_CSP
from api.schemas.common import Listed, PathId
from core.errors import InvalidInput
from core.types import SourcePlace, Span
from ingest import service as ingest

router = APIRouter(prefix="/v1/documents", tags=["documents"])

Version = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="default: the one that is served")]
Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="of the normalized text, in code points")]
_HEADERS = {
    "ETag": {"schema": {"type": "string"}},
    "X-Page-Width": {"description": "in the unit of the boxes of places", "schema": {"type": "number"}},
    "X-Page-Height": {"description": "in the unit of the boxes of places", "schema": {"type": "number"}},
}


@router.get(
    "/{document_id}/pages/{page}",
    response_class=Response,
    responses={
        200: {"content": {"image/png": {}}, "headers": _HEADERS},
        304: {"description": "The picture that `If-None-Match` names is the present one"},
    },
)
def get_page_picture(
    document_id: PathId,
    page: Annotated[int, Path(ge=1, le=1_000_000)],
    request: Request,
    scope: Reader,
    db: Db,
    version: Version = None,
    width: Annotated[int, Query(ge=64, le=2000, description="pixels")] = 1000,
) -> Response:
    """A page of a PDF or of a picture, as a PNG. Boxes of places are measured from its top left corner."""
    with db.read() as session:
        wanted = ingest.document_page(
            session, scope, document_id=document_id, page=page, width=width, version=version
        )
    headers = {
        "ETag": wanted.etag,
        # Asked again each time, so that a deleted document is gone at once; unchanged, it costs no drawing.
        "Cache-Control": "private, no-cache",
        "Content-Security-Policy": SOURCE_CSP,
    }
    if wanted.etag in [tag.strip() for tag in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    picture = ingest.draw_page(wanted)
    headers["X-Page-Width"] = f"{picture.page_width:.2f}"
    headers["X-Page-Height"] = f"{picture.page_height:.2f}"
    return Response(picture.png, media_type="image/png", headers=headers)


@router.get("/{document_id}/places")
def get_places(
    document_id: PathId,
    scope: Reader,
    db: Db,
    start: Offset = 0,
    end: Annotated[Offset | None, Query(description="default: one character")] = None,
    version: Version = None,
) -> Listed[SourcePlace]:
    """Where a span of the normalized text stands in the original, in order."""
    if end is not None and end < start:
        raise InvalidInput("end lies before start.")
    span = Span(start, start + 1 if end is None else end)
    with db.read() as session:
        found = ingest.locate(session, scope, document_id=document_id, span=span, version=version)
    return Listed(items=list(found), next_cursor=None)
