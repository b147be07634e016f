"""What a vector tier is: the writer's side, the readers' side and the values that pass between them.

    tier = open_tier(folder, ref, ...)      # writer: one tier of one generation (`VectorTier`)
    tier.delete([4, 5]); tier.add(rows)     # files are written aside; nobody sees them
    ref = tier.commit()                     # durable; served once a manifest that holds `ref` is published

    snapshot = load_tier(folder, ref, ...)  # reader: the same generation (`TierSnapshot`), never changes
    snapshot.search(vector, k, scope)       # [(passage id, cosine)], best first
    snapshot.search_many(vectors, k, scope) # the same for many questions at once

Writer and readers share nothing but the published manifest, so a tier may live in files, in an object store
or in another engine. Every implementation passes the one suite in `tests/retrieval/test_vector_tier.py`.

A reference of the semantics, for live rows with vectors `x` (fp16, unit length) and a query `q`:

    allowed = rows of the scope's tenant and collections, of `passage_ids` when given, without dead ones
    exact   = the k allowed rows with the highest x @ q, ties by passage id

`search_exact` returns `exact`; `search` returns at least the recall floor's share of it, and the scores it
returns are the exact cosines whatever the structure in between, so hits of several tiers can be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from core.errors import PermanentError
from core.types import Scope, Tier

if TYPE_CHECKING:  # the HTTP process reads manifests and loads no numpy
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.int64]
    Vector = npt.NDArray[np.float32]
else:
    Ids = Vector = Any
Found = list[tuple[int, float]]
Batch = tuple[Vector, Ids]
"""Cosines and passage ids, [n, m] for n questions, best first, ties by id; -inf and -1 for those missing."""


class VectorsRejected(PermanentError):
    """Vectors that have no direction: not finite, or all zero. Nothing of the call was added."""

    code = "vectors_rejected"
    title = "A vector cannot be indexed"


@dataclass(frozen=True, slots=True)
class VectorRow:
    """One passage's vector on its way into a tier; `vector` is fp16 little endian."""

    tenant_id: str
    collection_id: str
    passage_id: int
    vector: bytes

    @property
    def order(self) -> tuple[str, str, int]:
        """Position in a segment."""
        return self.tenant_id, self.collection_id, self.passage_id


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """A segment as a manifest names it.

    Attributes:
        name: its folder.
        count: rows, dead ones included.
        checksum: of its header, which holds the checksums of its other files.
        kind: its search structure, an entry of `retrieval.structures.KINDS`; `flat` has no file of its own.
    """

    name: str
    count: int
    checksum: str
    kind: str = "flat"


@dataclass(frozen=True, slots=True)
class DeadRef:
    """The tombstone file of a generation: `count` dead rows over all segments."""

    name: str
    count: int
    checksum: str


@dataclass(frozen=True, slots=True)
class TierRef:
    """One tier of one generation, as a manifest holds it. Everything a reader needs, with the tier's folder.

    Attributes:
        segments: immutable, in the order in which they were written.
        dead: rows of them that no search returns.
        effort: how much a search does, relative to what each segment was calibrated to when it was built
            (1.0); the recall monitor raises it, and publishing it needs no new files.
    """

    segments: tuple[SegmentRef, ...] = ()
    dead: DeadRef | None = None
    effort: float = 1.0

    @property
    def row_count(self) -> int:
        """Rows in the files, dead ones included."""
        return sum(s.count for s in self.segments)

    @property
    def live_count(self) -> int:
        """Vectors that a search can return."""
        return self.row_count - (self.dead.count if self.dead else 0)

    def to_fields(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> TierRef:
        """Read `to_fields`. Raises KeyError or TypeError when it is something else."""
        dead = fields["dead"]
        return cls(
            tuple(SegmentRef(**s) for s in fields["segments"]),
            DeadRef(**dead) if dead else None,
            float(fields.get("effort", 1.0)),
        )


@dataclass(frozen=True, slots=True)
class TierStats:
    """How a tier stands.

    Attributes:
        live, dead: rows that a search can and cannot return.
        segments: how many, by kind.
        ram_bytes: held in memory for searching (structures, ids, tombstones), the page cache apart.
        mapped_bytes: of that, pages of files that the system may drop and read again.
        disk_bytes: all files.
        page_bytes: size of one page of originals.
        padding_share: share of the pages' bytes that hold no row (the end of a page, the last page).
        page_hits, page_misses: touches of originals in this process that found their page in memory, or not.
        cached_bytes: of the page cache that this tier's pages take.
    """

    tier: Tier
    live: int
    dead: int
    segments: Mapping[str, int] = field(default_factory=dict[str, int])
    ram_bytes: int = 0
    mapped_bytes: int = 0
    disk_bytes: int = 0
    page_bytes: int = 0
    padding_share: float = 0.0
    page_hits: int = 0
    page_misses: int = 0
    cached_bytes: int = 0

    @property
    def bytes_per_vector(self) -> float:
        """`ram_bytes` per live vector; 0 for an empty tier."""
        return self.ram_bytes / self.live if self.live else 0.0

    @property
    def fragmentation(self) -> float:
        """Share of the stored rows that are dead; a compacting rebuild brings it to 0."""
        return self.dead / (self.live + self.dead) if self.dead else 0.0


@dataclass(frozen=True, slots=True)
class Candidates:
    """What one place (a segment, or a whole tier elsewhere) names for n questions.

    Attributes:
        scores: cosines [n, c], approximate unless `exact` is None; -inf where there are fewer.
        ids: passages [n, c]; -1 where there are fewer.
        exact: `(questions [m], columns [m])` → cosines [m] of these candidates. Raises `DamagedIndex`.
        depth: so many of the best by `scores` have to be scored exactly to have the best k among them.
    """

    scores: Vector
    ids: Ids
    exact: Callable[[Ids, Ids], Vector] | None = None
    depth: int = 0


class VectorTier(Protocol):
    """The writer's side of one tier, used by one thread that holds the writer's lease.

    Opened on the `TierRef` of a generation; changes are made beside it and never alter its files, so a crash
    at any moment leaves that generation whole and at most some files that no manifest names.
    """

    @property
    def tier(self) -> Tier:
        """Which one."""
        ...

    def add(self, rows: Iterable[VectorRow]) -> int:
        """Upsert: afterwards each passage is there once, with this owner and this vector.

        A row that is there already changes nothing; another owner or vector replaces it. Vectors of another
        length than 1 are brought to it.

        Args:
            rows: strictly ascending by `VectorRow.order`; read once, a page at a time.

        Returns:
            Rows written.

        Raises:
            ValueError: rows out of order, or a vector of another width.
            VectorsRejected: names passages whose vectors are not finite or all zero.
        """
        ...

    def delete(self, ids: Sequence[int]) -> int:
        """Let no search return these passages; unknown ids are passed over.

        Returns:
            Rows that died.
        """
        ...

    def present(self, ids: Sequence[int]) -> set[int]:
        """Those of `ids` that a search could return after the next commit."""
        ...

    def live_ids(self) -> Ids:
        """All ids that a search could return after the next commit, ascending."""
        ...

    def commit(self) -> TierRef:
        """Make the changes durable. May be called again after further changes.

        Returns:
            What a manifest has to hold for the changes to be served; that of the opening when there are none.

        Raises:
            DamagedIndex: a file that a merge reads is missing or does not match.
        """
        ...

    def stats(self) -> TierStats:
        """Counts as the next commit would leave them; memory figures are the readers'."""
        ...


class TierSnapshot(Protocol):
    """The readers' side: one tier of one generation. Never changes; any number of threads may search it."""

    @property
    def tier(self) -> Tier:
        """Which one."""
        ...

    @property
    def dimension(self) -> int:
        """Numbers per vector; 0 while nothing was indexed."""
        ...

    @property
    def live_count(self) -> int:
        """Vectors that a search can return."""
        ...

    @property
    def refused(self) -> str:
        """Why the tier serves nothing; empty while it serves."""
        ...

    def search(
        self,
        vector: Vector,
        k: int,
        scope: Scope,
        *,
        passage_ids: Sequence[int] | Ids | None = None,
        effort: float | None = None,
    ) -> Found:
        """The k nearest passages that the scope may see; scope, ids and tombstones are tested inside.

        Args:
            vector: [d] float32, finite, of any length but 0.
            k: how many at most; 0 finds nothing.
            scope: whose passages may be found.
            passage_ids: limits the search when given, in any order; an empty sequence finds nothing.
            effort: instead of the published one; 2.0 looks at about twice as many candidates.

        Returns:
            `(passage id, cosine in [-1, 1])`, best first, ties by id; a passage once; as many as there are
            when fewer than k.

        Raises:
            DamagedIndex: the tier is refused, or a page that the search needed is damaged.
            TransientError: the vector is not finite or all zero.
            ConfigError: the vector has another width than the tier; names both.
        """
        ...

    def search_many(
        self,
        vectors: Vector,
        k: int,
        scope: Scope,
        *,
        passage_ids: Sequence[int] | Ids | None = None,
        effort: float | None = None,
    ) -> Batch:
        """`search` for [n, d] vectors of one scope at once, which costs less for each. Errors as there.

        Returns:
            [n, m] with m at most `k`: what `search` gives for each vector.
        """
        ...

    def candidates(
        self,
        vectors: Vector,
        k: int,
        scope: Scope,
        *,
        passage_ids: Sequence[int] | Ids | None = None,
        effort: float | None = None,
    ) -> Sequence[Candidates]:
        """What `search_many` would choose from, so that several tiers choose together. Errors as there."""
        ...

    def search_exact(
        self, vector: Vector, k: int, scope: Scope, *, passage_ids: Sequence[int] | Ids | None = None
    ) -> Found:
        """What `search` would return if it missed nothing: a scan of the originals. Errors as there."""
        ...

    def search_exact_many(self, vectors: Vector, k: int, scope: Scope) -> list[Found]:
        """`search_exact` for [n, d] vectors in one pass over the originals, for gates and monitors."""
        ...

    def sample(self, count: int, seed: int) -> list[VectorRow]:
        """Up to `count` live rows spread over the tier, the same for the same seed and generation.

        They stand in for questions where a gate or a calibration has too few of them.
        """
        ...

    def stats(self) -> TierStats:
        """Counts, and what the tier takes in this process."""
        ...
