"""Durable jobs: add, claim, heartbeat, finish, try again.

A task is a few short transactions: claim (commit), work with no session open, finish (commit). The
row is the truth and the broker only rings, so each step holds when a message comes twice or never.
Only the holder of a lease may finish its job; whoever lost the lease gets `LeaseLost` and its
transaction rolls back, so an effect happens once.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import bindparam, case, insert, select, true, update
from sqlalchemy.orm import Session

from core.db import Database, affected, get_database, plain_rows, put_in_outbox, utcnow
from core.errors import DiskFull, DocumentRejected, GeoError, LeaseLost, TransientError
from core.ids import new_id
from core.job_failures import backoff_s, fail_job
from core.lease_keeper import LEASES
from core.metrics import JOB_SECONDS, JOBS_FINISHED
from core.models import DocumentRow, JobRow
from core.retry import classify
from core.settings import get_settings
from core.types import DocumentStatus, JobStatus
from core.worker import QUEUES, Task

log = logging.getLogger(__name__)


# Made once: every question and document runs them, and to build a statement takes longer than to run it.
_SAME = select(JobRow.id).where(
    JobRow.task == bindparam("of_task"),
    JobRow.subject_id == bindparam("of_subject_id"),
    JobRow.subject_version == bindparam("of_subject_version"),
    JobRow.attempt_key == bindparam("of_attempt_key"),
)
_ADD = insert(JobRow)
_CLAIM = (
    update(JobRow)
    .where(
        JobRow.id == bindparam("job_id"),
        (JobRow.status == JobStatus.WAITING.value)
        | ((JobRow.status == JobStatus.RUNNING.value) & (JobRow.lease_expires_at < bindparam("now"))),
        JobRow.attempts < bindparam("most"),
    )
    .values(
        status=JobStatus.RUNNING.value,
        lease_token=bindparam("token"),
        lease_expires_at=bindparam("until"),
        attempts=JobRow.attempts + 1,
        started_at=bindparam("now"),
    )
    .returning(*JobRow.__table__.c)
)


def add_job(
    session: Session,
    task: Task,
    *,
    tenant_id: str,
    subject_kind: str,
    subject_id: str,
    subject_version: int = 0,
    attempt_key: str = "",
    gives_way: bool = False,
    ring_in_s: float = 0.0,
    **args: Any,
) -> str:
    """Record the intent and ring the worker after the commit.

    Args:
        session: an open `Database.write()` session.
        task: what to run; its queue follows from `core.worker.QUEUES`.
        tenant_id: the tenant on whose behalf it runs.
        subject_id: id of the document, query or build.
        subject_version: version of the document, 0 for other subjects.
        subject_kind: `document`, `query` or `build`; a failed job fails its subject.
        attempt_key: makes a second run of the same task on the same subject a new job.
        gives_way: let the work that people wait for go first.
        ring_in_s: seconds before the reaper rings, unless `ring_job` does; 0 rings after the commit.
        args: ids and small options only.

    Returns:
        The id of the new job, or of the one that already stands for the same key.
    """
    key = {
        "task": task.value,
        "subject_id": subject_id,
        "subject_version": subject_version,
        "attempt_key": attempt_key,
    }
    for (known,) in plain_rows(session, _SAME, {f"of_{name}": value for name, value in key.items()}):
        return known
    job_id = new_id("job")
    row = {
        **key,
        "id": job_id,
        "tenant_id": tenant_id,
        "queue": QUEUES[task],
        "subject_kind": subject_kind,
        "gives_way": gives_way,
        "args": args,
        "next_send_at": utcnow() + timedelta(seconds=ring_in_s or get_settings().worker.resend_base_s),
    }
    session.connection().execute(_ADD, row)
    if not ring_in_s:
        put_in_outbox(session, task.value, job_id, gives_way)
    return job_id


def ring_job(session: Session, task: Task, subject_id: str) -> None:
    """Ring after the commit for a subject's waiting job that was added with `ring_in_s`."""
    waiting = session.scalars(
        select(JobRow).where(
            JobRow.task == task.value,
            JobRow.subject_id == subject_id,
            JobRow.status == JobStatus.WAITING.value,
        )
    )
    for row in waiting:
        put_in_outbox(session, row.task, row.id, row.gives_way)


@dataclass(slots=True)
class JobRun:
    """One claimed attempt, handed to the task's function."""

    db: Database
    id: str
    task: Task
    tenant_id: str
    subject_id: str
    subject_version: int
    attempt: int
    attempt_key: str
    args: dict[str, Any]
    token: str
    gives_way: bool = field(default=False)
    reached: tuple[int, int] = field(default=(0, 0))
    finished: bool = field(default=False)
    handed_back: bool = field(default=False)
    begun: float = field(default_factory=time.perf_counter)

    def progress(self, done: int, total: int) -> None:
        """Store progress; it renews the lease. Raises `LeaseLost` when another worker took over."""
        with self.db.write() as session:
            self.report(session, done, total)

    def report(self, session: Session, done: int, total: int) -> None:
        """`progress` in the caller's transaction.

        A later attempt does again what an earlier one lost; what is shown never goes back meanwhile. One that
        gets further than all before it counts as the first: work that advances is not given up, however
        often its worker dies, while work that always dies at the same place is.
        """
        went_further = (JobRow.progress_total == total) & (JobRow.progress_done > done)
        furthest = case((went_further, JobRow.progress_done), else_=done)
        values: dict[str, Any] = {"progress_done": furthest, "progress_total": total}
        if self.attempt > 1 and self.reached[1] in (0, total) and self.reached[0] < done < total:
            values["attempts"] = self.attempt = 1
        self.touch(session, **values)

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked to stop this job."""
        with self.db.read() as session:
            return bool(session.scalar(select(JobRow.cancel_requested).where(JobRow.id == self.id)))

    @contextmanager
    def finish(self, status: JobStatus = JobStatus.DONE) -> Generator[Session]:
        """The last transaction: the caller's writes and the job's end commit together or not at all.

        Raises:
            LeaseLost: the lease is not ours any more; nothing was written.
        """
        with self.db.write() as session:
            self.close(session, status)
            yield session
        self.finished = True

    def close(self, session: Session, status: JobStatus = JobStatus.DONE) -> None:
        """End the job in the caller's transaction; set `finished` once that has committed.

        Raises:
            LeaseLost: the lease is not ours any more; what belongs to the job must not be written either.
        """
        self.touch(
            session, status=status.value, finished_at=utcnow(), lease_token=None, lease_expires_at=None
        )

    def hand_back(self) -> None:
        """Let another process go on with it at once, as when this one is asked to stop: no failed attempt.

        The run is over for this one: nothing is left to be finished or settled.
        """
        with self.db.write() as session:
            self.touch(
                session,
                status=JobStatus.WAITING.value,
                attempts=self.attempt - 1,
                lease_token=None,
                lease_expires_at=None,
                next_send_at=utcnow(),
            )
        LEASES.release(self.token)
        self.finished = self.handed_back = True

    def touch(self, session: Session, **values: Any) -> None:
        """Set columns of the job under our lease and renew it; raises `LeaseLost` if it is not ours."""
        values.setdefault("lease_expires_at", utcnow() + timedelta(seconds=get_settings().worker.lease_ttl_s))
        done = session.execute(
            update(JobRow).where(JobRow.id == self.id, JobRow.lease_token == self.token).values(**values)
        )
        if affected(done) != 1:
            raise LeaseLost(job_id=self.id)


def run_job(job_id: str, work: Callable[[JobRun], None], *, db: Database | None = None) -> None:
    """Claim the job, do the work under a kept lease, and settle its outcome.

    A job that is done, cancelled or held by a living worker is left alone (a no-op). `work` must end
    with `with run.finish() as session:`; if it returns without, the job is finished plainly.
    """
    for run in claim(db or get_database(), (job_id,)):
        try:
            work(run)
            if not run.finished:
                with run.finish():
                    pass
        except Exception as error:  # noqa: BLE001 - `settle` sorts errors into retry and end
            settle(run, error)
        else:
            settle(run)
        finally:
            LEASES.release(run.token)


def settle(run: JobRun, error: Exception | None = None) -> None:
    """Stop keeping the lease of a run and store what became of it: finished, to be tried again, or failed.

    One that was handed back has been stored already and is only counted.
    """
    if error is None:
        outcome = "handed_back" if run.handed_back else "done"
    elif isinstance(error, LeaseLost):
        outcome = "lease_lost"
        log.warning("lease_lost", extra={"job_id": run.id, "task": run.task.value})
    else:
        outcome = _settle_error(run.db, run, classify(error))
    LEASES.release(run.token)
    JOBS_FINISHED.labels(run.task.value, outcome).inc()
    JOB_SECONDS.labels(run.task.value).observe(time.perf_counter() - run.begun)


def waiting_jobs(
    db: Database, task: Task, limit: int, *, attempts: int = 0, giving_way: bool = False
) -> list[str]:
    """Jobs of a task tried so often, in the order of their turn; those that give way come last.

    With `giving_way`, of those only.
    """
    with db.read() as session:
        return list(
            session.scalars(
                select(JobRow.id)
                .where(
                    JobRow.gives_way if giving_way else true(),
                    JobRow.status == JobStatus.WAITING.value,
                    JobRow.queue == QUEUES[task],
                    JobRow.task == task.value,
                    JobRow.attempts == attempts,
                    JobRow.error_code.is_(None),  # waits for its next try
                )
                .order_by(JobRow.gives_way, JobRow.created_at, JobRow.id)
                .limit(limit)
            )
        )


def claim(db: Database, job_ids: Sequence[str]) -> list[JobRun]:
    """Take these jobs in one transaction and keep their leases; each must be given to `settle` at its end.

    Jobs that are done, cancelled, out of attempts or held by a living worker are left out.
    """
    with db.write() as session:
        taken = [run for job_id in job_ids if (run := _claim(db, session, job_id)) is not None]
    for run in taken:
        LEASES.hold(db, run.token)
    return taken


def _claim(db: Database, session: Session, job_id: str) -> JobRun | None:
    token, now = secrets.token_hex(16), utcnow()
    worker = get_settings().worker
    given = {
        "job_id": job_id,
        "now": now,
        "most": worker.max_attempts,
        "token": token,
        "until": now + timedelta(seconds=worker.lease_ttl_s),
    }
    row = next(iter(plain_rows(session, _CLAIM, given)), None)
    if row is None:
        return None
    if row.subject_kind == "document" and row.task != Task.PURGE.value:
        session.execute(
            update(DocumentRow)
            .where(DocumentRow.id == row.subject_id, DocumentRow.status == DocumentStatus.QUEUED.value)
            .values(status=DocumentStatus.PROCESSING.value)
        )
    return JobRun(
        db,
        row.id,
        Task(row.task),
        row.tenant_id,
        row.subject_id,
        row.subject_version,
        row.attempts,
        row.attempt_key,
        dict(row.args),
        token,
        row.gives_way,
        (row.progress_done, row.progress_total),
    )


def _settle_error(db: Database, run: JobRun, error: GeoError) -> str:
    worker = get_settings().worker
    # Waiting for space is nobody's failed attempt: the work goes on once there is some.
    no_space = isinstance(error, DiskFull)
    retry = no_space or (isinstance(error, TransientError) and run.attempt < worker.max_attempts)
    told = {"job_id": run.id, "task": run.task.value, "code": error.code, "detail": error.detail}
    if isinstance(error, DocumentRejected):  # the file's fault, told to its owner: nothing for the operator
        log.info("document_rejected", extra=told)
    else:
        log.log(
            logging.WARNING if retry else logging.ERROR,
            "job_retry" if retry else "job_failed",
            extra=told,
            exc_info=error.__cause__ or error,
        )
    try:
        with db.write() as session:
            if not retry:
                fail_job(session, run.id, error.code, error.detail, token=run.token)
                return "failed"
            delay = backoff_s(worker.max_attempts if no_space else run.attempt, worker)
            run.touch(
                session,
                status=JobStatus.WAITING.value,
                attempts=run.attempt - 1 if no_space else run.attempt,
                lease_token=None,
                lease_expires_at=None,
                error_code=error.code,
                error_detail=error.detail,
                next_send_at=utcnow() + timedelta(seconds=delay),
            )
    except LeaseLost:
        return "lease_lost"
    return "retry"
