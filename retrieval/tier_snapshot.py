"""The readers' side of a tier: what one generation holds, loaded and searched (`TierSnapshot`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.errors import ConfigError, TransientError
from core.types import Scope, Tier
from retrieval.faiss_index import FlatSegment, load_flat, search_flat
from retrieval.files import DamagedIndex
from retrieval.manifest import TierFolder
from retrieval.tier_writer import Mask, dead_masks
from retrieval.vector_pages import open_segment
from retrieval.vector_tier import Found, Ids, TierRef, TierStats, Vector, VectorRow


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
        DamagedIndex: a file is missing or does not match its checksum.
    """
    known = {s.name: s for s in previous.segments} if previous is not None else {}
    opened = [known.get(one.name) or load_flat(open_segment(folder.segments, one)) for one in ref.segments]
    dead = dead_masks(folder.dead, ref.dead, [s.segment for s in opened])
    return SegmentedSnapshot(tier, dimension, ref, tuple(opened), dead)


@dataclass(frozen=True, slots=True)
class SegmentedSnapshot:
    """Made by `load_tier`. The default serves nothing; with `refused` it also says why."""

    tier: Tier
    dimension: int = 0
    ref: TierRef = field(default_factory=TierRef)
    segments: tuple[FlatSegment, ...] = ()
    dead: Mapping[str, Mask] = field(default_factory=dict[str, Mask])
    refused: str = ""

    @property
    def live_count(self) -> int:
        """Vectors that a search can return."""
        return self.ref.live_count

    def search(
        self,
        vector: Vector,
        k: int,
        scope: Scope,
        *,
        passage_ids: Sequence[int] | Ids | None = None,
        effort: float | None = None,
    ) -> Found:
        """See `TierSnapshot.search`. Flat segments miss nothing, whatever the effort."""
        self._check_served()
        if not self.segments:
            check_vector(vector)
            return []
        query = self._query(vector)
        wanted = None if passage_ids is None else np.unique(np.asarray(passage_ids, np.int64))
        best: dict[int, float] = {}
        for segment in self.segments:
            scores, ids = search_flat(
                segment, query, k, scope, dead=self.dead.get(segment.name), passage_ids=wanted
            )
            for passage_id, score in zip(ids.tolist(), scores.tolist(), strict=True):
                best[passage_id] = min(1.0, max(-1.0, score))
        return sorted(best.items(), key=lambda hit: (-hit[1], hit[0]))[:k]

    def search_exact(
        self, vector: Vector, k: int, scope: Scope, *, passage_ids: Sequence[int] | Ids | None = None
    ) -> Found:
        """See `TierSnapshot.search_exact`."""
        return self.search(vector, k, scope, passage_ids=passage_ids)

    def search_exact_many(self, vectors: Vector, k: int, scope: Scope) -> list[Found]:
        """See `TierSnapshot.search_exact_many`."""
        return [self.search_exact(vector, k, scope) for vector in vectors]

    def sample(self, count: int, seed: int) -> list[VectorRow]:
        """See `TierSnapshot.sample`."""
        live = [
            (s, np.arange(len(s.ids)) if (dead := self.dead.get(s.name)) is None else np.flatnonzero(~dead))
            for s in self.segments
        ]
        total = sum(len(rows) for _, rows in live)
        chosen = np.random.default_rng(seed).permutation(total)[:count]
        made: list[VectorRow] = []
        start = 0
        for segment, rows in live:
            inside = np.sort(chosen[(chosen >= start) & (chosen < start + len(rows))]) - start
            start += len(rows)
            for row in rows[inside].tolist():
                span = segment.segment.owner(row)
                vector = segment.vectors[row].astype(np.float16).tobytes()
                made.append(VectorRow(span.tenant_id, span.collection_id, int(segment.ids[row]), vector))
        return made

    def stats(self) -> TierStats:
        """See `TierSnapshot.stats`."""
        ram = sum(s.vectors.nbytes + s.ids.nbytes for s in self.segments)
        return TierStats(
            self.tier,
            self.ref.live_count,
            self.ref.row_count - self.ref.live_count,
            Counter(one.kind for one in self.ref.segments),
            ram_bytes=ram + sum(mask.nbytes for mask in self.dead.values()),
        )

    def _check_served(self) -> None:
        if self.refused:
            raise DamagedIndex(f"The {self.tier} tier is refused ({self.refused}) until it is rebuilt.")

    def _query(self, vector: Vector) -> Vector:
        check_vector(vector)
        if vector.shape != (self.dimension,):
            raise ConfigError(
                f"the {self.tier} tier holds {self.dimension}-wide vectors, "
                f"the question's has {vector.shape[0]}"
            )
        query = np.ascontiguousarray(vector, np.float32)
        return query / np.float32(np.linalg.norm(query))


def check_vector(vector: Vector) -> None:
    """Refuse a question without a direction.

    Raises:
        TransientError: not finite, or all zero.
    """
    if not np.isfinite(vector).all() or not vector.any():
        raise TransientError("The question's vector is not finite or has no length; try again.")
