"""`/v1/reprocesses`: walks over a collection's documents, begun at `/v1/collections/{id}/reprocess`."""

from __future__ import annotations

from fastapi import APIRouter

from api import audit
from api.deps import Admin, Db, Reader
from api.schemas.common import PathId
from api.schemas.documents import ReprocessOut
from ingest import service as ingest

router = APIRouter(prefix="/v1/reprocesses", tags=["collections"])


@router.get("/{reprocess_id}")
def get_reprocess(reprocess_id: PathId, scope: Reader, db: Db) -> ReprocessOut:
    """How far a walk is."""
    with db.read() as session:
        return ReprocessOut.of(ingest.get_reprocess(session, scope, reprocess_id=reprocess_id))


@router.delete("/{reprocess_id}")
def cancel_reprocess(reprocess_id: PathId, scope: Admin, db: Db) -> ReprocessOut:
    """Begin no further document; those in work are finished."""
    with db.write() as session:
        walk = ingest.cancel_reprocess(session, scope, reprocess_id=reprocess_id)
        audit.record(session, scope, "collection.reprocess_cancel", walk.collection_id, id=walk.id)
    return ReprocessOut.of(walk)
