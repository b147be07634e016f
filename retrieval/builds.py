"""The light doors to builds: open a rebuild or a rollback, look at one. Nothing heavy is imported.

A build concerns one part of the index (a tier, or the lexical index) or all of it, and one build per part is
open at a time; the work is the rebuild task. `build_control.py` pauses, resumes, cancels and ends.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from core.db import Database
from core.errors import ConfigError, Conflict, GeoError, InvalidInput, NotFound
from core.ids import new_id
from core.jobs import add_job
from core.models import BuildRow, JobRow, LeaseRow
from core.packs import PackKind, pack_kind, pack_path
from core.settings import get_settings
from core.types import JobStatus, Role, Scope, Tier
from core.worker import Task
from retrieval import tier_repository as repository
from retrieval.files import DamagedIndex
from retrieval.manifest import LEXICAL, PARTS, IndexFolder, Manifest
from retrieval.tier_status import ALL

log = logging.getLogger(__name__)

FULL, COMPACT, ROLLBACK = "full", "compact", "rollback"
MODES = (FULL, COMPACT)
_OPENING = "open_builds"  # the row that requests of builds queue at


@dataclass(frozen=True, slots=True)
class Build:
    """One rebuild or rollback.

    Attributes:
        tier: a tier, `lexical` or `all`.
        mode: `full` (from the database), `compact` (from the pages) or `rollback`.
        status: see `BuildStatus`; a build is open until it is published, failed, cancelled or rolled back.
        model: the encoder it changes to; empty: the served one.
        progress_done, progress_total: passages.
        eta_s: seconds until the swap at the present rate, or None while nobody can say.
    """

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
    model: str = ""
    eta_s: float | None = None


def request_rebuild(
    session: Session,
    scope: Scope,
    *,
    tier: str,
    mode: str = FULL,
    model: str | None = None,
    accept_moved: bool = False,
) -> Build:
    """Open a build.

    Args:
        session: a write session.
        scope: whoever asks.
        tier: a tier, `lexical`, or `all`.
        mode: `full` builds from the database; `compact` merges what is served and leaves the tombstones
            behind, without reading a vector from the database.
        model: another encoder for the whole index; passages get vectors of it while the old ones serve.
        accept_moved: publish although more answers move than `retrieval.moved_share` allows.

    Raises:
        NotFound: no such part.
        InvalidInput: unknown mode, a model for a single tier, or one whose pack is not installed.
        Conflict: a build of it is open.
    """
    part = _part(tier)
    if mode not in MODES:
        raise InvalidInput(f"mode takes {' and '.join(MODES)}, not {mode}.")
    if mode == COMPACT and part == LEXICAL:
        raise InvalidInput("The lexical index compacts itself; rebuild it in full.")
    served = repository.tier_state(session, Tier.HOT.value).model
    changed = model if model and model != (served or get_settings().packs.encoder) else ""
    if changed:
        _check_change(changed, part, mode)
    return _open_build(session, scope, part, mode, changed, {"accept_moved": accept_moved})


def _check_change(model: str, part: str, mode: str) -> None:
    if part != ALL or mode != FULL:
        raise InvalidInput("All tiers hold vectors of one encoder: change it with a full rebuild of all.")
    try:
        pack_path(model)
    except ConfigError as error:
        raise InvalidInput(error.detail) from error
    if (kind := pack_kind(model)) not in (None, PackKind.ENCODER):
        raise InvalidInput(f"{model} is a {kind}, not an encoder; the index needs one that embeds texts.")


def request_rollback(session: Session, scope: Scope, *, tier: str, generation: int | None = None) -> Build:
    """Open a build that serves an earlier generation again, with everything that came since.

    Args:
        session: a write session.
        scope: whoever asks.
        tier: a tier, `lexical`, or `all`.
        generation: one of those kept; None means the newest of them.

    Raises:
        NotFound: no such part.
        Conflict: it is not kept, it belongs to another encoder and only a tier was asked for, or a build is
            open.
    """
    part = _part(tier)
    state = repository.tier_state(session, Tier.HOT.value)
    if not state.previous:
        raise Conflict("No earlier generation is kept; nothing was ever rebuilt.", tier=part)
    wanted = generation or state.previous[0]
    if wanted not in state.previous:
        kept = ", ".join(map(str, state.previous))
        raise Conflict(f"Generation {wanted} is not kept; a rollback can go to {kept}.", tier=part)
    manifest = _kept(wanted)
    if part != ALL and manifest.model != state.model:
        raise Conflict(
            f"Generation {wanted} holds vectors of {manifest.model}; roll back all tiers together.", tier=part
        )
    model = manifest.model if manifest.model != state.model else ""
    return _open_build(session, scope, part, ROLLBACK, model, {"generation": wanted})


def _kept(generation: int) -> Manifest:
    try:
        return IndexFolder(get_settings().index_dir).read_manifest(generation)
    except DamagedIndex as error:
        raise Conflict(error.detail) from error


def get_build(session: Session, scope: Scope, *, build_id: str) -> Build:
    """One build. Raises `NotFound`."""
    row = session.get(BuildRow, build_id) if scope.tenant_id else None
    if row is None:
        raise NotFound("No such build.", build_id=build_id)
    return as_value(session, row)


def list_builds(session: Session, scope: Scope, *, limit: int = 50) -> list[Build]:
    """The newest builds, newest first."""
    if not scope.tenant_id:
        return []
    rows = session.scalars(
        select(BuildRow).order_by(BuildRow.created_at.desc(), BuildRow.id.desc()).limit(limit)
    )
    return [as_value(session, row) for row in rows]


def report_damage(db: Database, part: str, reason: str) -> None:
    """Record that files are refused, and open a rebuild of that part unless one is open. Never raises.

    Args:
        db: where it is recorded.
        part: a tier, `lexical`, or `all` when the manifest itself cannot be read.
        reason: for people.
    """
    try:
        with db.write() as session:
            for one in PARTS if part == ALL else (part,):
                repository.set_refused(session, one, reason)
        with db.write() as session:
            request_rebuild(session, Scope("system", None, "reader", Role.OPERATOR), tier=part)
    except Conflict:
        log.info("rebuild_already_open", extra={"tier": part})
    except GeoError:
        log.exception("damage_not_recorded", extra={"tier": part, "reason": reason})


def index_expected(db: Database) -> bool:
    """Whether the database says that a generation was published."""
    with db.read() as session:
        return repository.tier_state(session, Tier.HOT.value).generation > 0


def job_of(session: Session, build_id: str) -> JobRow | None:
    """The newest job of a build; each resume makes one."""
    return session.scalar(
        select(JobRow)
        .where(JobRow.subject_kind == "build", JobRow.subject_id == build_id)
        .order_by(JobRow.created_at.desc(), JobRow.id.desc())
        .limit(1)
    )


def as_value(session: Session, row: BuildRow) -> Build:
    """The row with the progress of its job."""
    job = job_of(session, row.id)
    running = job is not None and job.status == JobStatus.RUNNING.value
    return Build(
        row.id, row.tier, row.mode, row.status, row.from_generation, row.to_generation,
        job.progress_done if job else 0, job.progress_total if job else 0, dict(row.stats),
        row.error_code, row.error_detail, row.created_by, row.created_at, row.finished_at,
        row.model, row.stats.get("eta_s") if running else None,
    )  # fmt: skip


def _part(name: str) -> str:
    if name not in (*PARTS, ALL):
        raise NotFound(f"No such tier; there are {', '.join(PARTS)} and {ALL}.", tier=name)
    return name


def _open_build(
    session: Session, scope: Scope, part: str, mode: str, model: str, options: Mapping[str, Any]
) -> Build:
    _queue_up(session)
    others = BuildRow.open_key.is_not(None) if part == ALL else BuildRow.open_key.in_((part, ALL))
    if (is_open := session.scalar(select(BuildRow.id).where(others).limit(1))) is not None:
        raise Conflict(f"A build is open that concerns {part}.", build_id=is_open)
    row = BuildRow(
        id=new_id("bld"),
        tier=part,
        mode=mode,
        model=model,
        options=dict(options),
        open_key=part,
        from_generation=repository.tier_state(session, Tier.HOT.value).generation,
        created_by=scope.principal,
    )
    session.add(row)
    session.flush()
    add_job(session, Task.REBUILD, tenant_id=scope.tenant_id, subject_kind="build", subject_id=row.id)
    return as_value(session, row)


def _queue_up(session: Session) -> None:
    """One request at a time looks which builds are open and opens its own."""
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    session.execute(insert(LeaseRow).values(name=_OPENING, fence=0).on_conflict_do_nothing())
    session.scalars(select(LeaseRow).where(LeaseRow.name == _OPENING).with_for_update()).one()
