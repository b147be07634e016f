"""What each tier serves, for people: rows of the database and the published manifest, nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.models import BuildRow, DocumentRow, IndexLogRow, RecallSampleRow, TierRow
from core.settings import get_settings
from core.types import Tier
from retrieval.files import DamagedIndex
from retrieval.manifest import LEXICAL, PARTS, IndexFolder, Manifest

ALL = "all"


@dataclass(frozen=True, slots=True)
class TierStatus:
    """What a tier, or the lexical index, serves.

    Attributes:
        status: `ready`, `empty` or `refused` (damaged, being rebuilt).
        vectors: live vectors by the published manifest; 0 for the lexical index.
        dead: rows that a compacting rebuild would leave out.
        segments: how many; `kinds` says of which search structure.
        bytes: on disk.
        ram_bytes: held by a process that serves it, as last seen by the recall monitor; None before that.
        generation: published generation; 0 before the first.
        pending: log entries that are not searchable yet.
        previous: generations that a rollback can go to, newest first.
        recall: mean recall@10 of the last sampled questions against exact search, or None without any.
        effort: multiplies what a search of the tier looks at.
        moving: documents on their way into this tier.
        refused: why readers refuse it, or None.
        open_build: id of the build that is open, or None.
    """

    tier: str
    status: str
    vectors: int = 0
    dead: int = 0
    segments: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict[str, int])
    bytes: int = 0
    ram_bytes: int | None = None
    generation: int = 0
    applied_seq: int = 0
    pending: int = 0
    model: str = ""
    dimension: int = 0
    published_at: datetime | None = None
    previous: tuple[int, ...] = ()
    recall: float | None = None
    effort: float = 1.0
    moving: int = 0
    refused: str | None = None
    open_build: str | None = None


def tier_status(session: Session) -> list[TierStatus]:
    """All tiers, hot first, then the lexical index."""
    index = session.get(TierRow, Tier.HOT.value)
    folder = IndexFolder(get_settings().index_dir)
    manifest, damage = _served(folder, index)
    applied = index.applied_seq if index else 0
    pending = int(session.scalar(select(func.count()).where(IndexLogRow.seq > applied)) or 0)
    return [_status(session, part, index, folder, manifest, damage, pending) for part in PARTS]


def _served(folder: IndexFolder, index: TierRow | None) -> tuple[Manifest, str | None]:
    if index is None or not index.generation:
        return Manifest(), None
    try:
        return folder.read_manifest(index.generation), None
    except (DamagedIndex, OSError) as error:
        return Manifest(), str(error)


def _status(
    session: Session,
    part: str,
    index: TierRow | None,
    folder: IndexFolder,
    manifest: Manifest,
    damage: str | None,
    pending: int,
) -> TierStatus:
    row = session.get(TierRow, part)
    refused = (row.refused if row else None) or manifest.refused.get(part) or damage
    ref = manifest.tier(part)
    kinds: dict[str, int] = {}
    for segment in ref.segments:
        kinds[segment.kind] = kinds.get(segment.kind, 0) + 1
    if part == LEXICAL:
        size = _size(folder.lexical / manifest.lexical) if manifest.lexical else 0
    else:
        size = sum(_size(folder.tier(part).segments / s.name) for s in ref.segments)
    filled = bool(manifest.lexical) if part == LEXICAL else bool(ref.segments)
    return TierStatus(
        tier=part,
        status="refused" if refused else "ready" if filled else "empty",
        vectors=ref.live_count,
        dead=ref.dead.count if ref.dead else 0,
        segments=len(ref.segments),
        kinds=kinds,
        bytes=size,
        generation=index.generation if index else 0,
        applied_seq=index.applied_seq if index else 0,
        pending=pending,
        model=index.model if index else "",
        dimension=index.dimension if index else 0,
        published_at=index.published_at if index else None,
        previous=tuple(index.previous) if index else (),
        recall=_recall(session, part),
        effort=ref.effort,
        ram_bytes=row.ram_bytes if row else None,
        moving=_moving(session, part),
        refused=refused,
        open_build=open_build(session, part),
    )


def open_build(session: Session, part: str) -> str | None:
    """The open build that concerns this part."""
    return session.scalar(select(BuildRow.id).where(BuildRow.open_key.in_((part, ALL))))


def _recall(session: Session, part: str) -> float | None:
    newest = (
        select(RecallSampleRow.recall)
        .where(RecallSampleRow.tier == part)
        .order_by(RecallSampleRow.at.desc())
        .limit(get_settings().recall.window)
        .subquery()
    )
    mean = session.scalar(select(func.avg(newest.c.recall)))
    return None if mean is None else round(float(mean), 4)


def _moving(session: Session, part: str) -> int:
    return int(session.scalar(select(func.count()).where(DocumentRow.wanted_tier == part)) or 0)


def _size(place: Path) -> int:
    try:
        return sum(path.stat().st_size for path in place.iterdir())
    except FileNotFoundError:  # collected meanwhile: a newer generation is in service
        return 0
