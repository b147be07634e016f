"""`geo bench tiers`: three tiers against one index of usearch, FAISS HNSW or lancedb over the same vectors.

Each side runs in a process of its own that only loads and searches. All queries are asked at once, on as
many threads as there are processors, in turn with the other sides; what each tier and each peer does for a
query is chosen on the first half of the queries, recall is measured on the second. Bytes are the growth of
the process's resident memory from before the index was loaded until all queries were asked many times,
mapped files and page cache included; what the system keeps of files that were read is nobody's.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from core.errors import GeoError
from core.figures import spread
from core.measured import machine, versions
from ingest.peers import peer_python
from retrieval.measure_vectors import made_vectors, read_vectors

PEERS = ("usearch", "hnsw", "lancedb")
REQUIREMENTS = ("usearch==2.26.6", "lancedb==0.40.0", "faiss-cpu==1.15.1", "numpy", "psutil")
PEER_FOLDER = Path(".venv-peers-vectors")
LIMIT: dict[str, Any] = {
    "ratio_qps": 1.0,
    "bytes_ratio": 0.3,
    "recall@10": 0.95,
    "bytes_per_vector": {"hot": 1700, "warm": 450, "cold": 72},
    "exponent": 0.5,
}
SEED = 20261201
# Page cache of ours. A memory plan grants more; but the rounds repeat their questions, whose originals are
# not to come from the cache for that alone: at a million, 96 bytes a vector had nine of ten of them.
CACHE_PER_VECTOR = 16
# The first 400 that the seed makes were asked while structures and constants were chosen, so others are.
_SEEN, _QUERIES = 400, 800
_K = 10
Note = Callable[[str], None]
Figures = dict[str, Any]


def bench_tiers(
    *,
    size: int,
    rounds: int,
    vectors: Path | None = None,
    peers: Sequence[str] = PEERS,
    prepared: Path | None = None,
    note: Note = print,
) -> Figures:
    """Measure at `size` vectors, and our own latency at a tenth of it for the growth.

    Args:
        size: vectors.
        rounds: interleaved rounds.
        vectors: a file of real ones; made ones when omitted.
        peers: to compare with.
        prepared: folder that keeps vectors and built indexes; what is there is not made again. Files of
            another size or source are kept apart; after a change of how indexes are built, empty it.
        note: told about progress.

    Raises:
        GeoError: a side failed.
    """
    cache = max(4 << 20, CACHE_PER_VECTOR * size)
    with TemporaryDirectory(prefix="geo-bench-") as scratch:
        name = f"{vectors.stem if vectors else 'made'}-{SEED}"
        base = (prepared or Path(scratch)) / name
        place, small = base / str(size), base / str(_tenth(size))
        python = peer_python(REQUIREMENTS, PEER_FOLDER)
        script = str(Path(__file__).with_name("peer_tiers.py"))
        ours = [sys.executable, "-m", "retrieval.measure_tiers_child"]
        built: Figures = {}
        for folder in (small, place):
            _kept(folder, "vectors", partial(_write, folder, int(folder.name), vectors), note)
            built["ours"] = _kept(folder, "ours", partial(_once, [*ours, "build", str(folder)]), note)
        for peer in peers:
            command = [str(python), "-P", script, "build", peer, str(place)]
            built[peer] = _kept(place, peer, partial(_once, command), note)
        sides = {"ours": _Side([*ours, "serve", str(place), str(cache)])}
        try:
            sides["tenth"] = _Side([*ours, "serve", str(small), str(cache)])
            for peer in peers:
                sides[peer] = _Side([str(python), "-P", script, "serve", peer, str(place)])
            return _measured(sides, place, size, rounds, cache, built, note)
        finally:
            for side in sides.values():
                side.close()


def _kept(folder: Path, part: str, make: Callable[[], Figures], note: Note) -> Figures:
    """What `make` gives, or gave when the folder was prepared; a half-made part is made anew."""
    done = folder / f"{part}.json"
    if done.exists():
        return json.loads(done.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    for left in (folder / part, folder / "tiers" if part == "ours" else folder / part):
        if left.is_dir():
            shutil.rmtree(left)
    note(f"build: {part}, {folder.name} vectors")
    figures = make()
    done.write_text(json.dumps(figures))
    return figures


def _write(folder: Path, count: int, source: Path | None) -> Figures:
    from retrieval.exact import search_blocks

    if source is None:
        stored, asked = made_vectors(count, _SEEN + _QUERIES, seed=SEED)
        asked = asked[_SEEN:]
    else:
        stored, asked = read_vectors(source, count, _QUERIES, seed=SEED)
    np.save(folder / "vectors.npy", stored)
    np.save(folder / "queries.npy", asked)
    blocks = ((at, stored[at : at + 16_384].astype(np.float32), None) for at in range(0, count, 16_384))
    np.save(folder / "wanted.npy", search_blocks(asked, blocks, _K)[1])
    return {"vectors": count}


@dataclass(slots=True)
class _Laps:
    """Seconds of each round, over all queries.

    Attributes:
        batch: of each side, all queries at once.
        alone: of ours and of the tenth, one query after another on one thread.
        single: of ours, one by one on all threads.
        bound: of what FAISS does in ours.
    """

    batch: dict[str, list[float]]
    alone: dict[str, list[float]]
    single: list[float] = field(default_factory=list[float])
    bound: list[float] = field(default_factory=list[float])


def _timed(sides: dict[str, _Side], rounds: int, threads: int, note: Note) -> _Laps:
    """All sides in turn, round by round."""
    for side in sides.values():
        side.ask("run", threads)  # warm
    laps = _Laps({name: [] for name in sides}, {"ours": [], "tenth": []})
    for number in range(1, rounds + 1):
        note(f"search: round {number} of {rounds}")
        for name, side in sides.items():
            laps.batch[name].append(side.ask("run", threads)["seconds"])
        for name in laps.alone:
            laps.alone[name].append(sides[name].ask("alone", 1)["seconds"])
        laps.single.append(sides["ours"].ask("alone", threads)["seconds"])
        laps.bound.append(sides["ours"].ask("bound", threads)["seconds"])
    return laps


def _measured(
    sides: dict[str, _Side], place: Path, size: int, rounds: int, cache: int, built: Figures, note: Note
) -> Figures:
    wanted = np.load(place / "wanted.npy").tolist()
    threads = os.cpu_count() or 1
    note("search: settings are chosen")
    effort = {name: sides[name].ask("tune")["effort"] for name in ("ours", "tenth")}
    laps = _timed(sides, rounds, threads, note)
    recalls = {
        name: _recall(side.ask("found")["found"], wanted) for name, side in sides.items() if name != "tenth"
    }
    peers = [name for name in recalls if name != "ours"]
    stats = {name: side.ask("stats") for name, side in sides.items()}
    qps = {name: spread([_QUERIES / s for s in values]) for name, values in laps.batch.items()}
    able = [name for name in peers if recalls[name] >= LIMIT["recall@10"]]
    best = max(able, key=lambda name: qps[name]["median"], default="")
    ratios = {name: _ratio(laps.batch, name) for name in peers}
    bytes_ratios = {name: round(stats["ours"]["rss_grown"] / stats[name]["rss_grown"], 3) for name in peers}
    return {
        "ratio_qps": ratios.get(best),
        "bytes_ratio": bytes_ratios.get(best),
        "best_peer": best,
        "ratio_qps_by_peer": ratios,
        "bytes_ratio_by_peer": bytes_ratios,
        "recall@10": recalls,
        "recall@10_by_selectivity": sides["ours"].ask("selective"),
        "bytes_per_vector": stats["ours"]["bytes_per_vector"],
        "rss_per_vector": {name: round(stats[name]["rss_grown"] / size, 1) for name in recalls},
        "exponent": _exponent(laps.alone, size),
        "latency_ms": {
            name: spread([1000 * s / _QUERIES for s in some]) for name, some in laps.alone.items()
        },
        "qps": qps,
        "qps_one_by_one": spread([_QUERIES / s for s in laps.single]),
        "faiss_alone": {
            "qps": spread([_QUERIES / s for s in laps.bound]),
            "share_of_time": spread([b / s for b, s in zip(laps.bound, laps.batch["ours"], strict=True)]),
        },
        "effort": effort,
        "ours": stats["ours"],
        "peer": {name: stats[name] for name in peers},
        "build": built,
        "machine": machine(),
        "versions": versions("numpy", "faiss-cpu"),
        "seed": SEED,
        "sizes": {
            "vectors": size, "queries": _QUERIES, "rounds": rounds, "threads": threads, "page_cache": cache,
            "hot": 0.05, "warm": 0.25, "cold": 0.70,
        },
        "limit": LIMIT,
    }  # fmt: skip


def _exponent(alone: dict[str, list[float]], size: int) -> float:
    """Growth of the time of one query from the tenth to the whole, the median over the rounds."""
    growth = [math.log10(full / tenth) for full, tenth in zip(alone["ours"], alone["tenth"], strict=True)]
    return round(statistics.median(growth) / math.log10(size / _tenth(size)), 3)


def _tenth(size: int) -> int:
    return max(1000, size // 10)


def _recall(found: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]]) -> float:
    """On the second half of the queries; the peers chose their setting on the first."""
    half = len(wanted) // 2
    shares = [len(set(f) & set(w)) / _K for f, w in zip(found[half:], wanted[half:], strict=True)]
    return round(statistics.fmean(shares), 4)


def _ratio(seconds: dict[str, list[float]], peer: str) -> Figures:
    return spread([theirs / ours for theirs, ours in zip(seconds[peer], seconds["ours"], strict=True)])


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",
    }


def _once(command: Sequence[str]) -> Figures:
    done = subprocess.run(  # noqa: S603 - our own scripts
        command, env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise GeoError(f"{' '.join(command[-4:])} ended with {done.returncode}: {done.stderr[-2000:]}")
    figures: Figures = json.loads(done.stdout.strip().rsplit("\n", 1)[-1])
    return figures


class _Side:
    """A process that answers one JSON line per JSON line."""

    def __init__(self, command: Sequence[str]) -> None:
        self._name = " ".join(command[-3:])
        self._process = subprocess.Popen(  # noqa: S603 - our own scripts
            command, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *command: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise GeoError(f"{self._name} ended with {self._process.wait()}.")
        return json.loads(line)

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
