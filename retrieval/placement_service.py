"""Placement as operators use it: pin, let the policy decide, see what would move; and the beat's round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.db import Database, utcnow
from core.errors import InvalidInput
from core.models import DocumentRow
from core.settings import get_settings
from core.types import Scope, Tier
from retrieval import moves as move_rows
from retrieval import placement_repository as repository
from retrieval.placement import DocumentPlacement, Move, parse_placement_policy, plan_moves
from retrieval.placement_repository import PolicyInForce, Target

AUTO = "auto"
BY_POLICY = "policy"
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """One document of a plan."""

    document_id: str
    document_name: str
    collection_id: str
    from_tier: str
    to_tier: str
    reason: str
    facts: Mapping[str, Any]
    vectors: int


@dataclass(frozen=True, slots=True)
class Placing:
    """What moves, or would move.

    Attributes:
        target: id of the collection or document; None for the whole engine.
        tier: where it is pinned, or `auto`.
        documents, vectors: of all moves; `moves` shows the first of them.
        counts: documents by `from → to` and by reason.
        others: documents beside the target that then have to move, because a tier gets full; of those
            that the key reaches.
    """

    target: str | None
    tier: str
    dry_run: bool
    documents: int
    vectors: int
    others: int
    counts: Mapping[str, int]
    moves: tuple[PlannedMove, ...]


def place(
    session: Session, scope: Scope, *, target: str | None, tier: str = AUTO, dry_run: bool = False
) -> Placing:
    """Pin a collection or a document to a tier, or give it back to its policy, and begin the moves.

    Args:
        session: a write session; a dry run needs none.
        scope: an operator's; one that is limited to collections places and sees documents
            of those alone.
        target: a collection's id or name, a document's id, or None for what the policies would do now.
        tier: `hot`, `warm`, `cold`, or `auto` to let use and age decide.
        dry_run: change nothing, tell what would move.

    Raises:
        NotFound: no such target.
        InvalidInput: an unknown tier, or a tier for the whole engine.
    """
    pin = _tier(tier)
    if target is None and pin is not None:
        raise InvalidInput("Name a collection or a document to pin; without one, only tier auto is possible.")
    found = repository.find_target(session, scope, target) if target is not None else None
    now = utcnow()
    moves = [
        m
        for m in _plan(session, found, pin, now)
        if repository.reaches(scope, m.document.tenant_id, m.document.collection_id)
    ]
    own = [m for m in moves if found is None or _belongs(m.document, found)]
    if not dry_run:
        if found is not None:
            _pin(session, found, pin, scope.principal)
        move_rows.record_moves(session, own, scope.principal, now)
    return Placing(
        target=None if found is None else found.document_id or found.collection_id,
        tier=tier,
        dry_run=dry_run,
        documents=len(own),
        vectors=sum(m.document.vectors for m in own),
        others=len(moves) - len(own),
        counts=_counts(own),
        moves=_named(session, own[:_SHOWN]),
    )


def get_policy(session: Session, scope: Scope, *, collection: str) -> PolicyInForce:
    """The placement policy in force. Raises `NotFound`."""
    return repository.policy_in_force(session, _collection(session, scope, collection))


def put_policy(session: Session, scope: Scope, *, collection: str, body: Mapping[str, Any]) -> PolicyInForce:
    """Store a new version of a collection's policy; the next round follows it.

    Raises:
        NotFound: no such collection.
        InvalidInput: an unknown field or a value out of bounds.
    """
    policy = parse_placement_policy(body)
    return repository.add_policy(session, _collection(session, scope, collection), policy, scope.principal)


def round_of_moves(db: Database, now: datetime | None = None) -> int:
    """Plan with today's uses and begin the first moves of the plan; returns how many were begun."""
    now, settings = now or utcnow(), get_settings().placement
    with db.write() as session:
        move_rows.settle_moves(session, now)
        move_rows.forget_moves(session, now - timedelta(days=settings.keep_moves_days))
    with db.read() as session:
        moves = _plan(session, None, None, now)
    if not moves:
        return 0
    with db.write() as session:
        return len(move_rows.record_moves(session, moves[: settings.moves_per_round], BY_POLICY, now))


def _tier(name: str) -> Tier | None:
    if name == AUTO:
        return None
    if name not in list(Tier):
        raise InvalidInput(f"tier takes hot, warm, cold and auto, not {name}.")
    return Tier(name)


def _collection(session: Session, scope: Scope, name: str) -> str:
    target = repository.find_target(session, scope, name)
    return target.collection_id


def _plan(session: Session, target: Target | None, pin: Tier | None, now: datetime) -> list[Move]:
    """The plan as it would be with the target pinned."""
    documents, policies = repository.placements(session, now), repository.policies_in_force(session)
    if target is not None and target.document_id is not None:
        documents = [
            replace(d, pinned=pin, moved_at=None) if d.document_id == target.document_id else d
            for d in documents
        ]
    elif target is not None:
        policy = repository.policy_in_force(session, target.collection_id).policy
        policies[target.collection_id] = policy.model_copy(update={"pinned": pin})
        documents = [
            replace(d, moved_at=None) if d.collection_id == target.collection_id else d for d in documents
        ]
    return plan_moves(documents, policies, repository.budgets(session, documents), now)


def _pin(session: Session, target: Target, pin: Tier | None, by: str) -> None:
    if target.document_id is not None:
        repository.pin_document(session, target.document_id, pin, by)
        return
    present = repository.policy_in_force(session, target.collection_id)
    if present.policy.pinned != pin:
        repository.add_policy(
            session, target.collection_id, present.policy.model_copy(update={"pinned": pin}), by
        )


def _belongs(document: DocumentPlacement, target: Target) -> bool:
    if target.document_id is not None:
        return document.document_id == target.document_id
    return document.collection_id == target.collection_id


def _counts(moves: Sequence[Move]) -> dict[str, int]:
    counts = Counter(f"{m.document.tier.value} → {m.to.value}" for m in moves)
    counts.update(m.reason.value for m in moves)
    return dict(sorted(counts.items()))


def _named(session: Session, moves: Sequence[Move]) -> tuple[PlannedMove, ...]:
    ids = [m.document.document_id for m in moves]
    rows = session.execute(select(DocumentRow.id, DocumentRow.name).where(DocumentRow.id.in_(ids)))
    names = dict(rows.all())
    return tuple(
        PlannedMove(
            m.document.document_id, names.get(m.document.document_id, ""), m.document.collection_id,
            m.document.tier.value, m.to.value, m.reason.value, m.facts, m.document.vectors,
        )
        for m in moves
    )  # fmt: skip
