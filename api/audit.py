"""The audit log: who changed what, when, under which request id. Rows are written with the change itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.logs import request_id
from core.models import AuditRow
from core.types import Role, Scope


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change."""

    id: int
    at: datetime
    tenant_id: str
    principal: str
    action: str
    subject: str
    request_id: str
    details: dict[str, Any]


def record(session: Session, scope: Scope, action: str, subject: str, **details: Any) -> None:
    """Note a change in the transaction that makes it; small details only, never document text.

    Args:
        session: the write session of the change.
        scope: who acts.
        action: `noun.verb`; names are stable.
        subject: id of what changed.
        details: shown beside it.
    """
    session.add(
        AuditRow(
            tenant_id=scope.tenant_id,
            principal=scope.principal,
            action=action,
            subject=subject[:80],
            request_id=request_id.get()[:64],
            details=details,
        )
    )


def list_entries(
    session: Session,
    scope: Scope,
    *,
    action: str | None = None,
    principal: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[AuditEntry]:
    """Newest first: the caller's tenant, or everything for an operator."""
    query = select(AuditRow)
    if scope.may is not Role.OPERATOR:
        query = query.where(AuditRow.tenant_id == scope.tenant_id)
    if action is not None:
        query = query.where(AuditRow.action == action)
    if principal is not None:
        query = query.where(AuditRow.principal == principal)
    if before is not None:
        query = query.where(AuditRow.id < before)
    rows = session.scalars(query.order_by(AuditRow.id.desc()).limit(limit)).all()
    return [
        AuditEntry(r.id, r.at, r.tenant_id, r.principal, r.action, r.subject, r.request_id, dict(r.details))
        for r in rows
    ]
