"""Steering builds: pause, resume, cancel from a door; begin, stop and end from the task.

| asked while it is | pause | resume | cancel |
|---|---|---|---|
| queued | paused at once | – | cancelled at once |
| running | at the next batch, files kept | takes the pause back | at the next batch |
| paused | – | queued; goes on where it stopped | cancelled at once |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from core.db import affected, utcnow
from core.errors import Conflict
from core.ids import new_id
from core.jobs import add_job
from core.models import BuildRow, JobRow
from core.types import BuildStatus, JobStatus, Scope
from core.worker import Task
from retrieval.builds import Build, as_value, get_build, job_of

PAUSE, CANCEL = "pause", "cancel"


def pause_build(session: Session, scope: Scope, *, build_id: str) -> Build:
    """Have an open build stop; it stays open and keeps its files until it is resumed or cancelled.

    Raises:
        NotFound: no such build.
        Conflict: it has ended, or is to be cancelled.
    """
    row = _open_row(session, scope, build_id)
    _refuse_cancelled(row)
    if row.status == BuildStatus.PAUSED.value:
        return as_value(session, row)
    if _withdraw_job(session, row):
        row.status = BuildStatus.PAUSED.value
    else:
        row.wanted = PAUSE
    session.flush()
    return as_value(session, row)


def resume_build(session: Session, scope: Scope, *, build_id: str) -> Build:
    """Let a paused build go on; finished files are not made again.

    Raises:
        NotFound: no such build.
        Conflict: it has ended, or is to be cancelled.
    """
    row = _open_row(session, scope, build_id)
    _refuse_cancelled(row)
    row.wanted = ""
    if row.status == BuildStatus.PAUSED.value:
        row.status = BuildStatus.QUEUED.value
        add_job(
            session,
            Task.REBUILD,
            tenant_id=scope.tenant_id,
            subject_kind="build",
            subject_id=row.id,
            attempt_key=new_id("try"),
        )
    session.flush()
    return as_value(session, row)


def cancel_build(session: Session, scope: Scope, *, build_id: str) -> Build:
    """Have a build stop for good; what is served does not change.

    Raises:
        NotFound: no such build.
        Conflict: it has ended.
    """
    row = _open_row(session, scope, build_id)
    if row.status == BuildStatus.PAUSED.value or _withdraw_job(session, row):
        row.status, row.open_key, row.finished_at = BuildStatus.CANCELLED.value, None, utcnow()
    else:
        row.wanted = CANCEL
    session.flush()
    return as_value(session, row)


# -- for the task ------------------------------------------------------------------------------


def start_build(session: Session, build_id: str) -> BuildRow | None:
    """Mark a build running; None when it ended or was paused meanwhile."""
    done = session.execute(
        update(BuildRow)
        .where(
            BuildRow.id == build_id,
            BuildRow.open_key.is_not(None),
            BuildRow.status != BuildStatus.PAUSED.value,
        )
        .values(status=BuildStatus.RUNNING.value)
    )
    return session.get_one(BuildRow, build_id) if affected(done) == 1 else None


def asked_of(session: Session, build_id: str) -> str:
    """What somebody asked of a running build: `pause`, `cancel` or nothing."""
    row = session.execute(
        select(BuildRow.wanted, JobRow.cancel_requested)
        .join(JobRow, JobRow.subject_id == BuildRow.id)
        .where(BuildRow.id == build_id, JobRow.status == JobStatus.RUNNING.value)
    ).first()
    if row is None:
        return ""
    return CANCEL if row[1] else row[0]


def note_progress(session: Session, build_id: str, *, seq: int, stats: Mapping[str, Any]) -> None:
    """Store how far a build is, and from where it will replay the log."""
    row = session.get_one(BuildRow, build_id)
    row.seq, row.stats = seq, dict(stats)


def keep_paused(session: Session, build_id: str, stats: Mapping[str, Any]) -> None:
    """The build stopped as it was asked to; it stays open."""
    row = session.get_one(BuildRow, build_id)
    row.status, row.wanted, row.stats = BuildStatus.PAUSED.value, "", dict(stats)


def end_build(
    session: Session,
    build_id: str,
    status: BuildStatus,
    *,
    to_generation: int | None,
    stats: Mapping[str, Any],
) -> None:
    """Close a build with its outcome."""
    row = session.get_one(BuildRow, build_id)
    row.status, row.open_key, row.finished_at = status.value, None, utcnow()
    row.to_generation, row.stats, row.wanted = to_generation, dict(stats), ""


def open_builds(session: Session) -> set[str]:
    """Ids of the builds that are open; only their files may be needed again."""
    return set(session.scalars(select(BuildRow.id).where(BuildRow.open_key.is_not(None))))


def open_models(session: Session) -> set[str]:
    """Encoders that open builds change to."""
    return set(session.scalars(select(BuildRow.model).where(BuildRow.open_key.is_not(None))))


def _open_row(session: Session, scope: Scope, build_id: str) -> BuildRow:
    get_build(session, scope, build_id=build_id)
    row = session.get_one(BuildRow, build_id, with_for_update=True, populate_existing=True)
    if row.open_key is None:
        raise Conflict(f"The build has ended as {row.status}.", build_id=build_id)
    return row


def _refuse_cancelled(row: BuildRow) -> None:
    if row.wanted == CANCEL:
        raise Conflict("The build is being cancelled.", build_id=row.id)


def _withdraw_job(session: Session, row: BuildRow) -> bool:
    """Take back a job that no worker has begun; False when one works on it."""
    job = job_of(session, row.id)
    if job is None:
        return True
    done = session.execute(
        update(JobRow)
        .where(JobRow.id == job.id, JobRow.status != JobStatus.RUNNING.value)
        .values(status=JobStatus.CANCELLED.value, finished_at=utcnow())
    )
    return affected(done) == 1
