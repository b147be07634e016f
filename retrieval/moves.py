"""Moves as rows: written before anything moves, settled once the index serves the document from its new tier.

| killed | what the next round finds |
|---|---|
| before the planning transaction's commit | nothing happened; the plan comes out the same |
| after it | `planned` moves whose documents say where they are wanted; the writer brings them there |
| after the writer published | documents in their new tier; the moves are settled as `done` |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from core.metrics import MOVES
from core.models import DocumentRow, MoveRow, TierRow
from core.types import DocumentStatus, Role, Scope, Tier
from retrieval.access import lock_documents
from retrieval.placement import Move
from retrieval.placement_repository import note_moved
from retrieval.placing import ring, want

PLANNED, DONE, DROPPED, SUPERSEDED = "planned", "done", "dropped", "superseded"
STATUSES = (PLANNED, DONE, DROPPED, SUPERSEDED)
_BATCH = 500


@dataclass(frozen=True, slots=True)
class MoveEvent:
    """One move as an operator reads it.

    Attributes:
        reason: see `placement.Reason`; `facts` are its numbers (`uses`, `age_days`).
        status: `planned`, `done`, `dropped` (the document went) or `superseded` (another tier was chosen).
        moved_by: key id of the operator, or `policy`.
        generation: the one served when it was seen in its new tier.
    """

    id: int
    document_id: str
    document_name: str | None
    collection_id: str
    from_tier: str
    to_tier: str
    reason: str
    facts: Mapping[str, Any]
    vectors: int
    status: str
    moved_by: str
    generation: int | None
    created_at: datetime
    finished_at: datetime | None


def record_moves(session: Session, moves: Sequence[Move], by: str, now: datetime) -> list[str]:
    """Write moves as planned, and where their documents are wanted.

    A document that is gone, or that is not where the plan saw it, is left out; one with an open move to
    another tier gets this one instead.

    Returns:
        The documents that now wait to be moved.
    """
    settle_moves(session, now)  # one that has arrived is done, whatever comes after it
    wanted = {m.document.document_id: m for m in moves}
    accepted: list[str] = []
    ids = sorted(wanted)
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        lock_documents(session, batch)
        rows = session.scalars(
            select(DocumentRow).where(
                DocumentRow.id.in_(batch),
                DocumentRow.live_version.is_not(None),
                DocumentRow.status != DocumentStatus.DELETING.value,
            )
        ).all()
        accepted += [row.id for row in rows if _record(session, row, wanted[row.id], by, now)]
    session.flush()
    for tier in Tier:
        want(session, [i for i in accepted if wanted[i].to is tier], tier)
    return accepted


def _record(session: Session, row: DocumentRow, move: Move, by: str, now: datetime) -> bool:
    if (row.wanted_tier or row.tier) != move.document.tier.value:
        return False
    session.execute(
        update(MoveRow)
        .where(MoveRow.open_key == row.id)
        .values(status=SUPERSEDED, open_key=None, finished_at=now)
    )
    if move.to.value == row.tier:  # back before it went
        want(session, [row.id], move.to)
        return False
    session.add(
        MoveRow(
            tenant_id=row.tenant_id,
            collection_id=row.collection_id,
            document_id=row.id,
            open_key=row.id,
            from_tier=row.tier,
            to_tier=move.to.value,
            reason=move.reason.value,
            facts=dict(move.facts),
            vectors=move.document.vectors,
            moved_by=by[:40],
            created_at=now,
        )
    )
    return True


def settle_moves(session: Session, now: datetime) -> int:
    """Close the open moves whose documents have arrived or are gone, and ring for those that are left.

    Returns:
        How many have arrived.
    """
    rows = session.execute(
        select(MoveRow, DocumentRow.tier, DocumentRow.status)
        .outerjoin(DocumentRow, DocumentRow.id == MoveRow.document_id)
        .where(MoveRow.open_key.is_not(None))
    ).all()
    served = session.get(TierRow, Tier.HOT.value)
    arrived: list[str] = []
    waiting = False
    for move, tier, status in rows:
        if not status or status == DocumentStatus.DELETING.value:
            move.status, move.open_key, move.finished_at = DROPPED, None, now
        elif tier == move.to_tier:
            move.status, move.open_key, move.finished_at = DONE, None, now
            move.generation = served.generation if served else None
            arrived.append(move.document_id)
            MOVES.labels(move.from_tier, move.to_tier, move.reason).inc()
        else:
            waiting = True
    if waiting:  # a job that failed left them
        ring(session)
    note_moved(session, arrived, now)
    return len(arrived)


def forget_moves(session: Session, before: datetime) -> None:
    """Remove settled moves that ended before then."""
    session.execute(delete(MoveRow).where(MoveRow.open_key.is_(None), MoveRow.finished_at < before))


def list_moves(
    session: Session,
    scope: Scope,
    *,
    collection: str | None = None,
    document: str | None = None,
    tier: str | None = None,
    status: str | None = None,
    reason: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[MoveEvent]:
    """Moves, newest first; `tier` is where they came from or went to. An operator sees all tenants'.

    A key that is limited to collections sees moves in those alone; so does an operator's.
    """
    if not scope.tenant_id:
        return []
    query = select(MoveRow, DocumentRow.name).outerjoin(DocumentRow, DocumentRow.id == MoveRow.document_id)
    if scope.may is not Role.OPERATOR or scope.collection_ids is not None:
        query = query.where(MoveRow.tenant_id == scope.tenant_id)
    if scope.collection_ids is not None:
        query = query.where(MoveRow.collection_id.in_(scope.collection_ids))
    for column, value in (
        (MoveRow.collection_id, collection),
        (MoveRow.document_id, document),
        (MoveRow.status, status),
        (MoveRow.reason, reason),
    ):
        if value is not None:
            query = query.where(column == value)
    if tier is not None:
        query = query.where((MoveRow.from_tier == tier) | (MoveRow.to_tier == tier))
    if before is not None:
        query = query.where(MoveRow.id < before)
    rows = session.execute(query.order_by(MoveRow.id.desc()).limit(limit))
    return [_event(row, name) for row, name in rows]


def _event(row: MoveRow, name: str | None) -> MoveEvent:
    return MoveEvent(
        row.id, row.document_id, name, row.collection_id, row.from_tier, row.to_tier, row.reason,
        dict(row.facts), row.vectors, row.status, row.moved_by, row.generation, row.created_at,
        row.finished_at,
    )  # fmt: skip
