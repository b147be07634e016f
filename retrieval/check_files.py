"""Checks of the index folder: checksums, widths, vectors against the database's, files that nothing names."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from core.db import Database
from core.models import BuildRow, PassageVectorRow
from retrieval.fault import Fault, some
from retrieval.files import DamagedIndex
from retrieval.lease import writer_lease
from retrieval.lexical_store import open_lexical
from retrieval.manifest import LEXICAL, IndexFolder, Manifest
from retrieval.segments import Segment, open_segment, read_dead_rows
from retrieval.vector_tier import SegmentRef, TierRef

_COMPARED = 2000  # vectors of a tier that are compared with the database's, spread over it
_SAME = 0.999  # cosine: both are fp16, one of them brought to unit length
_GRACE_S = 3600.0  # what a writer or a build makes has no name for so long


class PartFiles:
    """Reads every file of the index at most once, however many generations name it; one segment at a time."""

    def __init__(self, folder: IndexFolder) -> None:
        self.folder = folder
        self._read: dict[tuple[str, object], str] = {}

    def damage(self, manifest: Manifest, part: str) -> str:
        """Read every file of a part; why they cannot be trusted, or the empty string."""
        if part == LEXICAL:
            name = manifest.lexical
            return self._once(part, name, lambda: self._words(name)) if name else ""
        ref = manifest.tier(part)
        whys = [self._once(part, one, lambda one=one: self._segment(part, one)) for one in ref.segments]
        whys.append(self._once(part, (ref.segments, ref.dead), lambda: self._dead(part, ref)))
        return next(filter(None, whys), "")

    def _once(self, part: str, ref: object, read: Callable[[], None]) -> str:
        if (part, ref) not in self._read:
            try:
                read()
            except (DamagedIndex, OSError, ValueError) as error:
                self._read[part, ref] = str(error)
            else:
                self._read[part, ref] = ""
        return self._read[part, ref]

    def _words(self, name: str) -> None:
        open_lexical(self.folder.lexical, name, thorough=True)

    def _segment(self, tier: str, ref: SegmentRef) -> None:
        open_segment(self.folder.tier(tier).segments, ref).verify()

    def _dead(self, tier: str, ref: TierRef) -> None:
        """The tombstones; what a segment's reference says of its rows is checked with the segment."""
        if ref.dead is None:
            return
        stored = read_dead_rows(self.folder.tier(tier).dead / ref.dead.name, ref.dead.checksum)
        for one in ref.segments:
            rows = stored.get(one.name)
            if rows is not None and len(rows) and int(rows.max()) >= one.count:
                raise DamagedIndex("The tombstones name rows that a segment does not have.")


def wrong_width(tier: str, segments: Sequence[Segment], dimension: int) -> list[Fault]:
    """Segments whose vectors are of another width than the generation's."""
    wrong = [s for s in segments if s.dimension != dimension]
    if not wrong:
        return []
    widths = some(sorted({s.dimension for s in wrong}))
    told = f"vectors of the {tier} tier that are {widths} wide, not {dimension}"
    return [Fault("vectors_wrong_width", sum(len(s.ids) for s in wrong), told, f"geo tiers rebuild {tier}")]


def differing_vectors(
    db: Database,
    tier: str,
    segments: Sequence[Segment],
    dead: Mapping[str, npt.NDArray[np.bool_]],
    model: str,
) -> list[Fault]:
    """Vectors in the files that are not the database's, as when ids and pages do not belong together."""
    total = sum(len(s.ids) for s in segments)
    step = max(1, total // _COMPARED)
    differing: list[int] = []
    for segment in segments:
        rows = np.arange(0, len(segment.ids), step)
        if (mask := dead.get(segment.ref.name)) is not None:
            rows = rows[~mask[rows]]
        if len(rows):
            differing += _differing(db, segment, rows, model)
    if not differing:
        return []
    told = f"passages whose vector in the {tier} tier is not the database's: {some(differing)}"
    return [Fault("vectors_differ", len(differing), told, f"geo tiers rebuild {tier}")]


def _differing(db: Database, segment: Segment, rows: npt.NDArray[np.int64], model: str) -> list[int]:
    stored = segment.pages.rows_at(rows).astype(np.float32)
    ids = segment.ids.at(rows).tolist()
    known: dict[int, bytes] = {}
    v = PassageVectorRow
    with db.read() as session:
        for start in range(0, len(ids), 500):
            batch = select(v.passage_id, v.vector).where(
                v.model == model, v.passage_id.in_(ids[start : start + 500])
            )
            known.update((passage_id, vector) for passage_id, vector in session.execute(batch))
    return [
        passage_id
        for passage_id, vector in zip(ids, stored, strict=True)
        if passage_id in known and not _same(vector, known[passage_id])
    ]


def _same(vector: npt.NDArray[np.float32], other: bytes) -> bool:
    wanted = np.frombuffer(other, np.float16).astype(np.float32)
    if wanted.shape != vector.shape:
        return False
    length = float(np.linalg.norm(vector) * np.linalg.norm(wanted))
    return length > 0 and float(vector @ wanted) / length >= _SAME


# -- files that nothing names ------------------------------------------------------------------


def stray_files(session: Session, folder: IndexFolder, now: float | None = None) -> list[Path]:
    """Files and folders that no stored generation and no open build names, old enough to be nobody's work.

    A generation whose manifest cannot be read may name any of them, so there are none then.
    """
    try:
        manifests = [folder.read_manifest(generation) for generation in folder.generations()]
    except DamagedIndex:
        return []
    open_builds = set(session.scalars(select(BuildRow.id).where(BuildRow.open_key.is_not(None))))
    before = (time.time() if now is None else now) - _GRACE_S
    return sorted(p for p in _unnamed(folder, manifests, open_builds) if p.lstat().st_mtime < before)


def _unnamed(folder: IndexFolder, manifests: Iterable[Manifest], open_builds: set[str]) -> Iterator[Path]:
    manifests = list(manifests)
    for name, place in folder.tiers.items():
        refs = [m.tier(name) for m in manifests]
        yield from _others(place.segments, {s.name for ref in refs for s in ref.segments})
        yield from _others(place.dead, {ref.dead.name for ref in refs if ref.dead})
    yield from _others(folder.lexical, {m.lexical for m in manifests})
    yield from _others(folder.building, open_builds)
    for aside in (folder.root, folder.manifests):
        if aside.is_dir():
            yield from aside.glob(".*.tmp")


def _others(place: Path, named: set[str]) -> Iterator[Path]:
    if place.is_dir():
        yield from (entry for entry in place.iterdir() if entry.name not in named)


def remove_strays(db: Database, folder: IndexFolder) -> int:
    """Remove what `stray_files` lists, while no writer can be making any; returns how many went.

    Raises:
        TransientError: a writer kept the lease for too long.
    """
    with db.read() as session:
        if not stray_files(session, folder):
            return 0
    with writer_lease(db):
        with db.read() as session:
            strays = stray_files(session, folder)
        for path in strays:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    return len(strays)
