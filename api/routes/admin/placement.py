"""`/v1/admin/placement` and `/v1/admin/moves`: which tier documents are in, and why."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from api import audit
from api.deps import Cursor, Db, Limit, Operator
from api.paging import cut, decode_number
from api.schemas.common import JsonObject, Listed, PathId
from api.schemas.placement import MoveOut, PlaceBody, PlacementPolicyOut, TierName
from retrieval import service as retrieval
from retrieval.service import Placing

router = APIRouter(prefix="/v1/admin", tags=["admin"])


@router.post("/placement", status_code=202, responses={200: {"description": "A dry run"}})
def place(body: PlaceBody, response: Response, scope: Operator, db: Db) -> Placing:
    """Move a collection or a document and keep it there, or let use and age decide again.

    202: the moves have begun; 200: a dry run, which changes nothing. Without a target the policies of all
    collections are followed now.
    """
    if body.dry_run:
        response.status_code = 200
        with db.read() as session:
            return retrieval.place(session, scope, target=body.target, tier=body.tier, dry_run=True)
    with db.write() as session:
        placing = retrieval.place(session, scope, target=body.target, tier=body.tier)
        audit.record(
            session,
            scope,
            "placement.place",
            placing.target or "all",
            tier=body.tier,
            documents=placing.documents,
        )
    return placing


@router.get("/placement/{collection}")
def get_placement_policy(collection: PathId, scope: Operator, db: Db) -> PlacementPolicyOut:
    """When documents of the collection change tiers."""
    with db.read() as session:
        return PlacementPolicyOut.of(retrieval.get_placement_policy(session, scope, collection=collection))


@router.put("/placement/{collection}")
def put_placement_policy(collection: PathId, body: JsonObject, scope: Operator, db: Db) -> PlacementPolicyOut:
    """Store a new version of the collection's placement policy; the next round of moves follows it."""
    with db.write() as session:
        stored = retrieval.put_placement_policy(session, scope, collection=collection, body=body)
        audit.record(session, scope, "placement.policy", stored.collection_id, version=stored.version)
    return PlacementPolicyOut.of(stored)


@router.get("/moves")
def list_moves(
    scope: Operator,
    db: Db,
    collection: Annotated[str | None, Query(max_length=40, description="id")] = None,
    document: Annotated[str | None, Query(max_length=40, description="id")] = None,
    tier: Annotated[TierName | None, Query(description="moves from it or to it")] = None,
    status: Literal["planned", "done", "dropped", "superseded"] | None = None,
    reason: Literal["pinned", "new", "used", "idle", "budget"] | None = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Listed[MoveOut]:
    """Moves of documents between tiers, newest first: what moved, by whom, from where, where to and why."""
    with db.read() as session:
        found = retrieval.list_moves(
            session,
            scope,
            collection=collection,
            document=document,
            tier=tier,
            status=status,
            reason=reason,
            before=decode_number(cursor),
            limit=limit + 1,
        )
    page, next_cursor = cut(found, limit)
    return Listed(items=[MoveOut.of(m) for m in page], next_cursor=next_cursor)
