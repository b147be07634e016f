"""How far a structure has to search to reach the recall floor, found when it is built.

The questions are stored vectors, moved: a third of them by noise, to the distance of their tenth neighbour;
the others part or half of the way to another stored vector, which puts them between clusters. The vector that
a question came from is neither wanted nor counted. Selections are random rows, the hardest kind: a collection
usually has its rows in few lists.

Rescoring is exact, so a wanted row is found when it is among the candidates: one search with many candidates
tells for every smaller number how much would have been found. Lists and candidates are therefore chosen
together, the cheapest pair that is enough. Enough is a mean of which one may be sure, at 95 %, that it is not
below the floor; what real questions need beyond that, or less, is the recall monitor's to find out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from retrieval.exact import TopK
from retrieval.faiss_index import widened
from retrieval.selection import Mask, Selection
from retrieval.vector_pages import PageFile
from retrieval.vector_tier import Ids, Vector

Search = Callable[[Vector, int, Selection, int], Ids]
"""`(queries [n, d], k, selection, probes)` → rows [n, k], best first, -1 where there are fewer."""

_QUESTIONS = 128  # at most; a segment of few rows gets fewer, as it is soon merged
_SHARES = (0.25, 0.05, 0.01)  # of the rows that a selection leaves, beside all
_TOWARDS = (0.3, 0.5)  # shares of another vector in questions that lie between clusters
_CUTOFFS = (10, 50)
_MOST_CANDIDATES = 32  # per wanted row
_SURE = 1.64  # standard errors that a mean has to be above the floor: one-sided 95 %
_ABSENT = 1 << 30
SCANNED_ROWS = 2048  # a selection of so few rows is scanned in the originals: see docs/adr/0022


@dataclass(frozen=True, slots=True)
class Calibration:
    """What reaches the floor.

    Attributes:
        by_share: `(share of the rows that is selected, lists to probe or nodes to keep)`, falling.
        by_cutoff: `(k, candidates to rescore)`, rising.
        by_depth: `(k, lists or nodes)` without a filter, rising; more hits lie in more lists.
        scanned_rows: selections of so few rows are scanned in the originals.
        recall: recall@10 that was measured without a filter.
    """

    by_share: tuple[tuple[float, float], ...] = ()
    by_cutoff: tuple[tuple[float, float], ...] = ()
    scanned_rows: int = SCANNED_ROWS
    recall: float = 1.0
    by_depth: tuple[tuple[float, float], ...] = ()

    def probes(self, share: float, k: int) -> float:
        """For k hits of a selection of this share."""
        probes = _power_law(self.by_share, share) if self.by_share else 1.0
        if k <= _CUTOFFS[0] or not self.by_depth:
            return probes
        return probes * _power_law(self.by_depth, k) / self.by_depth[0][1]

    def candidates(self, k: int) -> float:
        """To rescore for k hits."""
        return max(k, _power_law(self.by_cutoff, k)) if self.by_cutoff else k

    def to_fields(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "by_share": self.by_share,
            "by_cutoff": self.by_cutoff,
            "scanned_rows": self.scanned_rows,
            "recall": self.recall,
            "by_depth": self.by_depth,
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Calibration:
        """Read `to_fields`; of nothing, the default."""
        return cls(
            tuple((float(a), float(b)) for a, b in fields.get("by_share", ())),
            tuple((float(a), float(b)) for a, b in fields.get("by_cutoff", ())),
            int(fields.get("scanned_rows", SCANNED_ROWS)),
            float(fields.get("recall", 1.0)),
            tuple((float(a), float(b)) for a, b in fields.get("by_depth", ())),
        )


@dataclass(frozen=True, slots=True)
class Questions:
    """Queries [n, d], the row each came from, and per share of the rows: what is selected and its best."""

    vectors: Vector
    sources: Ids
    selections: Mapping[float, Selection]
    wanted: Mapping[float, Ids]


def questions(pages: PageFile, narrowest: float, *, seed: int) -> Questions:
    """Make questions of stored vectors and answer them exactly, in one pass over the originals.

    Args:
        pages: the originals.
        narrowest: share of the rows below which no selection is searched with the structure.
        seed: decides everything that is drawn.
    """
    random = np.random.default_rng(seed)
    count = pages.count
    asked = min(_QUESTIONS, max(24, count // 64), count)
    shares = (1.0, _SHARES[0], *(share for share in _SHARES[1:] if share >= narrowest))
    sources = np.sort(random.choice(count, asked, replace=False))
    others = random.choice(count, asked)
    rows = pages.rows_at(np.concatenate((sources, others))).astype(np.float32)
    own, other = rows[:asked], rows[asked:]
    near = _distance_of_tenth(pages, own[:: max(1, asked // 16)])
    noise = random.standard_normal(own.shape).astype(np.float32)
    noise *= np.linalg.norm(own, axis=1, keepdims=True) / np.linalg.norm(noise, axis=1, keepdims=True)
    moved = near * own + math.sqrt(max(0.0, 1 - near * near)) * noise
    kinds = [moved, *((1 - share) * own + share * other for share in _TOWARDS)]
    vectors = np.choose((np.arange(asked) % len(kinds))[:, None], kinds)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    selections = {share: _selection(count, share, random) for share in shares}
    tops = {share: TopK(vectors, max(_CUTOFFS) + 1) for share in shares}
    for start, block in pages.blocks():
        part = widened(block)
        for share, top in tops.items():
            mask = selections[share].mask
            top.offer(start, part, None if mask is None else mask[start : start + len(part)])
    wanted = {share: _without(top.result()[1], sources) for share, top in tops.items()}
    return Questions(vectors, sources, selections, wanted)


def calibrate(
    search: Search,
    asked: Questions,
    floor: float,
    *,
    most_probes: int,
    probe_cost: float | None,
    scanned_rows: int,
) -> Calibration:
    """The cheapest setting that surely reaches the floor.

    Args:
        search: the structure.
        asked: from `questions`.
        floor: recall@10 in [0, 1].
        most_probes: what the structure can do at most.
        probe_cost: what one more probe costs, in candidates rescored; None when nothing is rescored.
        scanned_rows: stored with what was found.
    """

    def places(share: float, probes: int, k: int) -> Ids:
        most = k if probe_cost is None else _MOST_CANDIDATES * k
        found = search(asked.vectors, most + 1, asked.selections[share], probes)
        return _places(_without(found, asked.sources), asked.wanted[share][:, :k])

    def needed(at: Ids, k: int) -> int | None:
        tried = _steps(k, _MOST_CANDIDATES * k)
        return next((number for number in tried if surely(_shares(at, number), floor)), None)

    def cheapest(k: int, first: int) -> tuple[int, int]:
        """Probes and candidates."""
        if probe_cost is None:
            return _least(partial(_reaches, places, 1.0, k, k, floor), most_probes, first=first), k
        best, cost = (most_probes, _MOST_CANDIDATES * k), math.inf
        for probes in _steps(first, most_probes):
            if probes * probe_cost + k >= cost:
                break
            own = needed(places(1.0, probes, k), k)
            if own is not None and probes * probe_cost + own < cost:
                best, cost = (probes, own), probes * probe_cost + own
        return best

    k = _CUTOFFS[0]
    probes, candidates = cheapest(k, k if probe_cost is None else 1)
    by_share, by_depth, by_cutoff = [(1.0, probes)], [(k, probes)], [(k, candidates)]
    for share in asked.selections:
        if share < 1.0:
            enough = partial(_reaches, places, share, k, candidates, floor)
            by_share.append((share, _least(enough, most_probes, first=probes)))
    for cutoff in _CUTOFFS[1:]:
        lists, own = cheapest(cutoff, probes)
        by_depth.append((cutoff, max(lists, probes)))
        by_cutoff.append((cutoff, own))
    reached = float(_shares(places(1.0, probes, k), candidates).mean())
    return Calibration(
        tuple(by_share),
        tuple(by_cutoff) if probe_cost is not None else (),
        scanned_rows,
        round(reached, 4),
        tuple(by_depth),
    )


def _reaches(
    places: Callable[[float, int, int], Ids], share: float, k: int, candidates: int, floor: float, probes: int
) -> bool:
    return surely(_shares(places(share, probes, k), candidates), floor)


def _places(found: Ids, wanted: Ids) -> Ids:
    """Where each of `wanted` [n, k] stands in `found` [n, c]; -1 where none is wanted."""
    at = np.full(wanted.shape, _ABSENT, np.int64)
    for number, (rows, best) in enumerate(zip(found, wanted, strict=True)):
        order = np.argsort(rows)
        near = order[np.minimum(np.searchsorted(rows, best, sorter=order), len(rows) - 1)]
        at[number] = np.where(rows[near] == best, near, at[number])
    at[wanted < 0] = -1
    return at


def _shares(places: Ids, candidates: int) -> Vector:
    """Per question that wants anything, the share of it that is among so many candidates."""
    wanted = (places >= 0).sum(1)
    found = ((places >= 0) & (places < candidates)).sum(1)
    return (found[wanted > 0] / wanted[wanted > 0]).astype(np.float32)


def surely(shares: Sequence[float] | Vector, floor: float) -> bool:
    """Whether the mean of the shares is the floor at least, with 95 % certainty; none are enough."""
    if not len(shares):
        return True
    return bool(np.mean(shares) - _SURE * np.std(shares) / math.sqrt(len(shares)) >= floor)


def _steps(first: int, most: int) -> Iterator[int]:
    """Numbers from `first` to `most`, an eighth apart."""
    while first < most:
        yield first
        first += max(1, first // 8)
    yield most


def _least(enough: Callable[[int], bool], most: int, first: int = 1) -> int:
    """The least number that is enough, to an eighth; `most` when none is."""
    low, high = 0, min(first, most)
    while not enough(high):
        if high >= most:
            return most
        low, high = high, min(2 * high, most)
    while high - low > max(1, high // 8):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _without(best: Ids, sources: Ids) -> Ids:
    """Each row of `best` without the source, one shorter."""
    made = np.full((best.shape[0], best.shape[1] - 1), -1, np.int64)
    for at, (rows, source) in enumerate(zip(best, sources.tolist(), strict=True)):
        kept = rows[rows != source][: made.shape[1]]
        made[at, : len(kept)] = kept
    return made


def _selection(count: int, share: float, random: np.random.Generator) -> Selection:
    if share == 1.0:
        return Selection(count, count, rows=(0, count))
    mask: Mask = random.random(count) < share
    return Selection(count, int(np.count_nonzero(mask)), mask=mask)


def _distance_of_tenth(pages: PageFile, sample: Vector) -> float:
    """Median cosine between a vector and its tenth neighbour."""
    top = TopK(sample, min(11, pages.count))
    for start, block in pages.blocks():
        top.offer(start, widened(block))
    return float(np.clip(np.median(top.result()[0][:, -1]), 0.0, 1.0))


@lru_cache(4096)  # a few numbers are asked for again and again
def _power_law(points: tuple[tuple[float, float], ...], at: float) -> float:
    """Straight lines between points in log-log; the outer ones go on."""
    if len(points) == 1:
        return points[0][1]
    ordered = sorted(points)
    after = next((n for n, (x, _) in enumerate(ordered) if x >= at), len(ordered) - 1)
    (x0, y0), (x1, y1) = ordered[max(0, after - 1)], ordered[max(1, after)]
    slope = (math.log(y1) - math.log(y0)) / (math.log(x1) - math.log(x0))
    return math.exp(math.log(y0) + slope * (math.log(max(at, 1e-9)) - math.log(x0)))
