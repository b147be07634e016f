"""The checks of `geo doctor`: contradictions that no single part of the system can see.

Each check reads and changes nothing; each finding names the command that mends it. `mend` removes what
nothing refers to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import exists, func, or_, select
from sqlalchemy.orm import Session

from api.cli.data import traces
from core.db import Database, utcnow
from core.models import (
    DocumentRow,
    DocumentVersionRow,
    IndexLogRow,
    JobRow,
    LeaseRow,
    PassageRow,
    PassageVectorRow,
)
from core.settings import Settings
from core.types import DocumentStatus, JobStatus
from ingest.service import STALE_STAGING_S, BlobStore, delete_unreferenced_blobs

FIX = "geo doctor --fix"
_SHOWN = 5
_OPEN = (JobStatus.WAITING.value, JobStatus.RUNNING.value)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        check: stable name.
        count: how many rows, files or ids.
        detail: what it means, with the first few ids.
        mend: the command or request that puts it right.
    """

    check: str
    count: int
    detail: str
    mend: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def examine(settings: Settings, db: Database) -> list[Finding]:
    """Run every check; an empty list means that nothing is wrong."""
    with db.read() as session:
        found = [finding for check in _ROW_CHECKS if (finding := check(session)) is not None]
        found += _blobs(session, BlobStore.of(settings))
    return found + _index(settings, db)


def mend(settings: Settings, db: Database) -> None:
    """Remove what can be removed without asking: files and rows that nothing refers to.

    Uploads and deletes may go on meanwhile.
    """
    store = BlobStore.of(settings)
    with db.write() as session:
        traces.remove_traces(session)
        traces.remove_superseded(session)
    with db.write() as session:
        delete_unreferenced_blobs(session, store)
    store.delete_stale_staging(STALE_STAGING_S, time.time())
    from retrieval.check_files import remove_strays
    from retrieval.manifest import IndexFolder

    remove_strays(db, IndexFolder(settings.index_dir))


def _some(ids: list[Any]) -> str:
    return ", ".join(str(i) for i in ids[:_SHOWN]) + (" …" if len(ids) > _SHOWN else "")


def _passages_without_vector(session: Session) -> Finding | None:
    ids = list(
        session.scalars(
            select(PassageRow.document_id)
            .join(DocumentRow, DocumentRow.id == PassageRow.document_id)
            .where(
                DocumentRow.live_version == PassageRow.version,
                ~exists().where(PassageVectorRow.passage_id == PassageRow.id),
            )
            .distinct()
        )
    )
    if not ids:
        return None
    return Finding(
        "passages_without_vector",
        len(ids),
        f"served documents with passages that the dense route cannot find: {_some(ids)}",
        f"POST /v1/documents/{ids[0]}/reprocess (for each)",
    )


def _stuck_documents(session: Session) -> Finding | None:
    in_work = (DocumentStatus.QUEUED.value, DocumentStatus.PROCESSING.value, DocumentStatus.DELETING.value)
    ids = list(
        session.scalars(
            select(DocumentRow.id).where(
                DocumentRow.status.in_(in_work),
                ~exists().where(JobRow.subject_id == DocumentRow.id, JobRow.status.in_(_OPEN)),
            )
        )
    )
    if not ids:
        return None
    return Finding(
        "documents_without_job",
        len(ids),
        f"documents said to be in work, but no job is open for them: {_some(ids)}",
        f"POST /v1/documents/{ids[0]}/reprocess, or DELETE it again",
    )


def _stuck_jobs(session: Session) -> Finding | None:
    # The reaper takes over within a few rounds; ten minutes late means that no reaper runs.
    late = utcnow() - timedelta(minutes=10)
    ids = list(
        session.scalars(
            select(JobRow.id).where(
                or_(
                    (JobRow.status == JobStatus.RUNNING.value) & (JobRow.lease_expires_at < late),
                    (JobRow.status == JobStatus.WAITING.value) & (JobRow.next_send_at < late),
                )
            )
        )
    )
    if not ids:
        return None
    return Finding(
        "jobs_stuck", len(ids), f"jobs that nobody has taken over for ten minutes: {_some(ids)}",
        "geo up (the maintenance worker must run; see geo status)",
    )  # fmt: skip


def _stuck_leases(session: Session) -> Finding | None:
    late = utcnow() - timedelta(minutes=10)
    names = list(
        session.scalars(select(LeaseRow.name).where(LeaseRow.holder.is_not(None), LeaseRow.expires_at < late))
    )
    if not names:
        return None
    return Finding(
        "leases_expired", len(names), f"leases whose holder is gone: {_some(names)}",
        "geo up (the next holder takes an expired lease over by itself)",
    )  # fmt: skip


def _traces_of_deleted(session: Session) -> Finding | None:
    """Rows that speak of a document which is not there any more."""
    return _leftovers(
        "traces_of_deleted", "left behind by deleted documents", traces.traces_of_deleted(session)
    )


def _superseded(session: Session) -> Finding | None:
    return _leftovers("versions_left_over", "of versions that nobody serves", traces.superseded(session))


def _leftovers(check: str, meaning: str, counts: dict[str, int]) -> Finding | None:
    if not counts:
        return None
    told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return Finding(check, sum(counts.values()), f"{meaning}: {told}", FIX)


def _jobs_of_gone(session: Session) -> Finding | None:
    ids = list(
        session.scalars(
            select(JobRow.id).where(
                JobRow.subject_kind == "document",
                JobRow.status.in_(_OPEN),
                ~exists().where(DocumentRow.id == JobRow.subject_id),
            )
        )
    )
    if not ids:
        return None
    told = f"open jobs of documents that are not there any more: {_some(ids)}"
    return Finding("jobs_of_deleted", len(ids), told, "geo up (they end as soon as a worker takes them)")


def _log_of_deleted(session: Session) -> Finding | None:
    """Adds in the index log whose document is gone and that no delete follows."""
    later = select(IndexLogRow.document_id, func.max(IndexLogRow.seq).label("seq")).group_by(
        IndexLogRow.document_id
    ).subquery()  # fmt: skip
    ids = list(
        session.scalars(
            select(IndexLogRow.document_id)
            .join(later, later.c.seq == IndexLogRow.seq)
            .where(IndexLogRow.op == "add", ~exists().where(DocumentRow.id == IndexLogRow.document_id))
        )
    )
    if not ids:
        return None
    return Finding(
        "index_holds_deleted", len(ids), f"deleted documents that the index still holds: {_some(ids)}",
        "geo tiers rebuild hot",
    )  # fmt: skip


def _blobs(session: Session, store: BlobStore) -> list[Finding]:
    wanted = set(session.scalars(select(DocumentVersionRow.blob_hash)))
    stored = store.digests()
    found: list[Finding] = []
    if orphans := sorted(stored - wanted):
        told = f"originals that no document version names: {_some(orphans)}"
        found.append(Finding("blobs_unreferenced", len(orphans), told, FIX))
    if stale := store.stale_staging(STALE_STAGING_S, time.time()):
        told = f"files of uploads that never ended: {_some([p.name for p in stale])}"
        found.append(Finding("staging_left_over", len(stale), told, FIX))
    if lost := sorted(wanted - stored):
        found.append(
            Finding(
                "blobs_missing",
                len(lost),
                f"versions whose original is gone: {_some(lost)}",
                "geo restore ARCHIVE --force, or upload the files again with PUT /v1/documents/ID",
            )
        )
    return found


def _index(settings: Settings, db: Database) -> list[Finding]:
    from retrieval.check import check_index
    from retrieval.manifest import IndexFolder

    folder = IndexFolder(settings.index_dir)
    faults = check_index(db, folder).faults
    if any(fault.check == "index_damaged" for fault in faults) and folder.current_stamp() is None:
        told = "no index is published here, as after a restore; the next start builds it from the rows"
        return [Finding("index_not_built", 1, told, "geo up")]
    return [Finding(fault.check, fault.count, fault.detail, fault.mend) for fault in faults]


_ROW_CHECKS: tuple[Callable[[Session], Finding | None], ...] = (
    _passages_without_vector,
    _stuck_documents,
    _stuck_jobs,
    _stuck_leases,
    _traces_of_deleted,
    _superseded,
    _jobs_of_gone,
    _log_of_deleted,
)
