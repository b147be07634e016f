"""`/v1/collections`."""

from __future__ import annotations

from fastapi import APIRouter, Response

from api import audit
from api.deps import Admin, Cursor, Db, Limit, Reader
from api.paging import decode_cursor, encode_cursor
from api.schemas.common import JsonObject, Listed, PathId
from api.schemas.documents import (
    CollectionOut,
    CollectionPatch,
    CollectionReprocess,
    NewCollection,
    ReprocessOut,
    given_choices,
)
from generation import service as answers
from generation.values import PolicyView
from ingest import service as ingest

router = APIRouter(prefix="/v1/collections", tags=["collections"])


@router.post("", status_code=201)
def create_collection(body: NewCollection, scope: Admin, db: Db) -> CollectionOut:
    """Make a collection, with its citation policy if one is given."""
    with db.write() as session:
        made = ingest.create_collection(session, scope, name=body.name, parse=given_choices(body.parse))
        if body.policy is not None:
            answers.put_policy(session, scope, made.id, body.policy)
        audit.record(session, scope, "collection.create", made.id, name=made.name)
    return CollectionOut.of(made)


@router.get("")
def list_collections(
    scope: Reader, db: Db, cursor: Cursor = None, limit: Limit = 100
) -> Listed[CollectionOut]:
    """Collections that the key may read."""
    with db.read() as session:
        page = ingest.list_collections(session, scope, cursor=decode_cursor(cursor) or None, limit=limit)
    following = encode_cursor(page.next_cursor) if page.next_cursor else None
    return Listed(items=[CollectionOut.of(c) for c in page.items], next_cursor=following)


@router.get("/{collection}")
def get_collection(collection: PathId, scope: Reader, db: Db) -> CollectionOut:
    """One collection, by id or name."""
    with db.read() as session:
        return CollectionOut.of(ingest.get_collection(session, scope, collection=collection))


@router.patch("/{collection}")
def patch_collection(collection: PathId, body: CollectionPatch, scope: Admin, db: Db) -> CollectionOut:
    """Change its name or how its documents are read; those read otherwise are outdated from then on."""
    with db.write() as session:
        changed = ingest.patch_collection(
            session, scope, collection=collection, name=body.name, parse=given_choices(body.parse)
        )
        audit.record(
            session, scope, "collection.patch", changed.id, fields=sorted(body.model_dump(exclude_unset=True))
        )
    return CollectionOut.of(changed)


@router.delete("/{collection}", status_code=202)
def delete_collection(collection: PathId, scope: Admin, db: Db) -> CollectionOut:
    """Hide it at once and delete all its documents; its name is free again."""
    with db.write() as session:
        doomed = ingest.get_collection(session, scope, collection=collection)
        ingest.delete_collection(session, scope, collection=doomed.id)
        audit.record(session, scope, "collection.delete", doomed.id, name=doomed.name)
    return CollectionOut.of(doomed)


@router.post("/{collection}/reprocess", status_code=202)
def reprocess_collection(
    collection: PathId, body: CollectionReprocess, response: Response, scope: Admin, db: Db
) -> ReprocessOut:
    """Make new versions of its documents from their originals, behind fresh uploads and without downtime.

    202: begun; 200: the same walk is under way already.
    """
    with db.write() as session:
        walk, created = ingest.start_reprocess(session, scope, collection=collection, only=body.only)
        if created:
            audit.record(
                session, scope, "collection.reprocess", walk.collection_id, id=walk.id, only=walk.only.value
            )
    out = ReprocessOut.of(walk)
    response.status_code = 202 if created else 200
    response.headers["Location"] = out.status_url
    return out


@router.get("/{collection}/reprocess")
def list_reprocesses(collection: PathId, scope: Reader, db: Db) -> Listed[ReprocessOut]:
    """The latest walks over the collection, newest first."""
    with db.read() as session:
        walks = ingest.list_reprocesses(session, scope, collection=collection)
    return Listed(items=[ReprocessOut.of(w) for w in walks], next_cursor=None)


@router.get("/{collection}/policy")
def get_policy(collection: PathId, scope: Reader, db: Db) -> PolicyView:
    """The citation policy in force; version 0 is the built-in default."""
    with db.read() as session:
        found = ingest.get_collection(session, scope, collection=collection)
        return answers.get_policy(session, scope, found.id)


@router.put("/{collection}/policy")
def put_policy(collection: PathId, body: JsonObject, scope: Admin, db: Db) -> PolicyView:
    """Store a new version of the policy; answers keep the version that they were made with."""
    with db.write() as session:
        found = ingest.get_collection(session, scope, collection=collection)
        policy = answers.put_policy(session, scope, found.id, body)
        audit.record(session, scope, "policy.put", found.id, version=policy.version)
    return policy
