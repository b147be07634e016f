"""Rows ↔ values of the citation policies; every read is scoped."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.db import utcnow
from core.errors import NotFound
from core.models import CollectionRow, PolicyRow
from core.types import Scope
from generation.policy import CitationPolicy
from generation.values import PolicyView


def policy_in_force(session: Session, scope: Scope, collection_id: str) -> PolicyView:
    """The collection's newest policy, or the built-in default as version 0.

    Raises:
        NotFound: the collection is unknown to this scope.
    """
    _require_collection(session, scope, collection_id)
    row = session.scalar(
        select(PolicyRow)
        .where(PolicyRow.collection_id == collection_id)
        .order_by(PolicyRow.version.desc())
        .limit(1)
    )
    if row is None:
        return PolicyView(collection_id, 0, CitationPolicy().model_dump(mode="json"), None, None)
    return PolicyView(collection_id, row.version, dict(row.body), row.created_by, row.created_at)


def add_policy(session: Session, scope: Scope, collection_id: str, policy: CitationPolicy) -> PolicyView:
    """Store the next version.

    Raises:
        NotFound: the collection is unknown to this scope.
    """
    _require_collection(session, scope, collection_id, lock=True)
    newest = session.scalar(
        select(func.max(PolicyRow.version)).where(PolicyRow.collection_id == collection_id)
    )
    row = PolicyRow(
        collection_id=collection_id,
        version=(newest or 0) + 1,
        body=policy.model_dump(mode="json"),
        created_by=scope.principal,
        created_at=utcnow(),
    )
    session.add(row)
    session.flush()
    return PolicyView(collection_id, row.version, dict(row.body), row.created_by, row.created_at)


def _require_collection(session: Session, scope: Scope, collection_id: str, *, lock: bool = False) -> None:
    query = select(CollectionRow.id).where(
        CollectionRow.id == collection_id, CollectionRow.tenant_id == scope.tenant_id
    )
    found = session.scalar(query.with_for_update() if lock else query)
    if found is None or not scope.allows_collection(collection_id):
        raise NotFound("No such collection.", collection_id=collection_id)
