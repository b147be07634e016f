"""The light doors to tiers and builds: states, rebuild, rollback, cancel. Nothing heavy is imported.

One build per tier is open at a time (`builds.open_key` is unique); the work is the rebuild task.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.db import Database, affected, utcnow
from core.errors import Conflict, GeoError, InvalidInput, NotFound
from core.ids import new_id
from core.jobs import add_job
from core.models import BuildRow, IndexLogRow, JobRow, TierRow
from core.settings import get_settings
from core.types import BuildStatus, JobStatus, Role, Scope, Tier
from core.worker import Task
from retrieval import tier_repository as repository
from retrieval.files import DamagedIndex
from retrieval.manifest import IndexFolder

log = logging.getLogger(__name__)

MODES = ("full", "compact")
ROLLBACK = "rollback"
_CONFIGURED = (Tier.HOT,)  # every passage is in the hot tier; warm and cold hold nothing yet


@dataclass(frozen=True, slots=True)
class TierStatus:
    """What a tier serves.

    Attributes:
        status: `ready`, `empty`, `refused` (damaged, being rebuilt) or `not_configured`.
        vectors: live vectors by the published manifest.
        generation: published generation; 0 before the first.
        pending: log entries that are not searchable yet.
        previous: generations that a rollback can go to, newest first.
        refused: why readers refuse it, or None.
        open_build: id of the build that runs, or None.
    """

    tier: str
    status: str
    vectors: int = 0
    segments: int = 0
    generation: int = 0
    applied_seq: int = 0
    pending: int = 0
    model: str = ""
    dimension: int = 0
    published_at: datetime | None = None
    previous: tuple[int, ...] = ()
    refused: str | None = None
    open_build: str | None = None


@dataclass(frozen=True, slots=True)
class Build:
    """One rebuild or rollback of a tier. `mode` is `full`, `compact` or `rollback`."""

    id: str
    tier: str
    mode: str
    status: str
    from_generation: int
    to_generation: int | None
    progress_done: int
    progress_total: int
    stats: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error_code: str | None = None
    error_detail: str | None = None
    created_by: str = ""
    created_at: datetime | None = None
    finished_at: datetime | None = None


def tier_status(session: Session) -> list[TierStatus]:
    """All tiers, hot first."""
    return [_hot_status(session), *(TierStatus(t.value, "not_configured") for t in Tier if t != Tier.HOT)]


def _hot_status(session: Session) -> TierStatus:
    row = session.get(TierRow, Tier.HOT.value)
    build = session.scalar(select(BuildRow.id).where(BuildRow.open_key == Tier.HOT.value))
    applied = row.applied_seq if row else 0
    pending = session.scalar(select(func.count()).where(IndexLogRow.seq > applied)) or 0
    if row is None:
        return TierStatus(Tier.HOT.value, "empty", pending=int(pending), open_build=build)
    vectors, segments, refused = 0, 0, row.refused
    if row.generation:
        try:
            manifest = IndexFolder(get_settings().index_dir).read_manifest(row.generation)
            hot = manifest.tier(Tier.HOT.value)
            vectors, segments = hot.live_count, len(hot.segments)
        except (DamagedIndex, OSError) as error:
            refused = refused or str(error)
    status = "refused" if refused else "ready" if row.generation else "empty"
    return TierStatus(
        row.tier, status, vectors, segments, row.generation, row.applied_seq, int(pending), row.model,
        row.dimension, row.published_at, tuple(row.previous), refused, build,
    )  # fmt: skip


def request_rebuild(
    session: Session, scope: Scope, *, tier: str, mode: str = "full", model: str | None = None
) -> Build:
    """Open a build of a tier (`all` means every configured one: hot).

    Args:
        session: a write session.
        scope: whoever asks.
        tier: a tier or `all`.
        mode: `full` or `compact`; both write the live passages anew and leave the tombstones behind.
        model: must be the configured encoder when given; vectors it lacks are computed by the build.

    Raises:
        NotFound: no such tier.
        InvalidInput: unknown mode, or another model than the configured encoder.
        Conflict: the tier is not configured, or a build of it is open.
    """
    if mode not in MODES:
        raise InvalidInput(f"mode takes {' and '.join(MODES)}, not {mode}.")
    encoder = get_settings().packs.encoder
    if model not in (None, "", encoder):
        raise InvalidInput(
            f"The workers encode with {encoder}; set GEO_PACKS__ENCODER={model}, restart them, then rebuild."
        )
    return _open_build(session, scope, _tier(tier, all_allowed=True), mode)


def request_rollback(session: Session, scope: Scope, *, tier: str) -> Build:
    """Open a build that serves the previous generation again, with everything that came since.

    Raises:
        NotFound: no such tier.
        Conflict: nothing is kept to go back to, or a build is open.
    """
    name = _tier(tier)
    if not repository.tier_state(session, name.value).previous:
        raise Conflict(f"The {name.value} tier keeps no earlier generation; it was never rebuilt.", tier=name)
    return _open_build(session, scope, name, ROLLBACK)


def get_build(session: Session, scope: Scope, *, build_id: str) -> Build:
    """One build. Raises `NotFound`."""
    row = session.get(BuildRow, build_id) if scope.tenant_id else None
    if row is None:
        raise NotFound("No such build.", build_id=build_id)
    return _build(session, row)


def list_builds(session: Session, scope: Scope, *, limit: int = 50) -> list[Build]:
    """The newest builds, newest first."""
    if not scope.tenant_id:
        return []
    rows = session.scalars(
        select(BuildRow).order_by(BuildRow.created_at.desc(), BuildRow.id.desc()).limit(limit)
    )
    return [_build(session, row) for row in rows]


def cancel_build(session: Session, scope: Scope, *, build_id: str) -> Build:
    """Ask a build to stop; one that has not begun ends at once. What is served does not change.

    Raises:
        NotFound: no such build.
        Conflict: it has ended.
    """
    build = get_build(session, scope, build_id=build_id)
    row = session.get_one(BuildRow, build.id)
    if row.open_key is None:
        raise Conflict(f"The build has ended as {row.status}.", build_id=build_id)
    job = _job_of(session, row.id)
    if job is None or job.status == JobStatus.WAITING.value:
        row.status, row.open_key, row.finished_at = BuildStatus.CANCELLED.value, None, utcnow()
        if job is not None:
            job.status, job.finished_at = JobStatus.CANCELLED.value, utcnow()
    else:
        job.cancel_requested = True
    session.flush()
    return _build(session, row)


def report_damage(db: Database, tier: str, reason: str) -> None:
    """Record that a reader refuses files, and open a rebuild unless one is open. Never raises."""
    try:
        with db.write() as session:
            repository.set_refused(session, Tier.HOT.value, f"{tier}: {reason}")
        with db.write() as session:
            request_rebuild(session, Scope("system", None, "reader", Role.OPERATOR), tier=Tier.HOT.value)
    except Conflict:
        log.info("rebuild_already_open", extra={"tier": tier})
    except GeoError:
        log.exception("damage_not_reported", extra={"tier": tier, "reason": reason})


def index_expected(db: Database) -> bool:
    """Whether the database says that a generation was published."""
    with db.read() as session:
        return repository.tier_state(session, Tier.HOT.value).generation > 0


def _tier(name: str, *, all_allowed: bool = False) -> Tier:
    if name == "all" and all_allowed:
        return Tier.HOT
    if name not in list(Tier):
        raise NotFound("No such tier; the tiers are hot, warm and cold.", tier=name)
    if Tier(name) not in _CONFIGURED:
        raise Conflict(f"The {name} tier is not configured; every passage is in the hot tier.", tier=name)
    return Tier(name)


def _open_build(session: Session, scope: Scope, tier: Tier, mode: str) -> Build:
    row = BuildRow(
        id=new_id("bld"),
        tier=tier.value,
        mode=mode,
        open_key=tier.value,
        from_generation=repository.tier_state(session, tier.value).generation,
        created_by=scope.principal,
    )
    try:
        with session.begin_nested():
            session.add(row)
            session.flush()
    except IntegrityError as error:
        is_open = session.scalar(select(BuildRow.id).where(BuildRow.open_key == tier.value))
        raise Conflict(f"A build of the {tier.value} tier is open.", build_id=is_open) from error
    add_job(session, Task.REBUILD, tenant_id=scope.tenant_id, subject_kind="build", subject_id=row.id)
    return _build(session, row)


def start_build(session: Session, build_id: str) -> Build | None:
    """Mark a build running; None when it ended meanwhile."""
    done = session.execute(
        update(BuildRow)
        .where(BuildRow.id == build_id, BuildRow.open_key.is_not(None))
        .values(status=BuildStatus.RUNNING.value)
    )
    return _build(session, session.get_one(BuildRow, build_id)) if affected(done) == 1 else None


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
    row.to_generation, row.stats = to_generation, dict(stats)


def _job_of(session: Session, build_id: str) -> JobRow | None:
    return session.scalar(select(JobRow).where(JobRow.subject_kind == "build", JobRow.subject_id == build_id))


def _build(session: Session, row: BuildRow) -> Build:
    job = _job_of(session, row.id)
    return Build(
        row.id, row.tier, row.mode, row.status, row.from_generation, row.to_generation,
        job.progress_done if job else 0, job.progress_total if job else 0, dict(row.stats),
        row.error_code, row.error_detail, row.created_by, row.created_at, row.finished_at,
    )  # fmt: skip
