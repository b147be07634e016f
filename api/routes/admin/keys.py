"""`/v1/admin/keys`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api import audit, keys
from api.deps import Admin, Cursor, Db, Limit
from api.paging import cut, decode_cursor
from api.schemas.admin import KeyMade, KeyOut, NewKey
from api.schemas.common import Listed, PathId

router = APIRouter(prefix="/v1/admin/keys", tags=["admin"])


@router.post("", status_code=201)
def make_key(body: NewKey, scope: Admin, db: Db) -> KeyMade:
    """Make a key; its plaintext is in this response and nowhere else."""
    with db.write() as session:
        key, plaintext = keys.create(
            session,
            scope,
            name=body.name,
            role=body.role,
            collections=body.collections,
            tenant=body.tenant,
        )
        audit.record(session, scope, "key.create", key.id, role=key.role, tenant=key.tenant)
    return KeyMade.model_validate({**KeyOut.of(key).model_dump(), "key": plaintext})


@router.get("")
def list_keys(
    scope: Admin,
    db: Db,
    tenant: Annotated[str | None, Query(max_length=200, description="name of one tenant")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Listed[KeyOut]:
    """Keys of the caller's tenant (of all tenants for an operator), revoked ones included."""
    with db.read() as session:
        found = keys.list_keys(session, scope, tenant=tenant, after=decode_cursor(cursor), limit=limit + 1)
    page, next_cursor = cut(found, limit)
    return Listed(items=[KeyOut.of(k) for k in page], next_cursor=next_cursor)


@router.delete("/{key_id}")
def revoke_key(key_id: PathId, scope: Admin, db: Db) -> KeyOut:
    """Revoke a key; its very next request is refused."""
    with db.write() as session:
        key = keys.revoke(session, scope, key_id)
        audit.record(session, scope, "key.revoke", key.id)
    return KeyOut.of(key)
