"""Rows ↔ values of placement: what the planner reads, policies and pins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from core.errors import NotFound
from core.models import (
    CollectionRow,
    DocumentPlacementRow,
    DocumentRow,
    DocumentVersionRow,
    PlacementPolicyRow,
)
from core.settings import get_settings
from core.types import DocumentStatus, Role, Scope, Tier
from retrieval.access import lock_documents
from retrieval.placement import (
    DEFAULT_POLICY,
    Budgets,
    DocumentPlacement,
    PlacementPolicy,
    decayed,
    parse_placement_policy,
)
from retrieval.tier_repository import bytes_per_vector


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """A collection's placement policy; version 0 is the default, which nobody stored."""

    collection_id: str
    version: int
    policy: PlacementPolicy
    created_by: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A collection, or one document of it, that an operator names; `tenant_id` is its owner's."""

    tenant_id: str
    collection_id: str
    document_id: str | None = None


def reaches(scope: Scope, tenant_id: str, collection_id: str) -> bool:
    """Whether documents of this collection may be placed: an operator's key is for the whole installation.

    One that is limited to collections reaches those alone, whatever its role.
    """
    if not scope.tenant_id or not tenant_id:
        return False
    if scope.may is Role.OPERATOR and scope.collection_ids is None:
        return True
    return tenant_id == scope.tenant_id and scope.allows_collection(collection_id)


def find_target(session: Session, scope: Scope, name: str) -> Target:
    """The collection (by id, or by name in the caller's tenant) or document that `name` stands for.

    Raises:
        NotFound: there is none, or not for this scope.
    """
    document = session.get(DocumentRow, name)
    if document is not None and document.status != DocumentStatus.DELETING.value:
        target = Target(document.tenant_id, document.collection_id, document.id)
    else:
        c = CollectionRow
        mine = (c.tenant_id == scope.tenant_id) & (c.name == name)
        row = session.scalar(select(c).where(c.deleted_at.is_(None), (c.id == name) | mine))
        target = Target(row.tenant_id, row.id) if row is not None else Target("", "")
    if not reaches(scope, target.tenant_id, target.collection_id):
        raise NotFound("No such collection or document.", target=name)
    return target


def placements(session: Session, now: datetime) -> list[DocumentPlacement]:
    """Every document that is served, as the planner sees it. A move that is under way counts as made."""
    d, v, p = DocumentRow, DocumentVersionRow, DocumentPlacementRow
    half_life = get_settings().placement.half_life_days
    rows = session.execute(
        select(
            d.id, d.collection_id, d.tenant_id, func.coalesce(d.wanted_tier, d.tier), v.passage_count,
            p.score, p.scored_at, d.created_at, p.moved_at, p.pinned,
        )
        .join(v, and_(v.document_id == d.id, v.version == d.live_version))
        .outerjoin(p, p.document_id == d.id)
        .where(d.status != DocumentStatus.DELETING.value)
    )  # fmt: skip
    return [
        DocumentPlacement(
            document_id, collection_id, tenant_id, Tier(tier), vectors,
            decayed(score or 0.0, scored_at, now, half_life), added_at, moved_at,
            Tier(pinned) if pinned else None,
        )
        for document_id, collection_id, tenant_id, tier, vectors, score, scored_at, added_at, moved_at, pinned
        in rows
    ]  # fmt: skip


def budgets(session: Session, documents: Iterable[DocumentPlacement]) -> Budgets:
    """The engine's budgets, as the settings say; those in bytes by what a vector of the tier takes.

    Args:
        session: to read.
        documents: all of them, where they are now.
    """
    s = get_settings().placement
    held: Counter[Tier] = Counter()
    for one in documents:
        held[one.tier] += one.vectors

    def limit(tier: Tier, vectors: int | None, size: int | None) -> int | None:
        each = None if size is None else bytes_per_vector(session, tier, held[tier])
        by_size = None if size is None or each is None else int(size / each)
        return min((n for n in (vectors, by_size) if n is not None), default=None)

    return Budgets(
        limit(Tier.HOT, s.hot_vectors, s.hot_bytes),
        limit(Tier.WARM, s.warm_vectors, s.warm_bytes),
        s.roomy_vectors,
        timedelta(hours=s.min_stay_hours),
    )


# -- policies ----------------------------------------------------------------------------------


def policies_in_force(session: Session) -> dict[str, PlacementPolicy]:
    """The newest policy of every collection that has one."""
    p = PlacementPolicyRow
    newest = select(p.collection_id, func.max(p.version).label("version")).group_by(p.collection_id)
    found = newest.subquery()
    rows = session.execute(
        select(p.collection_id, p.body).join(
            found, and_(found.c.collection_id == p.collection_id, found.c.version == p.version)
        )
    )
    return {collection_id: parse_placement_policy(body) for collection_id, body in rows}


def policy_in_force(session: Session, collection_id: str) -> PolicyInForce:
    """The collection's newest policy, or the default as version 0."""
    row = session.scalar(
        select(PlacementPolicyRow)
        .where(PlacementPolicyRow.collection_id == collection_id)
        .order_by(PlacementPolicyRow.version.desc())
        .limit(1)
    )
    if row is None:
        return PolicyInForce(collection_id, 0, DEFAULT_POLICY)
    policy = parse_placement_policy(row.body)
    return PolicyInForce(collection_id, row.version, policy, row.created_by, row.created_at)


def add_policy(session: Session, collection_id: str, policy: PlacementPolicy, by: str) -> PolicyInForce:
    """Store a new version, unless it says what the one in force says."""
    session.get(CollectionRow, collection_id, with_for_update=True)  # one version after the other
    present = policy_in_force(session, collection_id)
    if present.version and present.policy == policy:
        return present
    body: Mapping[str, Any] = policy.model_dump(mode="json")
    session.add(
        PlacementPolicyRow(
            collection_id=collection_id, version=present.version + 1, body=dict(body), created_by=by[:40]
        )
    )
    session.flush()
    return policy_in_force(session, collection_id)


# -- pins and moves of documents ---------------------------------------------------------------


def pin_document(session: Session, document_id: str, tier: Tier | None, by: str) -> None:
    """Keep a document in a tier, or let its policy decide again."""
    row = _placement_row(session, document_id)
    row.pinned, row.pinned_by = (None, None) if tier is None else (tier.value, by[:40])
    session.flush()


def note_moved(session: Session, document_ids: Sequence[str], at: datetime) -> None:
    """Remember when these documents were last moved."""
    for document_id in sorted(document_ids):
        _placement_row(session, document_id).moved_at = at
    session.flush()


def _placement_row(session: Session, document_id: str) -> DocumentPlacementRow:
    if document_id not in lock_documents(session, [document_id]):
        raise NotFound("No such document.", document_id=document_id)
    row = session.get(DocumentPlacementRow, document_id, populate_existing=True)
    if row is None:
        row = DocumentPlacementRow(document_id=document_id)
        session.add(row)
    return row
