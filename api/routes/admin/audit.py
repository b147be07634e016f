"""`/v1/admin/audit`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api import audit
from api.deps import Admin, Cursor, Db, Limit
from api.paging import cut, decode_number
from api.schemas.admin import AuditOut
from api.schemas.common import Listed

router = APIRouter(prefix="/v1/admin/audit", tags=["admin"])


@router.get("")
def list_audit(
    scope: Admin,
    db: Db,
    action: Annotated[str | None, Query(max_length=60)] = None,
    principal: Annotated[str | None, Query(max_length=40)] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Listed[AuditOut]:
    """What was changed, newest first: in the caller's tenant, or everywhere for an operator."""
    with db.read() as session:
        found = audit.list_entries(
            session, scope, action=action, principal=principal, before=decode_number(cursor), limit=limit + 1
        )
    page, next_cursor = cut(found, limit)
    return Listed(items=[AuditOut.of(e) for e in page], next_cursor=next_cursor)
