"""Aging: the oldest jobs that give way are let forward, a few at a time, so that none waits for ever.

Broker lists are strict: what gives way is taken when nothing else waits. Under a load that never ends that
would be never. All of them at once would be as wrong, because ten thousand batch questions would then stand
before every person's. So a small fixed number is under way as if it were urgent, oldest first: batch work
always advances, and interactive work always has the rest.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.db import put_in_outbox, utcnow
from core.models import JobRow, QueryRow
from core.settings import get_settings
from core.types import JobStatus
from core.worker import Task

_AGE = (Task.REWRITE, Task.RERANK, Task.ANSWER)


def let_aged_forward(session: Session) -> int:
    """Let jobs of batch questions that waited out the head start go first, and ring for them.

    Args:
        session: an open `Database.write()` session.

    Returns:
        How many were let forward; with those that already are, at most `generation.aged_at_once` per task.
    """
    generation = get_settings().generation
    before = utcnow() - timedelta(seconds=generation.head_start_s)
    forward = 0
    for task in _AGE:
        room = generation.aged_at_once - _under_way(session, task)
        if room <= 0:
            continue
        rows = session.scalars(
            select(JobRow)
            .where(
                JobRow.task == task.value,
                JobRow.status == JobStatus.WAITING.value,
                JobRow.gives_way,
                JobRow.created_at < before,
            )
            .order_by(JobRow.created_at, JobRow.id)
            .limit(room)
            .with_for_update(skip_locked=True)
        ).all()
        for row in rows:
            row.gives_way = False
            put_in_outbox(session, row.task, row.id)
        forward += len(rows)
    return forward


def _under_way(session: Session, task: Task) -> int:
    """Open jobs of batch questions that do not give way (any more)."""
    query = (
        select(func.count())
        .select_from(JobRow)
        .join(QueryRow, QueryRow.id == JobRow.subject_id)
        .where(
            JobRow.task == task.value,
            JobRow.status.in_((JobStatus.WAITING.value, JobStatus.RUNNING.value)),
            ~JobRow.gives_way,
            QueryRow.priority == "batch",
        )
    )
    return session.scalar(query) or 0
