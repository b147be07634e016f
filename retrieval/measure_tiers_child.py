"""Our side of `geo bench tiers`, in processes of its own.

    python -m retrieval.measure_tiers_child build FOLDER      vectors.npy → the three tiers
    python -m retrieval.measure_tiers_child serve FOLDER      answers JSON lines on stdin

`run` searches all queries once, in one batch per thread, and says how long that took; `alone` asks them one
by one; `found` gives the hits, `stats` bytes; `tune` sets each tier's effort on the first half of the
queries, as the recall monitor would and as the peers choose their setting; `bound` times the structures
alone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from core.types import Scope, Tier
from retrieval.calibrate import surely
from retrieval.dense import DenseRoute
from retrieval.exact import recall
from retrieval.manifest import TierFolder
from retrieval.merge import pairs
from retrieval.recall_monitor import among_best, recall_at
from retrieval.selection import Selection
from retrieval.tier_snapshot import SegmentedSnapshot, load_tier
from retrieval.tier_writer import Layout, open_tier
from retrieval.vector_pages import resize_page_cache
from retrieval.vector_tier import TierRef, VectorRow

SHARES = {Tier.HOT: 0.05, Tier.WARM: 0.25, Tier.COLD: 0.70}
SELECTIVITY = {"0.001": 0.001, "0.01": 0.01, "0.1": 0.1}
TENANT = "bench"
K = 10
FLOOR = 0.95
EFFORTS = tuple(round(0.25 * 1.12**step, 3) for step in range(25))  # to 3.8


def build(folder: Path) -> dict[str, Any]:
    """Put the vectors into tiers; which row is where and whose is drawn."""
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    random = np.random.default_rng(1)
    tier_of = random.choice(3, len(vectors), p=list(SHARES.values()))
    owner = np.searchsorted(np.cumsum(list(SELECTIVITY.values())), random.random(len(vectors)))
    names = [*(f"c{share}" for share in SELECTIVITY), "rest"]
    seconds: dict[str, float] = {}
    for number, tier in enumerate(SHARES):
        start = time.perf_counter()
        place = _folder(folder, tier)
        place.segments.mkdir(parents=True)
        place.dead.mkdir()
        rows = np.flatnonzero(tier_of == number)
        rows = rows[np.lexsort((rows, np.asarray(names, np.str_)[owner[rows]]))]
        made = open_tier(place, tier, TierRef(), dimension=vectors.shape[1], layout=Layout())
        made.add(_rows(vectors, rows, owner, names))
        (place.root / "ref.json").write_text(json.dumps(made.commit().to_fields()))
        seconds[tier.value] = round(time.perf_counter() - start, 2)
    return {"build_s": seconds}


def _rows(
    vectors: npt.NDArray[np.float16],
    rows: npt.NDArray[np.int64],
    owner: npt.NDArray[np.int64],
    names: Sequence[str],
) -> Iterator[VectorRow]:
    for row in rows.tolist():
        yield VectorRow(TENANT, names[int(owner[row])], row + 1, vectors[row].tobytes())


def _folder(folder: Path, tier: Tier) -> TierFolder:
    return TierFolder(folder / "tiers" / tier.value)


class Server:
    """Loads the tiers and answers."""

    def __init__(self, folder: Path, cache_bytes: int) -> None:
        self._queries = np.load(folder / "queries.npy")
        resize_page_cache(cache_bytes)
        self._before = psutil.Process().memory_info().rss
        dimension = self._queries.shape[1]
        tiers: dict[Tier, SegmentedSnapshot] = {}
        for tier in SHARES:
            place = _folder(folder, tier)
            ref = TierRef.from_fields(json.loads((place.root / "ref.json").read_text()))
            tiers[tier] = load_tier(place, tier, ref, dimension=dimension)
        self._tiers, self._route = tiers, DenseRoute(tiers)
        self._scope = Scope(TENANT, None, "bench")

    def tune(self) -> dict[str, Any]:
        """The least effort per tier that surely finds the floor's share of the best over all tiers.

        As the recall monitor counts: of the best ten of a question, those that are in the tier.
        """
        asked = self._queries[: len(self._queries) // 2]
        exact = {tier: one.search_exact_many(asked, K, self._scope) for tier, one in self._tiers.items()}
        for tier, snapshot in self._tiers.items():
            others = [found for name, found in exact.items() if name is not tier]
            wanted = [among_best(own, rest, K) for own, *rest in zip(exact[tier], *others, strict=True)]
            for effort in EFFORTS:
                found = snapshot.search_many(asked, K, self._scope, effort=effort)
                shares = [recall_at(f, w) for f, w in zip(pairs(found), wanted, strict=True)]
                if surely([share for share in shares if share is not None], FLOOR) or effort == EFFORTS[-1]:
                    self._tiers[tier] = replace(snapshot, ref=replace(snapshot.ref, effort=effort))
                    break
        self._route = DenseRoute(self._tiers)
        return {"effort": {tier.value: one.ref.effort for tier, one in self._tiers.items()}}

    def run(self, threads: int) -> dict[str, Any]:
        """Seconds for all queries, in one batch per thread."""
        return self._timed(threads, lambda part: self._route.search_many(part, K, self._scope))

    def alone(self, threads: int) -> dict[str, Any]:
        """Seconds for all queries, one by one."""

        def each(part: npt.NDArray[np.float32]) -> None:
            for query in part:
                self._route.search(query, K, self._scope)

        return self._timed(threads, each)

    def bound(self, threads: int) -> dict[str, Any]:
        """Seconds for what FAISS does of `run`: naming candidates, without their originals and merging."""

        def structures(part: npt.NDArray[np.float32]) -> None:
            for snapshot in self._tiers.values():
                for loaded in snapshot.segments:
                    count = loaded.segment.ref.count
                    every = Selection(count, count, rows=(0, count))
                    loaded.structure.search(part, K, every, snapshot.ref.effort)

        return self._timed(threads, structures)

    def _timed(self, threads: int, search: Callable[[npt.NDArray[np.float32]], object]) -> dict[str, Any]:
        parts = np.array_split(self._queries, threads)
        with ThreadPoolExecutor(threads) as pool:
            start = time.perf_counter()
            list(pool.map(search, parts))
            return {"seconds": time.perf_counter() - start, "queries": len(self._queries)}

    def found(self) -> dict[str, Any]:
        """Row numbers per query."""
        return {"found": (self._route.search_many(self._queries, K, self._scope)[1] - 1).tolist()}

    def selective(self) -> dict[str, float]:
        """Recall@10 inside scopes that hold a small share of the vectors."""
        shares: dict[str, float] = {}
        for name in SELECTIVITY:
            scope = Scope(TENANT, (f"c{name}",), "bench")
            asked = self._queries[:100]
            exact: list[list[tuple[int, float]]] = [[] for _ in asked]
            for one in self._tiers.values():
                for best, more in zip(exact, one.search_exact_many(asked, K, scope), strict=True):
                    best.extend(more)
            wanted = [[i for i, _ in sorted(best, key=lambda hit: -hit[1])[:K]] for best in exact]
            found = self._route.search_many(asked, K, scope)[1].tolist()
            shares[name] = round(recall(found, wanted), 4)
        return shares

    def stats(self) -> dict[str, Any]:
        """Bytes by tier and of the process."""
        now = psutil.Process().memory_info().rss
        tiers = {tier.value: one.stats() for tier, one in self._tiers.items()}
        return {
            "rss": now,
            "rss_grown": now - self._before,
            "bytes_per_vector": {name: round(one.bytes_per_vector, 1) for name, one in tiers.items()},
            "kinds": {name: dict(one.segments) for name, one in tiers.items()},
            "page_hit_share": {
                name: round(one.page_hits / max(1, one.page_hits + one.page_misses), 3)
                for name, one in tiers.items()
            },
            "page_cache_bytes": sum(one.cached_bytes for one in tiers.values()),
            "calibration": {
                tier.value: [dict(s.segment.calibration) for s in one.segments]
                for tier, one in self._tiers.items()
            },
        }


def serve(folder: Path, cache_bytes: int) -> None:
    """Answer until stdin ends."""
    server = Server(folder, cache_bytes)
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        print(json.dumps(getattr(server, command)(*arguments)), flush=True)  # noqa: T201 - read by `measure_tiers`


if __name__ == "__main__":
    what, place = sys.argv[1], Path(sys.argv[2])
    if what == "build":
        print(json.dumps(build(place)))  # noqa: T201
    else:
        serve(place, int(sys.argv[3]))
