"""The light door to moving documents between tiers: note where they are wanted, ring the writer.

A wanted move is a column of the document, so asking twice is asking once, and a move that a killed worker
left is made by the next. `retrieval/placing_job.py` makes the moves.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from core.db import affected
from core.ids import new_id
from core.jobs import add_job
from core.models import DocumentRow, JobRow
from core.types import DocumentStatus, JobStatus, Tier
from core.worker import Task

_PER_STATEMENT = 500


def want(session: Session, document_ids: Sequence[str], tier: Tier) -> int:
    """Have these documents moved to a tier.

    The caller has checked who may ask. Queries find a document at every moment of its move.

    Args:
        session: a write session; the work is rung for when it commits.
        document_ids: documents of any collections; those without a live version, or on their way out, are
            passed over: a new version enters hot.
        tier: where to.

    Returns:
        How many documents are to be moved; those that are there already need nothing.
    """
    wanted = 0
    for start in range(0, len(document_ids), _PER_STATEMENT):
        ids = document_ids[start : start + _PER_STATEMENT]
        there = (DocumentRow.id.in_(ids), DocumentRow.tier == tier.value)
        session.execute(update(DocumentRow).where(*there).values(_unchanged(None)))
        moved = session.execute(
            update(DocumentRow)
            .where(
                DocumentRow.id.in_(ids),
                DocumentRow.tier != tier.value,
                DocumentRow.live_version.is_not(None),
                DocumentRow.status != DocumentStatus.DELETING.value,
            )
            .values(_unchanged(tier.value))
        )
        wanted += affected(moved)
    if wanted:
        ring(session)
    return wanted


def ring(session: Session) -> None:
    """Have the open moves made, unless a job that has not begun will make them."""
    waits = session.scalar(
        select(JobRow.id)
        .where(JobRow.task == Task.PLACE.value, JobRow.status == JobStatus.WAITING.value)
        .limit(1)
    )
    if waits is None:
        add_job(
            session,
            Task.PLACE,
            tenant_id="system",
            subject_kind="index",
            subject_id="tiers",
            attempt_key=new_id("plc"),
            gives_way=True,
        )


def _unchanged(wanted: str | None) -> dict[str, object]:
    """A move is no change of the document: `updated_at` stays."""
    return {"wanted_tier": wanted, "updated_at": DocumentRow.updated_at}
