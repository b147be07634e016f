"""The safety net: expired leases are taken over, lost messages are sent again, hopeless jobs end.

A row is re-sent when (a) its lease expired, (b) its retry time has come, or (c) it waits unclaimed while
the queue is shorter than the number of waiting rows, at doubling intervals. A question that nobody holds at
its deadline ends, so that whoever waits for it is told.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from sqlalchemy import func, select, update

from core.aging import let_aged_forward
from core.db import Database, get_database, put_in_outbox, utcnow
from core.errors import QuestionTooLate
from core.job_failures import fail_job
from core.metrics import JOBS_REAPED
from core.models import JobRow, QueryRow
from core.redis_client import get_redis
from core.settings import get_settings
from core.types import JobStatus
from core.worker import REAP, get_app, waiting_messages

log = logging.getLogger(__name__)
_BATCH = 200


def reap(db: Database, queue_length: dict[str, int]) -> dict[str, int]:
    """Do one round.

    Args:
        db: the database.
        queue_length: messages that now wait in the broker, per queue.

    Returns:
        Counts by what was done: `expired`, `failed`, `resent`, `too_late`, `let_forward`.
    """
    counts = {"expired": 0, "failed": 0, "resent": 0, "too_late": 0, "let_forward": 0}
    _take_over_expired(db, counts)
    _end_too_late(db, counts)
    with db.write() as session:
        counts["let_forward"] = let_aged_forward(session)
    _resend_unclaimed(db, queue_length, counts)
    return counts


def _take_over_expired(db: Database, counts: dict[str, int]) -> None:
    worker, now = get_settings().worker, utcnow()
    with db.write() as session:
        rows = session.scalars(
            select(JobRow)
            .where(JobRow.status == JobStatus.RUNNING.value, JobRow.lease_expires_at < now)
            .limit(_BATCH)
            .with_for_update(skip_locked=True)
        ).all()
        for row in rows:
            if row.attempts >= worker.max_attempts:
                fail_job(
                    session,
                    row.id,
                    "worker_died",
                    f"The worker died {row.attempts} times while running {row.task}. "
                    "See its log, then retry the job.",
                )
                counts["failed"] += 1
                JOBS_REAPED.labels(row.task, "attempts_exhausted").inc()
                continue
            row.status, row.lease_token, row.lease_expires_at = JobStatus.WAITING.value, None, None
            row.next_send_at = now + timedelta(seconds=worker.resend_base_s)
            put_in_outbox(session, row.task, row.id, row.gives_way)
            counts["expired"] += 1
            JOBS_REAPED.labels(row.task, "lease_expired").inc()


def _end_too_late(db: Database, counts: dict[str, int]) -> None:
    """Questions that wait past their deadline; one that is worked on is ended by its worker."""
    with db.write() as session:
        jobs = session.scalars(
            select(JobRow)
            .join(QueryRow, QueryRow.id == JobRow.subject_id)
            .where(
                JobRow.status == JobStatus.WAITING.value,
                JobRow.subject_kind == "query",
                QueryRow.finished_at.is_(None),
                QueryRow.deadline_at < utcnow(),
            )
            .limit(_BATCH)
        ).all()
        for job in jobs:
            fail_job(session, job.id, QuestionTooLate.code, QuestionTooLate.title)
            counts["too_late"] += 1
            JOBS_REAPED.labels(job.task, "too_late").inc()


def _resend_unclaimed(db: Database, queue_length: dict[str, int], counts: dict[str, int]) -> None:
    worker, now = get_settings().worker, utcnow()
    with db.write() as session:
        waiting = dict(
            session.execute(
                select(JobRow.queue, func.count())
                .where(JobRow.status == JobStatus.WAITING.value)
                .group_by(JobRow.queue)
            ).all()
        )
        starved = [q for q, n in waiting.items() if queue_length.get(q, 0) < n]
        rows = session.scalars(
            select(JobRow)
            .where(
                JobRow.status == JobStatus.WAITING.value,
                JobRow.queue.in_(starved),
                JobRow.next_send_at <= now,
            )
            .order_by(JobRow.next_send_at)
            .limit(_BATCH)
            .with_for_update(skip_locked=True)
        ).all()
        for row in rows:
            gap = min(worker.resend_base_s * 2**row.sends, worker.retry_cap_s)
            session.execute(
                update(JobRow)
                .where(JobRow.id == row.id)
                .values(sends=JobRow.sends + 1, next_send_at=now + timedelta(seconds=gap))
            )
            put_in_outbox(session, row.task, row.id, row.gives_way)
            counts["resent"] += 1
            JOBS_REAPED.labels(row.task, "unclaimed").inc()


@get_app().task(name=REAP)
def reap_task() -> None:
    """Beat's entry."""
    client = get_redis()
    queues = ("ingest", "index", "query", "rebuild", "generate")
    counts = reap(get_database(), {q: waiting_messages(client, q) for q in queues})
    if any(counts.values()):
        log.info("reaped", extra=counts)
