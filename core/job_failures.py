"""How a job fails: the pause before its next try, its end, and what its end does to its subject."""

from __future__ import annotations

import random

from sqlalchemy import update
from sqlalchemy.orm import Session

from core.db import affected, put_in_outbox, utcnow
from core.errors import LeaseLost
from core.models import BuildRow, DocumentRow, JobRow, QueryRow
from core.settings import WorkerSettings
from core.types import AnswerStatus, BuildStatus, DocumentStatus, JobStatus
from core.worker import OPTIONAL


def backoff_s(attempt: int, worker: WorkerSettings) -> float:
    """Seconds before attempt + 1: exponential with full jitter over the upper half, capped."""
    ceiling = min(worker.retry_cap_s, worker.retry_base_s * 2 ** (attempt - 1))
    return ceiling * (0.5 + random.random() / 2)  # noqa: S311 - jitter, not a secret


def try_again(session: Session, row: JobRow) -> None:
    """Give a failed job a fresh set of attempts and ring its worker after the commit."""
    row.status, row.attempts, row.sends = JobStatus.WAITING.value, 0, 0
    row.error_code = row.error_detail = row.finished_at = None
    row.cancel_requested = False
    row.next_send_at = utcnow()
    put_in_outbox(session, row.task, row.id, row.gives_way)
    session.flush()


def fail_job(session: Session, job_id: str, code: str, detail: str, *, token: str | None = None) -> None:
    """End a job as failed and tell its subject, in the caller's transaction.

    Raises:
        LeaseLost: `token` was given and the job is not held under it.
    """
    query = update(JobRow).where(JobRow.id == job_id)
    if token is not None:
        query = query.where(JobRow.lease_token == token)
    now = utcnow()
    done = session.execute(
        query.values(
            status=JobStatus.FAILED.value,
            error_code=code,
            error_detail=detail,
            finished_at=now,
            lease_token=None,
            lease_expires_at=None,
        )
    )
    if affected(done) != 1:
        raise LeaseLost(job_id=job_id)
    row = session.get_one(JobRow, job_id)
    _fail_subject(session, row, code, detail)


def _fail_subject(session: Session, job: JobRow, code: str, detail: str) -> None:
    """A failed stage ends its document, query or build with the reason; other states are left alone."""
    if job.task in OPTIONAL:
        return
    now = utcnow()
    if job.subject_kind == "document":
        session.execute(
            update(DocumentRow)
            .where(
                DocumentRow.id == job.subject_id,
                DocumentRow.latest_version == job.subject_version,
                DocumentRow.status != DocumentStatus.DELETING.value,
            )
            .values(status=DocumentStatus.FAILED.value, error_code=code, error_detail=detail, updated_at=now)
        )
    elif job.subject_kind == "query":
        open_states = (AnswerStatus.QUEUED.value, AnswerStatus.RUNNING.value)
        session.execute(
            update(QueryRow)
            .where(QueryRow.id == job.subject_id, QueryRow.status.in_(open_states))
            .values(status=AnswerStatus.FAILED.value, error_code=code, error_detail=detail, finished_at=now)
        )
    elif job.subject_kind == "build":
        session.execute(
            update(BuildRow)
            .where(BuildRow.id == job.subject_id)
            .values(
                status=BuildStatus.FAILED.value,
                error_code=code,
                error_detail=detail,
                finished_at=now,
                open_key=None,
            )
        )
