"""Which search structure a segment gets, how it is built, and how it is searched.

| kind | in memory per vector (384 numbers) | search | used by |
|---|---|---|---|
| `flat` | 768 B | exact | hot and warm while small |
| `quick16` | 810 B | inverted lists of 4-bit codes, then fp16 rows | hot past `QUICK16_FROM` |
| `quick8` | 423 B | the same codes, then SQ8 rows | warm past `QUICK8_FROM` |
| `pages` | nothing | exact, over the pages of originals | cold while small |
| `quick` | 67 B | the same codes | cold past `QUICK_FROM` |
| `graph` | 914 B | HNSW over fp16 rows | segments of before |
| `lists8` | 392 B | inverted lists of SQ8 codes | segments of before |
| `bits` | 64 B, mapped | inverted lists of RaBitQ codes | segments of before |

Every size from 1 up has a kind; lists are never more than a 39th of the rows, which is what their training
needs. Approximate kinds name candidates, which the tier rescores from the originals.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.types import Tier
from retrieval import cluster
from retrieval.calibrate import SCANNED_ROWS, Calibration, calibrate, questions
from retrieval.faiss_index import (
    ExactRows,
    Graph,
    Hits,
    Lists,
    ListsBuilder,
    build_graph,
    read_graph,
    read_lists,
    widened,
)
from retrieval.files import checksum_of_file
from retrieval.quick_lists import QuickLists, QuickListsBuilder, read_quick_lists
from retrieval.segment_draft import Pace, Steps
from retrieval.selection import Selection
from retrieval.vector_pages import PageFile, Rows
from retrieval.vector_tier import Ids, Vector

if TYPE_CHECKING:
    from retrieval.segments import Segment

KINDS = ("flat", "quick16", "quick8", "pages", "quick", "graph", "lists8", "bits")
_LISTS = {"bits": 1.5, "quick": 4}  # times the root of the rows
_STORED_BITS = {"quick16": 16, "quick8": 8, "quick": 0}

# Where the approximate kind is as fast as the exact one: see docs/adr/0022.
QUICK16_FROM = 2048
QUICK8_FROM = 4096
QUICK_FROM = 4096
_ACCELERATED_FROM = 512
_SMALLEST_LISTS = 39 * 4
_PER_LIST = 39  # rows per list that k-means wants at least
_TRAINED_PER_LIST = 48
_TRAINED_PER_QUICK_LIST = 24  # there are twice as many, and the sample is in memory
_ROUNDS = 8
# What a probed list costs in rescored candidates: so much by itself and so much per row of it. A candidate
# takes 0.8 µs from the originals, a tenth from memory.
_PROBE_COST = {
    "lists8": (0.5, 0.07),
    "bits": (1.2, 0.025),
    "quick": (0.3, 0.003),
    "quick8": (3.0, 0.03),
    "quick16": (3.0, 0.03),
}
_GRAPH_SHARE = 0.25  # of the rows; a narrower selection is scanned, as the walk passes mostly hidden rows
# What is enough for wide questions says little about narrow ones: below this share of the rows an effort
# under one, which the mean of all questions allows, is not applied. With .25 and .49 at a million rows,
# recall@10 was .88 in 1 % of them and .995 in 10 %.
_WIDE_SHARE = 0.25
# Questions of the calibration lie between clusters. Those of the benchmark need three quarters of their
# candidates and a third (warm) to a sixth (cold) of their lists: an effort under one leaves out more lists.
_STEEPER = 4
_UNSURE = 8  # of so many wanted rows, scores from SQ8 may put one in another's place
_SEED = 20261201


@dataclass(frozen=True, slots=True)
class StructurePlan:
    """What decides a segment's kind.

    Attributes:
        tier: where it lives.
        recall_floor: recall@10 that an approximate kind has to reach.
        lists_from: rows from which approximate kinds are used; None = as measured.
        scanned_rows: selections of so few rows are scanned in the originals.
    """

    tier: Tier
    recall_floor: float = 0.95
    lists_from: int | None = None
    scanned_rows: int = SCANNED_ROWS

    def kind(self, count: int) -> str:
        """For a segment of so many rows."""
        approximate, exact, limit = {
            Tier.HOT: ("quick16", "flat", QUICK16_FROM),
            Tier.WARM: ("quick8", "flat", QUICK8_FROM),
            Tier.COLD: ("quick", "pages", QUICK_FROM),
        }[self.tier]
        return approximate if count >= max(self.lists_from or limit, _SMALLEST_LISTS) else exact


@dataclass(frozen=True, slots=True)
class Built:
    """A stored structure: its file's checksum and what it was calibrated to."""

    checksum: str
    calibration: Mapping[str, Any]


def list_count(kind: str, rows: int) -> int:
    """Inverted lists for so many rows: about twice the root, so lists grow as slowly as their number.

    Fewer of `bits`, whose rows cost less to pass than centroids do, in time and in bytes. More of `quick`:
    the nearer a row's centroid, the more the codes tell of what is left, and the fewer originals are read.
    """
    return max(1, min(rows // _PER_LIST, round(_LISTS.get(kind, 2) * rows**0.5)))


def build_structure(
    kind: str, pages: PageFile, plan: StructurePlan, path: Path, steps: Steps | None = None
) -> Built | None:
    """Build, calibrate and store the structure of one segment.

    Args:
        kind: of `KINDS`.
        pages: the originals, complete.
        plan: its recall floor is what the structure is calibrated to.
        path: where the file goes; durable on return.
        steps: keeps what took seconds to compute, for an attempt after this one.

    Returns:
        None for a kind that has no file.
    """
    if kind in ("flat", "pages"):
        return None
    if kind == "graph":
        structure: Graph | Lists | QuickLists = build_graph(pages.block(0, pages.count))
    else:
        structure = _build_lists(kind, pages, steps or Steps())
    structure.write(path)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return Built(checksum_of_file(path), _calibrated(kind, structure, pages, plan).to_fields())


def load_structure(segment: Segment) -> Structure:
    """Load the structure of a segment.

    Raises:
        DamagedIndex: its file or a page is missing or does not match its checksum.
    """
    kind, calibration = segment.ref.kind, Calibration.from_fields(segment.calibration)
    if kind == "pages":
        return Structure(kind, calibration, None)
    if kind == "flat":
        rows = ExactRows(segment.ref.count, segment.dimension)
        for start, block in segment.pages.blocks():
            rows.rows[start : start + len(block)] = block
        if segment.ref.count >= _ACCELERATED_FROM:
            rows.use_accelerator()
        return Structure(kind, calibration, rows)
    path = segment.checked_structure()
    if kind == "graph":
        graph = read_graph(path)
        graph.use_accelerator()
        return Structure(kind, calibration, graph)
    if kind in _STORED_BITS:
        quick = read_quick_lists(path)
        quick.use_accelerator()
        return Structure(kind, calibration, quick)
    bits = kind == "bits"
    return Structure(
        kind,
        calibration,
        read_lists(path, mapped=bits, rotation=_rotation(segment.dimension) if bits else None),
    )


@dataclass(frozen=True, slots=True)
class Structure:
    """A loaded structure. Never changes."""

    kind: str
    calibration: Calibration
    index: ExactRows | Graph | Lists | QuickLists | None

    @property
    def rows(self) -> Rows | None:
        """Its rows as they are stored, where it keeps them in memory."""
        return None if self.index is None or isinstance(self.index, Lists) else self.index.rows

    @property
    def ram_bytes(self) -> int:
        """Memory it takes, mapped files included."""
        return self.index.nbytes if self.index is not None else 0

    @property
    def mapped_bytes(self) -> int:
        """Of that, mapped files."""
        return self.ram_bytes if self.kind == "bits" else 0

    def search(
        self, queries: Vector, k: int, selection: Selection, effort: float
    ) -> tuple[Hits | None, bool]:
        """Search the selected rows for [n, d] queries.

        Returns:
            Scores and rows, and whether they are exact cosines; where they are not, more rows than `k`, to be
            rescored. None stands for "scan the originals": the kind keeps nothing, or the selection is too
            narrow for it.
        """
        if isinstance(self.index, ExactRows):
            return self.index.search(queries, k, selection), True
        if isinstance(self.index, Graph):
            if selection.count < _GRAPH_SHARE * selection.total:
                return self.index.search_exact(queries, k, selection), True
            wanted = round(effort * self.calibration.probes(selection.count / selection.total, k))
            return self.index.search(queries, k, selection, wanted), True
        if self.index is None or selection.count <= self.calibration.scanned_rows:
            return self.search_exact(queries, k, selection), True
        if selection.count < _WIDE_SHARE * selection.total:
            effort = max(effort, 1.0)
        lists = min(effort, effort**_STEEPER)
        probes = max(1, round(lists * self.calibration.probes(selection.count / selection.total, k)))
        wanted = max(k, round(effort * self.calibration.candidates(k)))
        if isinstance(self.index, Lists) or not self.index.refines:
            return self.index.search(queries, wanted, selection, probes, k), False
        exact = self.index.rows is not None
        found = k if exact else k + k // _UNSURE + 1
        return self.index.search(queries, found, selection, probes, k, max(wanted, found)), exact

    def search_exact(self, queries: Vector, k: int, selection: Selection) -> Hits | None:
        """Exactly, from memory; None stands for "scan the originals"."""
        if isinstance(self.index, ExactRows):
            return self.index.search(queries, k, selection)
        if isinstance(self.index, Graph | QuickLists):
            return self.index.search_exact(queries, k, selection)
        return None


def _build_lists(kind: str, pages: PageFile, steps: Steps) -> Lists | QuickLists:
    lists = list_count(kind, pages.count)
    each = _TRAINED_PER_QUICK_LIST if kind == "quick" else _TRAINED_PER_LIST
    sample = _sample(pages, min(pages.count, max(lists * each, 1024)))
    centres = cluster.centroids(sample, lists, rounds=_ROUNDS, seed=_SEED, step=steps.once)
    builder: ListsBuilder | QuickListsBuilder
    if kind in _STORED_BITS:
        builder = QuickListsBuilder(centres, _STORED_BITS[kind], sample)
    else:
        bits = kind == "bits"
        builder = ListsBuilder(
            centres, 1 if bits else 8, widened(sample), _rotation(pages.dimension) if bits else None
        )
    member = _members(pages, centres, steps)
    for start, block in pages.blocks():
        builder.add(start, widened(block), member[start : start + len(block)])
    return builder.finish()


def _members(pages: PageFile, centres: Vector, steps: Steps) -> Ids:
    """The list of every row: most of the work of building lists, kept in parts of some seconds."""
    parts: list[Ids] = []
    count = noted = 0
    while (part := steps.get(f"members-{count}")) is not None:
        parts.append(part.astype(np.int64))
        count = noted = count + len(part)
    pace = Pace()
    fresh: list[Ids] = []
    for start, block in pages.blocks(count):
        fresh.append(cluster.nearest(widened(block), centres))
        count = start + len(block)
        if pace.due() or count == pages.count:
            parts.append(np.concatenate(fresh))
            steps.keep(f"members-{noted}", parts[-1].astype(np.int32))
            noted, fresh = count, []
    return np.concatenate(parts)


def _sample(pages: PageFile, count: int) -> Rows:
    """Rows spread over the whole segment."""
    chosen = np.sort(np.random.default_rng(_SEED).choice(pages.count, count, replace=False))
    parts: list[Rows] = []
    for start, block in pages.blocks():
        first, last = np.searchsorted(chosen, (start, start + len(block)))
        parts.append(block[chosen[first:last] - start])
    return np.concatenate(parts)


def _rotation(dimension: int) -> Vector:
    """An orthogonal matrix, always the same one: it spreads what few directions hold over all bits."""
    random = np.random.default_rng(_SEED).standard_normal((dimension, dimension))
    return np.ascontiguousarray(np.linalg.qr(random)[0], np.float32)


def _calibrated(
    kind: str, structure: Graph | Lists | QuickLists, pages: PageFile, plan: StructurePlan
) -> Calibration:
    if isinstance(structure, Graph):
        asked = questions(pages, _GRAPH_SHARE, seed=_SEED)

        def walk(queries: Vector, k: int, selection: Selection, probes: int) -> Ids:
            return structure.search(queries, k, selection, probes)[1]

        return calibrate(walk, asked, plan.recall_floor, most_probes=1024, probe_cost=None, scanned_rows=0)

    asked = questions(pages, plan.scanned_rows / pages.count, seed=_SEED)

    def probe(queries: Vector, k: int, selection: Selection, probes: int) -> Ids:
        return structure.search(queries, k, selection, probes, 0)[1]

    by_itself, per_row = _PROBE_COST[kind]
    return calibrate(
        probe, asked, plan.recall_floor, most_probes=structure.list_count,
        probe_cost=by_itself + per_row * pages.count / structure.list_count, scanned_rows=plan.scanned_rows,
    )  # fmt: skip
