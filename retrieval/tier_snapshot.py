"""The readers' side of a tier: what one generation holds, loaded and searched (`TierSnapshot`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.errors import ConfigError
from core.types import Scope, Tier
from retrieval.exact import TopK, check_vectors
from retrieval.faiss_index import WIDENED_ROWS, Hits, scan, widened
from retrieval.files import DamagedIndex
from retrieval.manifest import TierFolder
from retrieval.merge import merged, pairs, settled
from retrieval.rescore import exact_scores
from retrieval.segments import Segment, open_segment
from retrieval.selection import Mask, Selection, select
from retrieval.structures import Structure, load_structure
from retrieval.tier_writer import dead_masks
from retrieval.vector_pages import Rows
from retrieval.vector_tier import (
    Batch,
    Candidates,
    Found,
    Ids,
    SegmentRef,
    TierRef,
    TierStats,
    Vector,
    VectorRow,
)

_GATHERED_ROWS = 4096  # 3 MB of originals; more are read past the page cache, which they would empty
_REMEMBERED = 16  # selections of one snapshot: a mask is a byte a row
_TOP_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class LoadedSegment:
    """A segment with its search structure."""

    segment: Segment
    structure: Structure

    @property
    def name(self) -> str:
        """Of the segment."""
        return self.segment.ref.name

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, Rows]]:
        """`(first row, originals)` from start to stop, from memory where they are."""
        rows = self.structure.rows
        if rows is not None:
            for first in range(start, stop, _TOP_BLOCK):
                yield first, rows[first : min(first + _TOP_BLOCK, stop)]
        else:
            yield from self.segment.pages.blocks(start, stop)


def load_tier(
    folder: TierFolder, tier: Tier, ref: TierRef, *, dimension: int, previous: SegmentedSnapshot | None = None
) -> SegmentedSnapshot:
    """Load one tier of a generation for searching.

    Args:
        folder: of the tier.
        tier: which one.
        ref: as the manifest holds it.
        dimension: numbers per vector, as the manifest says.
        previous: an earlier snapshot of the same folder; segments that it has are shared, not read again.

    Raises:
        DamagedIndex: a file is missing or does not match its checksum, or is of another width.
    """
    known = {s.name: s for s in previous.segments} if previous is not None else {}
    loaded = tuple(known.get(one.name) or _load(folder, tier, one, dimension) for one in ref.segments)
    dead = dead_masks(folder.dead, ref.dead, [s.segment for s in loaded])
    return SegmentedSnapshot(tier, dimension, ref, loaded, dead)


def _load(folder: TierFolder, tier: Tier, ref: SegmentRef, dimension: int) -> LoadedSegment:
    segment = open_segment(folder.segments, ref)
    if segment.dimension != dimension:
        raise DamagedIndex(
            f"Segment {ref.name} of the {tier} tier is {segment.dimension} wide, "
            f"its manifest says {dimension}."
        )
    return LoadedSegment(segment, load_structure(segment))


@dataclass(frozen=True, slots=True)
class SegmentedSnapshot:
    """Made by `load_tier`. The default serves nothing; with `refused` it also says why."""

    tier: Tier
    dimension: int = 0
    ref: TierRef = field(default_factory=TierRef)
    segments: tuple[LoadedSegment, ...] = ()
    dead: Mapping[str, Mask] = field(default_factory=dict[str, Mask])
    refused: str = ""
    _selections: dict[tuple[str, str, tuple[str, ...] | None], Selection] = field(
        default_factory=dict[tuple[str, str, tuple[str, ...] | None], Selection]
    )

    @property
    def live_count(self) -> int:
        """Vectors that a search can return."""
        return self.ref.live_count

    @property
    def fragmentation(self) -> float:
        """Share of the stored rows that are dead."""
        return 1 - self.ref.live_count / self.ref.row_count if self.ref.row_count else 0.0

    @property
    def padding_share(self) -> float:
        """Share of the pages' bytes that hold no row."""
        pages = [s.segment.pages for s in self.segments]
        stored = sum(p.page_bytes * p.page_count for p in pages)
        return sum(p.padding_bytes for p in pages) / stored if stored else 0.0

    def search(
        self,
        vector: Vector,
        k: int,
        scope: Scope,
        *,
        passage_ids: Sequence[int] | Ids | None = None,
        effort: float | None = None,
    ) -> Found:
        """See `TierSnapshot.search`."""
        return pairs(self.search_many(vector[None], k, scope, passage_ids=passage_ids, effort=effort))[0]

    def search_many(
        self,
        vectors: Vector,
        k: int,
        scope: Scope,
        *,
        passage_ids: Sequence[int] | Ids | None = None,
        effort: float | None = None,
    ) -> Batch:
        """See `TierSnapshot.search_many`."""
        return settled(
            self.candidates(vectors, k, scope, passage_ids=passage_ids, effort=effort), len(vectors), k
        )

    def candidates(
        self,
        vectors: Vector,
        k: int,
        scope: Scope,
        *,
        passage_ids: Sequence[int] | Ids | None = None,
        effort: float | None = None,
    ) -> list[Candidates]:
        """See `TierSnapshot.candidates`."""
        effort = self.ref.effort if effort is None else effort

        def one(loaded: LoadedSegment, queries: Vector, selection: Selection) -> tuple[Hits | None, bool]:
            return loaded.structure.search(queries, k, selection, effort)

        return self._each(one, vectors, k, scope, passage_ids)

    def search_exact(
        self, vector: Vector, k: int, scope: Scope, *, passage_ids: Sequence[int] | Ids | None = None
    ) -> Found:
        """See `TierSnapshot.search_exact`."""

        def one(loaded: LoadedSegment, queries: Vector, selection: Selection) -> tuple[Hits | None, bool]:
            return loaded.structure.search_exact(queries, k, selection), True

        return pairs(settled(self._each(one, vector[None], k, scope, passage_ids), 1, k))[0]

    def search_exact_many(self, vectors: Vector, k: int, scope: Scope) -> list[Found]:
        """See `TierSnapshot.search_exact_many`."""
        self._check_served()
        if not self.segments or k < 1:
            return [[] for _ in vectors]
        queries = self._queries(vectors)
        parts: list[Candidates] = []
        for loaded in self.segments:
            selection = self._selected(loaded, scope, None)
            if not selection.count:
                continue
            top = TopK(queries, min(k, selection.count))
            start, stop = selection.bounds()
            mask = None if selection.rows is not None else selection.as_mask()
            for first, rows in loaded.blocks(start, stop):
                for at in range(0, len(rows), WIDENED_ROWS):
                    some = np.ascontiguousarray(rows[at : at + WIDENED_ROWS])
                    row = first + at
                    allowed = None if mask is None else mask[row : row + len(some)]
                    top.offer(row, widened(some), allowed)
            parts.append(_candidates(loaded.segment, queries, top.result(), exact=True))
        return pairs(settled(parts, len(queries), k))

    def sample(self, count: int, seed: int) -> list[VectorRow]:
        """See `TierSnapshot.sample`."""
        live = [
            (
                s,
                np.arange(s.segment.ref.count)
                if (dead := self.dead.get(s.name)) is None
                else np.flatnonzero(~dead),
            )
            for s in self.segments
        ]
        total = sum(len(rows) for _, rows in live)
        chosen = np.random.default_rng(seed).permutation(total)[:count]
        made: list[VectorRow] = []
        start = 0
        for loaded, rows in live:
            inside = np.sort(chosen[(chosen >= start) & (chosen < start + len(rows))]) - start
            start += len(rows)
            made.extend(_rows_of(loaded.segment, rows[inside]))
        return made

    def stats(self) -> TierStats:
        """See `TierSnapshot.stats`."""
        pages = [s.segment.pages for s in self.segments]
        structures = [s.structure for s in self.segments]
        ids = sum(s.segment.ids.nbytes for s in self.segments)
        return TierStats(
            self.tier,
            self.ref.live_count,
            self.ref.row_count - self.ref.live_count,
            Counter(one.kind for one in self.ref.segments),
            ram_bytes=ids + sum(s.ram_bytes for s in structures) + sum(m.nbytes for m in self.dead.values()),
            mapped_bytes=sum(s.mapped_bytes for s in structures),
            disk_bytes=sum(s.segment.disk_bytes() for s in self.segments),
            page_bytes=max((p.page_bytes for p in pages), default=0),
            padding_share=self.padding_share,
            page_hits=sum(p.hits for p in pages),
            page_misses=sum(p.misses for p in pages),
            cached_bytes=sum(p.held_bytes() for p in pages),
        )

    def _each(
        self,
        one: Callable[[LoadedSegment, Vector, Selection], tuple[Hits | None, bool]],
        vectors: Vector,
        k: int,
        scope: Scope,
        passage_ids: Sequence[int] | Ids | None,
    ) -> list[Candidates]:
        """Search every segment with `one`; the originals are scanned where it finds nothing to do."""
        self._check_served()
        queries = self._queries(vectors)
        if not self.segments or k < 1:
            return []
        wanted = None if passage_ids is None else np.unique(np.asarray(passage_ids, np.int64))
        parts: list[Candidates] = []
        for loaded in self.segments:
            selection = self._selected(loaded, scope, wanted)
            if not selection.count:
                continue
            hits, exact = one(loaded, queries, selection)
            if hits is None:
                hits = scan_originals(loaded.segment, queries, k, selection)
            parts.append(_candidates(loaded.segment, queries, hits, exact))
        return parts

    def _selected(self, loaded: LoadedSegment, scope: Scope, wanted: Ids | None) -> Selection:
        segment, dead = loaded.segment, self.dead.get(loaded.name)
        if wanted is not None:
            rows = segment.find(wanted)
            return select(segment.spans, scope, total=segment.ref.count, dead=dead, wanted=rows)
        key = (loaded.name, scope.tenant_id, scope.collection_ids)
        if (selection := self._selections.get(key)) is None:
            selection = select(segment.spans, scope, total=segment.ref.count, dead=dead)
            if len(self._selections) >= _REMEMBERED * len(self.segments):
                self._selections.clear()
            self._selections[key] = selection
        return selection

    def _check_served(self) -> None:
        if self.refused:
            raise DamagedIndex(f"The {self.tier} tier is refused ({self.refused}) until it is rebuilt.")

    def _queries(self, vectors: Vector) -> Vector:
        queries = np.ascontiguousarray(vectors, np.float32)
        lengths = np.linalg.norm(queries, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and lengths.all()):
            check_vectors(vectors)  # what is left has squares that float32 cannot hold
            queries = queries / np.abs(queries).max(axis=1, keepdims=True)
            lengths = np.linalg.norm(queries, axis=1, keepdims=True)
        if self.segments and vectors.shape[1] != self.dimension:
            raise ConfigError(
                f"the {self.tier} tier holds {self.dimension}-wide vectors, "
                f"the question's has {vectors.shape[1]}"
            )
        return queries / lengths


def scan_originals(segment: Segment, queries: Vector, k: int, selection: Selection) -> Hits:
    """The k best selected rows of a segment per query, exactly, from its pages. Raises `DamagedIndex`."""
    if selection.count <= _GATHERED_ROWS:
        chosen = selection.row_numbers()
        scores, at = scan(segment.pages.rows_at(chosen), queries, k)
        return scores, np.where(at < 0, -1, chosen[at])
    start, stop = selection.bounds()
    mask = None if selection.rows is not None else selection.as_mask()
    parts: list[Hits] = []
    for first, block in segment.pages.blocks(start, stop):
        rows = np.arange(first, first + len(block), dtype=np.int64)
        if mask is not None:
            inside = mask[first : first + len(block)]
            rows, block = rows[inside], block[inside]
        if len(rows):
            scores, at = scan(np.ascontiguousarray(block), queries, k)
            parts.append((scores, rows[at]))
    return merged(parts, len(queries), k)


def _rows_of(segment: Segment, rows: Ids) -> Iterator[VectorRow]:
    vectors = segment.pages.rows_at(rows)
    for row, passage_id, vector in zip(rows.tolist(), segment.ids.at(rows).tolist(), vectors, strict=True):
        span = segment.owner(row)
        yield VectorRow(span.tenant_id, span.collection_id, passage_id, vector.tobytes())


def _candidates(segment: Segment, queries: Vector, hits: Hits, exact: bool) -> Candidates:
    """Passage ids instead of rows, cosines instead of what rounding made of them."""
    scores, rows = hits
    inside = rows >= 0
    ids, scores = segment.ids.at(rows), np.minimum(np.maximum(scores, -1.0), 1.0)
    if not inside.all():
        ids, scores = np.where(inside, ids, -1), np.where(inside, scores, np.float32(-np.inf))
    if exact:
        return Candidates(scores, ids)

    def look(query: Ids, column: Ids) -> Vector:
        found = exact_scores(queries, query, rows[query, column], segment.pages.rows_at)
        return np.clip(found, -1.0, 1.0, out=found)

    return Candidates(scores, ids, look, rows.shape[1])
