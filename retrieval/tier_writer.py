"""The writer's side of a tier: an append-only list of immutable segments, and tombstones (`VectorTier`).

    <tier>/segments/<name>/    see vector_pages.py
    <tier>/dead/<name>.npz     tombstones of one generation, by segment and row

A tombstone names a row of a segment, not a passage: one that is added again is a new row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from core.types import Tier
from retrieval.calibrate import SCANNED_ROWS
from retrieval.files import DamagedIndex
from retrieval.manifest import TierFolder
from retrieval.segment_draft import Draft
from retrieval.segments import (
    Segment,
    dead_rows_file,
    merge_rows,
    open_segment,
    read_dead_rows,
    write_segments,
)
from retrieval.selection import Mask
from retrieval.structures import StructurePlan
from retrieval.vector_tier import DeadRef, Ids, SegmentRef, TierRef, TierStats, VectorRow, VectorsRejected

# Few large segments are searched faster than many, as each is. Lists of so many rows are built in twenty
# seconds (`side_merge.py`, a rebuild); a build of warm or cold has one segment in memory (400 MB of codes).
_FULL_ROWS = {Tier.HOT: 1 << 18, Tier.WARM: 1 << 20, Tier.COLD: 1 << 22}
_MERGED_ROWS = 65_536  # of a merge under the writer's lease: lists of so many take three seconds
_BATCH = 4096  # rows that are checked at once
_UNIT = 2e-3  # a unit vector rounded to fp16 is nearer to length 1 than this


@dataclass(frozen=True, slots=True)
class Layout:
    """How segments are cut and when they are merged.

    Attributes:
        merge_count: small segments that a tier may have.
        recall_floor: recall@10 that approximate structures are calibrated to.
        full_rows: rows of a segment at most; 0 = as the tier does well with.
        lists_from, scanned_rows: see `StructurePlan`.
    """

    merge_count: int = 8
    recall_floor: float = 0.95
    full_rows: int = 0
    lists_from: int | None = None
    scanned_rows: int = SCANNED_ROWS

    def plan(self, tier: Tier) -> StructurePlan:
        """What decides the kind of a tier's segments."""
        return StructurePlan(tier, self.recall_floor, self.lists_from, self.scanned_rows)

    def rows(self, tier: Tier) -> int:
        """Rows of a tier's segment at most."""
        return self.full_rows or _FULL_ROWS[tier]


def open_tier(
    folder: TierFolder,
    tier: Tier,
    ref: TierRef,
    *,
    dimension: int,
    layout: Layout | None = None,
    draft: Draft | None = None,
) -> SegmentedTier:
    """Open one tier of a generation for changing.

    Args:
        folder: of the tier.
        tier: which one; decides what segments look like.
        ref: what is served now; `TierRef()` for a new tier.
        dimension: numbers per vector.
        layout: see there; None when nothing will be added.
        draft: of the segments that are added, for work that takes minutes; see `write_segments`.

    Raises:
        DamagedIndex: a header, an id list or the tombstones are missing or do not match.
    """
    return SegmentedTier(folder, tier, ref, dimension, layout or Layout(), draft)


class SegmentedTier:
    """Made by `open_tier`. Holds ids and tombstones in memory, no vectors."""

    def __init__(
        self,
        folder: TierFolder,
        tier: Tier,
        ref: TierRef,
        dimension: int,
        layout: Layout,
        draft: Draft | None = None,
    ) -> None:
        self._draft = draft
        self._segments_folder, self._dead_folder = folder.segments, folder.dead
        self._tier, self._ref, self._dimension, self._layout = tier, ref, dimension, layout
        self._segments = [_opened(self._segments_folder, one) for one in ref.segments]
        self._dead = dead_masks(self._dead_folder, ref.dead, self._segments)
        self._dead_changed = False

    @property
    def tier(self) -> Tier:
        """Which one."""
        return self._tier

    def add(self, rows: Iterable[VectorRow]) -> int:
        """See `VectorTier.add`."""
        replaced: list[tuple[str, Ids]] = []
        refs = write_segments(
            self._segments_folder,
            self._changed(rows, replaced),
            dimension=self._dimension,
            max_rows=self._layout.rows(self._tier),
            plan=self._layout.plan(self._tier),
            draft=self._draft,
        )
        for name, dead in replaced:
            self._bury(name, dead)
        self._segments.extend(_opened(self._segments_folder, ref) for ref in refs)
        return sum(ref.count for ref in refs)

    def delete(self, ids: Sequence[int]) -> int:
        """See `VectorTier.delete`."""
        died = 0
        for segment, rows in self._live_rows(np.unique(np.asarray(ids, np.int64))):
            self._bury(segment.ref.name, rows)
            died += len(rows)
        return died

    def present(self, ids: Sequence[int]) -> set[int]:
        """See `VectorTier.present`."""
        wanted = np.unique(np.asarray(ids, np.int64))
        return {int(i) for segment, rows in self._live_rows(wanted) for i in segment.ids.at(rows).tolist()}

    def live_ids(self) -> Ids:
        """See `VectorTier.live_ids`."""
        live = [np.empty(0, np.int64)]
        for segment in self._segments:
            dead = self._dead.get(segment.ref.name)
            live.append(segment.ids.all() if dead is None else segment.ids.at(np.flatnonzero(~dead)))
        return np.sort(np.concatenate(live))

    def commit(self) -> TierRef:
        """See `VectorTier.commit`; merges small segments when there are too many."""
        self._merge()
        self._ref = TierRef(tuple(s.ref for s in self._segments), self._store_dead(), self._ref.effort)
        self._dead_changed = False
        return self._ref

    def exchange(self, names: set[str], ref: SegmentRef) -> bool:
        """Put a segment in the place of those whose live rows it was made of; what died since is dead in it.

        Its files are in the tier's folder. Effective with the next `commit`.

        Returns:
            False, and nothing is changed, when one of those is not there any more.
        """
        replaced = [s for s in self._segments if s.ref.name in names]
        if len(replaced) < len(names):
            return False
        made = _opened(self._segments_folder, ref)
        live = [s.ids.at(np.flatnonzero(~self._mask(s))) for s in replaced]
        gone = np.flatnonzero(~np.isin(made.ids.all(), np.concatenate(live)))
        self._take_out(names)
        self._segments.append(made)
        self._bury(made.ref.name, gone)
        return True

    def _mask(self, segment: Segment) -> Mask:
        dead = self._dead.get(segment.ref.name)
        return np.zeros(len(segment.ids), np.bool_) if dead is None else dead

    def stats(self) -> TierStats:
        """See `VectorTier.stats`."""
        rows = sum(len(s.ids) for s in self._segments)
        dead = sum(int(np.count_nonzero(mask)) for mask in self._dead.values())
        return TierStats(self._tier, rows - dead, dead, Counter(s.ref.kind for s in self._segments))

    def _changed(self, rows: Iterable[VectorRow], replaced: list[tuple[str, Ids]]) -> Iterator[VectorRow]:
        """Rows that are not there as they are, checked; where older ones stand goes to `replaced`."""
        source = iter(rows)
        while batch := list(islice(source, _BATCH)):
            batch = _unit_rows(batch, self._dimension)
            same: set[int] = set()
            if self._segments:
                given = {row.passage_id: row for row in batch}
                for segment, old in self._live_rows(np.unique(np.fromiter(given, np.int64, len(given)))):
                    kept = _unchanged(segment, old, given)
                    same.update(segment.ids.at(old[kept]).tolist())
                    replaced.append((segment.ref.name, old[~kept]))
            yield from (row for row in batch if row.passage_id not in same)

    def _live_rows(self, wanted: Ids) -> Iterator[tuple[Segment, Ids]]:
        for segment in self._segments:
            rows = segment.find(wanted)
            if (dead := self._dead.get(segment.ref.name)) is not None:
                rows = rows[~dead[rows]]
            if len(rows):
                yield segment, rows

    def _bury(self, name: str, rows: Ids) -> None:
        if not len(rows):
            return
        count = next(len(s.ids) for s in self._segments if s.ref.name == name)
        mask = self._dead.setdefault(name, np.zeros(count, np.bool_))
        mask[rows] = True
        self._dead_changed = True

    def _merge(self) -> None:
        """Merge small segments when there are too many; dead rows are left behind."""
        full = min(self._layout.rows(self._tier), _MERGED_ROWS)
        small = sorted((s for s in self._segments if len(s.ids) < full), key=lambda s: len(s.ids))
        if len(small) <= self._layout.merge_count:
            return
        chosen, rows = small[:2], sum(len(s.ids) for s in small[:2])
        for segment in small[2:]:
            if len(segment.ids) > rows:  # sizes stay geometric, so a row is copied few times
                break
            chosen.append(segment)
            rows += len(segment.ids)
        merged = write_segments(
            self._segments_folder,
            merge_rows([(s, self._dead.get(s.ref.name)) for s in chosen]),
            dimension=self._dimension,
            max_rows=full,
            plan=self._layout.plan(self._tier),
        )
        self._take_out({s.ref.name for s in chosen})
        self._segments.extend(_opened(self._segments_folder, ref) for ref in merged)

    def _take_out(self, names: set[str]) -> None:
        self._segments = [s for s in self._segments if s.ref.name not in names]
        for name in names:
            self._dead_changed |= self._dead.pop(name, None) is not None

    def _store_dead(self) -> DeadRef | None:
        if not self._dead_changed:
            return self._ref.dead
        rows = {name: np.flatnonzero(mask).astype(np.int64) for name, mask in self._dead.items()}
        rows = {name: found for name, found in rows.items() if len(found)}
        if not rows:
            return None
        name, checksum = dead_rows_file(self._dead_folder, rows)
        return DeadRef(name, sum(len(found) for found in rows.values()), checksum)


def verify_tier(folder: TierFolder, ref: TierRef) -> int:
    """Read every file of a tier against its checksum; returns the number of live rows.

    Raises:
        DamagedIndex: something is missing, does not match, or counts disagree.
    """
    segments = [_opened(folder.segments, one) for one in ref.segments]
    dead_masks(folder.dead, ref.dead, segments)
    for segment in segments:
        segment.verify()
    return ref.live_count


def dead_masks(folder: Path, ref: DeadRef | None, segments: Iterable[Segment]) -> dict[str, Mask]:
    """By segment, True for dead rows; segments without any are left out.

    Raises:
        DamagedIndex: the file is missing, does not match, or names rows that a segment does not have.
    """
    if ref is None:
        return {}
    stored = read_dead_rows(folder / ref.name, ref.checksum)
    masks: dict[str, Mask] = {}
    for segment in segments:
        if (rows := stored.get(segment.ref.name)) is not None:
            if len(rows) and int(rows.max()) >= len(segment.ids):
                raise DamagedIndex("The tombstones name rows that a segment does not have.")
            masks[segment.ref.name] = np.zeros(len(segment.ids), np.bool_)
            masks[segment.ref.name][rows] = True
    return masks


def _unit_rows(batch: Sequence[VectorRow], dimension: int) -> list[VectorRow]:
    """The batch with vectors of length 1."""
    for row in batch:
        if len(row.vector) != 2 * dimension:
            raise ValueError(
                f"passage {row.passage_id} has a vector of {len(row.vector) // 2} numbers, "
                f"the tier has {dimension}"
            )
    vectors = np.frombuffer(b"".join(row.vector for row in batch), np.float16)
    vectors = vectors.reshape(len(batch), dimension).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1)
    bad = ~np.isfinite(lengths) | (lengths == 0)
    if bad.any():
        ids = [batch[at].passage_id for at in np.flatnonzero(bad)]
        raise VectorsRejected("These passages have vectors without a direction.", passage_ids=ids[:20])
    made = list(batch)
    for at in np.flatnonzero(np.abs(lengths - 1) > _UNIT).tolist():
        unit = (vectors[at] / lengths[at]).astype(np.float16)
        made[at] = replace(made[at], vector=unit.tobytes())
    return made


def _unchanged(segment: Segment, rows: Ids, given: Mapping[int, VectorRow]) -> Mask:
    """Which of the rows are as they are given: same owner, same vector."""
    vectors = segment.pages.rows_at(rows)
    kept = np.zeros(len(rows), np.bool_)
    for at, (row, passage_id) in enumerate(zip(rows.tolist(), segment.ids.at(rows).tolist(), strict=True)):
        new = given[passage_id]
        span = segment.owner(row)
        same_owner = (span.tenant_id, span.collection_id) == (new.tenant_id, new.collection_id)
        kept[at] = same_owner and vectors[at].tobytes() == new.vector
    return kept


_headers: dict[tuple[str, str], Segment] = {}  # ids are 8 bytes a row; reading them anew costs every publish


def _opened(folder: Path, ref: SegmentRef) -> Segment:
    key = (str(folder), ref.name)
    segment = _headers.get(key)
    if segment is None or segment.ref != ref or not segment.folder.is_dir():
        segment = _headers[key] = open_segment(folder, ref)
    return segment


def forget_segments(folder: TierFolder, kept: set[str]) -> None:
    """Drop what is remembered of a tier's segments that are not in `kept`."""
    place = str(folder.segments)
    for key in [k for k in _headers if k[0] == place and k[1] not in kept]:
        del _headers[key]
