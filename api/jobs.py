"""The operator's view of durable work: what waits, runs, failed; and another try for what failed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from core.db import affected, utcnow
from core.errors import Conflict, NotFound
from core.job_failures import try_again
from core.models import DocumentRow, JobRow, QueryRow
from core.types import AnswerStatus, DocumentStatus, JobStatus


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job failed, or why its last attempt did."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Job:
    """One unit of work. Its subject is a document, a query or a build."""

    id: str
    tenant_id: str
    task: str
    queue: str
    subject_kind: str
    subject_id: str
    subject_version: int
    status: JobStatus
    attempts: int
    progress: dict[str, int]
    error: JobError | None
    lease_expires_at: datetime | None
    next_send_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


def list_jobs(
    session: Session,
    *,
    status: JobStatus | None = None,
    task: str | None = None,
    queue: str | None = None,
    subject_id: str | None = None,
    before: str = "",
    limit: int = 100,
) -> list[Job]:
    """Jobs of all tenants, newest first. For operators: ids and states, no document text."""
    query = select(JobRow)
    for column, wanted in (
        (JobRow.status, None if status is None else status.value),
        (JobRow.task, task),
        (JobRow.queue, queue),
        (JobRow.subject_id, subject_id),
    ):
        if wanted is not None:
            query = query.where(column == wanted)
    if before:
        query = query.where(JobRow.id < before)
    return [_to_value(row) for row in session.scalars(query.order_by(JobRow.id.desc()).limit(limit))]


def counts(session: Session) -> dict[str, dict[str, int]]:
    """Number of jobs by queue and status."""
    found: dict[str, dict[str, int]] = {}
    query = select(JobRow.queue, JobRow.status, func.count()).group_by(JobRow.queue, JobRow.status)
    for queue, status, number in session.execute(query):
        found.setdefault(queue, {})[status] = number
    return found


def retry(session: Session, job_id: str) -> Job:
    """Give a failed job a fresh set of attempts and ring its worker after the commit.

    Raises:
        NotFound: no such job.
        Conflict: it has not failed, its subject has moved on, or it is a rebuild (start a new one).
    """
    row = session.get(JobRow, job_id, with_for_update=True)
    if row is None:
        raise NotFound("There is no such job.", job_id=job_id)
    if row.status != JobStatus.FAILED.value:
        raise Conflict(f"The job is {row.status}; only a failed one can be tried again.", job_id=job_id)
    if not _revive_subject(session, row):
        raise Conflict(
            f"The {row.subject_kind} has moved on since this job failed; nothing is left to try again.",
            job_id=job_id,
            subject_id=row.subject_id,
        )
    try_again(session, row)
    return _to_value(row)


def _revive_subject(session: Session, job: JobRow) -> bool:
    """Put the failed document or query back in line; False when that is not its state any more."""
    if job.subject_kind == "document":
        document = session.get(DocumentRow, job.subject_id)
        if document is None:
            return False
        if document.status == DocumentStatus.DELETING.value:
            return True
        done = session.execute(
            update(DocumentRow)
            .where(
                DocumentRow.id == job.subject_id,
                DocumentRow.latest_version == job.subject_version,
                DocumentRow.status == DocumentStatus.FAILED.value,
            )
            .values(status=DocumentStatus.QUEUED.value, error_code=None, error_detail=None)
        )
    elif job.subject_kind == "query":
        query = session.get(QueryRow, job.subject_id, with_for_update=True)
        if query is None or query.status != AnswerStatus.FAILED.value:
            return False
        query.status, query.cancel_requested = AnswerStatus.QUEUED.value, False
        query.error_code = query.error_detail = query.finished_at = None
        if query.deadline_at is not None:  # it has as long again; else it would fail at once as too late
            query.deadline_at = utcnow() + (query.deadline_at - query.created_at)
        return True
    else:
        return False
    return affected(done) == 1


def _to_value(row: JobRow) -> Job:
    error = JobError(row.error_code, row.error_detail or "") if row.error_code else None
    progress: dict[str, Any] = {"done": row.progress_done, "total": row.progress_total}
    return Job(
        row.id, row.tenant_id, row.task, row.queue, row.subject_kind, row.subject_id, row.subject_version,
        JobStatus(row.status), row.attempts, progress, error, row.lease_expires_at, row.next_send_at,
        row.created_at, row.started_at, row.finished_at,
    )  # fmt: skip
