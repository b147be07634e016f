"""Making new versions of a whole collection's documents from their stored originals, in the background.

A walk is a row, not a running task: the maintenance worker's beat tops up its documents in work to a window,
so a killed worker costs nothing and a cancelled walk stops at the next look. Its jobs give way to fresh
uploads at every stage, and each old version is served until the new one is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.db import Database, utcnow
from core.errors import Conflict, NotFound
from core.ids import new_id
from core.models import CollectionRow, DocumentRow, JobRow, ReprocessRow
from core.types import DocumentStatus, JobStatus, Scope
from core.worker import Task
from ingest import repository
from ingest.documents import begin_again
from ingest.wanted_recipes import SETTLED, is_outdated

_WINDOW = 100  # documents of one walk in work at a time; a top-up every 5 s feeds up to 20 a second
_OPEN = (JobStatus.WAITING.value, JobStatus.RUNNING.value)


class Only(StrEnum):
    """Which documents a walk takes. One that is in work is left alone: it is being made anew already."""

    OUTDATED = "outdated"
    FAILED = "failed"
    ALL = "all"


class WalkStatus(StrEnum):
    """State of a walk."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Reprocess:
    """A walk over a collection.

    Attributes:
        total: documents wanted when it began; queued: those given to the workers so far.
        done, failed: those whose new version is served, or could not be made (the old one still is).
        skipped: wanted at the beginning but deleted, in work or up to date when their turn came.
    """

    id: str
    collection_id: str
    only: Only
    status: WalkStatus
    total: int
    queued: int
    done: int
    failed: int
    skipped: int
    created_at: datetime
    finished_at: datetime | None


def start_reprocess(session: Session, scope: Scope, *, collection: str, only: Only) -> tuple[Reprocess, bool]:
    """Begin a walk, or return the one that is under way for the same documents.

    Returns:
        The walk, and whether it is a new one.

    Raises:
        Conflict: another walk over this collection is under way.
        NotFound: the collection is not visible.
    """
    target = repository.find_collection(session, scope, collection, share=True)
    known = session.scalar(select(ReprocessRow).where(ReprocessRow.open_key == target.id))
    if known is not None:
        if known.only != only.value:
            raise Conflict(
                f"The collection is being reprocessed ({known.only}); wait for it or cancel it.",
                reprocess_id=known.id,
            )
        return _value(session, known), False
    wanted = _wanted(session, target.id, only)
    total, until = session.execute(select(func.count(), func.max(DocumentRow.id)).where(wanted)).one()
    row = ReprocessRow(
        id=new_id("rep"),
        tenant_id=scope.tenant_id,
        collection_id=target.id,
        open_key=target.id,
        only=only.value,
        until=until or "",
        total=total,
        created_by=scope.principal[:40],
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        raise Conflict("The collection is being reprocessed already; ask again.") from error
    _advance(session, row)
    return _value(session, row), True


def get_reprocess(session: Session, scope: Scope, *, reprocess_id: str) -> Reprocess:
    """One walk with its counts; raises `NotFound`."""
    return _value(session, _find(session, scope, reprocess_id))


def list_reprocesses(
    session: Session, scope: Scope, *, collection: str, limit: int = 20
) -> tuple[Reprocess, ...]:
    """The latest walks over a collection, newest first; raises `NotFound`."""
    target = repository.find_collection(session, scope, collection)
    rows = session.scalars(
        select(ReprocessRow)
        .where(ReprocessRow.collection_id == target.id)
        .order_by(ReprocessRow.id.desc())
        .limit(limit)
    )
    return tuple(_value(session, row) for row in rows)


def cancel_reprocess(session: Session, scope: Scope, *, reprocess_id: str) -> Reprocess:
    """Begin no further document; those in work are finished. A walk that has ended stays as it is."""
    row = _find(session, scope, reprocess_id, lock=True)
    if row.status == WalkStatus.RUNNING.value:
        _end(row, WalkStatus.CANCELLED)
        session.flush()
    return _value(session, row)


def top_up(db: Database) -> int:
    """Give every walk under way its next documents; returns how many were given."""
    with db.read() as session:
        open_ids = session.scalars(select(ReprocessRow.id).where(ReprocessRow.open_key.is_not(None))).all()
    given = 0
    for walk_id in open_ids:
        with db.write() as session:
            # The collection is locked before its walk and its documents, as everywhere.
            session.execute(
                select(CollectionRow.id)
                .where(
                    CollectionRow.id
                    == select(ReprocessRow.collection_id).where(ReprocessRow.id == walk_id).scalar_subquery()
                )
                .with_for_update(read=True)
            )
            row = session.scalar(
                select(ReprocessRow)
                .where(ReprocessRow.id == walk_id, ReprocessRow.open_key.is_not(None))
                .with_for_update()
            )
            if row is not None:
                given += _advance(session, row)
    return given


# -- steps -------------------------------------------------------------------------------------


def _advance(session: Session, row: ReprocessRow) -> int:
    """Take the next documents into work, up to the window; end the walk when none is left."""
    in_work = _counts(session, row)[0]
    ahead = and_(
        DocumentRow.collection_id == row.collection_id,
        DocumentRow.id > row.cursor,
        DocumentRow.id <= row.until,
    )
    room = _WINDOW - in_work
    ids = session.scalars(
        select(DocumentRow.id)
        .where(ahead, _wanted(session, row.collection_id, Only(row.only)))
        .order_by(DocumentRow.id)
        .limit(max(room, 0))
    ).all()
    given = 0
    for document_id in ids:
        if begin_again(session, document_id, walk=row.id):
            given += 1
        row.cursor = document_id
    row.queued += given
    if len(ids) < room and in_work + given == 0:
        _end(row, WalkStatus.DONE)
        row.skipped = max(row.total - row.queued, 0)
    session.flush()
    return given


def _wanted(session: Session, collection_id: str, only: Only) -> ColumnElement[bool]:
    within = DocumentRow.collection_id == collection_id
    if only is Only.FAILED:
        return and_(within, DocumentRow.status == DocumentStatus.FAILED.value)
    if only is Only.OUTDATED:
        return and_(within, is_outdated(session, within))
    return and_(within, DocumentRow.status.in_(SETTLED))


def _end(row: ReprocessRow, status: WalkStatus) -> None:
    row.status, row.open_key, row.finished_at = status.value, None, utcnow()


def _find(session: Session, scope: Scope, reprocess_id: str, *, lock: bool = False) -> ReprocessRow:
    query = select(ReprocessRow).where(
        repository.in_scope(scope, ReprocessRow.tenant_id, ReprocessRow.collection_id),
        ReprocessRow.id == reprocess_id,
    )
    row = session.scalar(query.with_for_update() if lock else query)
    if row is None:
        raise NotFound("No such reprocessing.", reprocess_id=reprocess_id)
    return row


def _counts(session: Session, row: ReprocessRow) -> tuple[int, int, int]:
    """Documents of the walk that are in work, done and failed, from the jobs themselves."""
    found = session.execute(
        select(JobRow.task, JobRow.status, func.count())
        .where(JobRow.tenant_id == row.tenant_id, JobRow.attempt_key == row.id)
        .group_by(JobRow.task, JobRow.status)
    ).all()
    in_work = sum(n for _, status, n in found if status in _OPEN)
    done = sum(n for task, status, n in found if (task, status) == (Task.INDEX.value, JobStatus.DONE.value))
    failed = sum(n for _, status, n in found if status == JobStatus.FAILED.value)
    return in_work, done, failed


def _value(session: Session, row: ReprocessRow) -> Reprocess:
    _, done, failed = _counts(session, row)
    return Reprocess(
        row.id, row.collection_id, Only(row.only), WalkStatus(row.status), row.total, row.queued, done,
        failed, row.skipped, row.created_at, row.finished_at,
    )  # fmt: skip
