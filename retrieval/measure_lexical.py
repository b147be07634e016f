"""`geo bench lexical`: our lexical route against tantivy used alone and against bm25s, on the same tokens.

Each side is a process that answers the same questions, one at a time, in rounds that follow each other side
by side, so that other work on the machine meets all of them. What they search is built once and kept
(`measure_lexical_corpus.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Self

from core.errors import GeoError
from core.figures import growth_exponent, spread
from core.measured import machine, versions
from ingest.peers import peer_python
from retrieval.measure_lexical_corpus import SEED, WORDS, index_place, key, passages, prepared
from retrieval.measure_texts import made_questions

PEERS = ("bm25s==0.3.16",)  # on the product's own tantivy, numba and numpy
PEER_FOLDER = Path(".venv-peers-lexical")
LIMIT = {"ratio": 0.9, "ratio_best": 1.0, "exponent": 0.5, "add_visible_ms": 100}
_CODE = {
    "ours": ("lexical_writer.py", "lexical_store.py"),
    "tantivy": ("peer_lexical.py",),
    "bm25s": ("peer_lexical.py",),
}
MODES = {
    "k10": {"k": 10, "collections": None},
    "k50": {"k": 50, "collections": None},
    "half": {"k": 10, "collections": 5},
    "tenth": {"k": 10, "collections": 1},
}
"""What is asked: how many results, and in how many of ten collections of equal size."""
Note = Callable[[str], None]
Figures = dict[str, Any]


def bench_lexical(*, sizes: Sequence[int], rounds: int, questions: int, note: Note = print) -> Figures:
    """Measure the search at every size and the way of one added passage at the largest.

    Args:
        sizes: numbers of passages.
        rounds: interleaved rounds; each asks every question once of every side.
        questions: how many.
        note: told about progress.

    Raises:
        GeoError: a side ended before its time, or found other passages than it should.
    """
    by_size: dict[int, Figures] = {}
    corpus = prepared(max(sizes), note)
    for size in sorted(sizes):
        by_size[size] = _one_size(corpus, size, rounds, questions, note)
    largest = by_size[max(sizes)]
    ours = {size: figures["k10"]["ours_ms"] for size, figures in by_size.items()}
    return {
        "ratio": largest["k10"]["ratio_tantivy"],
        "ratio_best": largest["k10"]["ratio_best"],
        "exponent": growth_exponent(ours),
        "add_visible_ms": largest["add_visible_ms"],
        "by_size": by_size,
        "machine": machine(),
        "versions": versions("tantivy", "numba") | {"bm25s": PEERS[0].partition("==")[2]},
        "seed": SEED,
        "sizes": {"passages": sorted(sizes), "rounds": rounds, "questions": questions, "words": 2 * WORDS},
        "peer": "tantivy alone: the tokens of our analyser in one field without positions, term queries, no "
        "count, ids from a fast field; as documented: parsed query, stored ids, count; bm25s: numba, one "
        "question at a time, and all at once; all without tenants, headings and deletes",
        "limit": LIMIT,
    }


class Side:
    """A process that answers `{"mode": …}` with the milliseconds of every question."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        self.name = name
        self._process = subprocess.Popen(  # noqa: S603 - our own scripts
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ready = self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)  # the end of its input ends it

    def ask(self, **request: Any) -> Figures:
        """One request, one answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Figures:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise GeoError(f"{self.name} ended with {self._process.wait()}.")
        return json.loads(line)


def _one_size(corpus: Path, size: int, rounds: int, questions: int, note: Note) -> Figures:
    python = [str(peer_python(PEERS, PEER_FOLDER, beside_product=True)), "-P"]
    peer = str(Path(__file__).with_name("peer_lexical.py"))
    product = str(Path(__file__).parents[1])
    own = [sys.executable, "-m", "retrieval.measure_lexical_child"]
    places = {
        name: index_place(name, size, key(size, SEED, WORDS, versions("tantivy"), PEERS, code=code))
        for name, code in _CODE.items()
    }
    rest = [str(corpus), str(size)]
    builds = {name: ([*python, peer, "build", name], [product, *rest]) for name in ("bm25s", "tantivy")}
    builds["ours"] = ([*own, "build"], rest)
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # one process each: their times are no figures
        for done in [pool.submit(_built, name, places[name], *how, note) for name, how in builds.items()]:
            done.result()
    with TemporaryDirectory(prefix="geo-bench-") as scratch:
        asked = Path(scratch) / "questions.json"
        texts = made_questions(list(passages(corpus, size)), questions, seed=SEED)
        asked.write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")
        with (
            Side("ours", [*own, "serve", str(places["ours"]), str(asked)]) as ours,
            Side(
                "tantivy", [*python, peer, "serve", "tantivy", str(places["tantivy"]), product, str(asked)]
            ) as tantivy,
            Side(
                "bm25s", [*python, peer, "serve", "bm25s", str(places["bm25s"]), product, str(asked)]
            ) as bm25s,
        ):
            return _asked(ours, tantivy, bm25s, size, rounds, note)


def _built(name: str, place: Path, command: Sequence[str], rest: Sequence[str], note: Note) -> None:
    """Build the index of a side unless it is there."""
    if (place / "built.json").is_file():
        return
    note(f"{name}: building {place.name}")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    begun = monotonic()
    done = subprocess.run(  # noqa: S603 - our own scripts
        [*command, str(place), *rest], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise GeoError(f"{name} could not build its index; the reason stands above.")
    (place / "built.json").write_text(done.stdout.splitlines()[-1], encoding="utf-8")
    note(f"{name}: built in {monotonic() - begun:.0f} s")


def _asked(ours: Side, tantivy: Side, bm25s: Side, size: int, rounds: int, note: Note) -> Figures:
    figures: Figures = {}
    for mode in MODES:
        note(f"{size} passages: {mode}")
        sides = {"ours": ours, "tantivy": tantivy}
        if mode == "k10":
            sides["bm25s"] = bm25s
        figures[mode] = _compared(sides, mode, rounds)
    figures["as_documented"] = spread(typical([tantivy.ask(mode="as_documented") for _ in range(3)]))
    figures["bm25s_batch_ms"] = spread(typical([bm25s.ask(mode="batch") for _ in range(3)]))
    figures["agreement_bm25s"] = _agreement(ours.ask(mode="found"), bm25s.ask(mode="found"))
    added = ours.ask(mode="add")
    figures |= {"add_visible_ms": spread(added["visible_ms"]), "change_ms": spread(added["change_ms"])}
    for name in ("rss_mib", "segments"):
        figures[name] = {side.name: side.ready[name] for side in (ours, tantivy, bm25s)}
    return figures


def _compared(sides: dict[str, Side], mode: str, rounds: int) -> Figures:
    """Means over the questions of each one's median over the rounds; ratios by round show the spread."""
    for side in sides.values():
        side.ask(mode=mode)  # warm
    runs: dict[str, list[Figures]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            runs[name].append(side.ask(mode=mode))
    medians = {name: typical(found) for name, found in runs.items()}
    means = {name: statistics.fmean(ms) for name, ms in medians.items()}
    figures: Figures = {}
    for name, ms in medians.items():
        figures[f"{name}_ms"] = round(means[name], 4)
        figures[f"{name}_p99_ms"] = round(sorted(ms)[int(len(ms) * 0.99)], 4)
    peers = [name for name in sides if name != "ours"]
    for name in peers:
        figures[f"ratio_{name}"] = round(means[name] / means["ours"], 3)
        figures[f"ratio_{name}_by_round"] = spread(
            [
                statistics.median(peer["ms"]) / statistics.median(own["ms"])
                for peer, own in zip(runs[name], runs["ours"], strict=True)
            ]
        )
    figures["ratio_best"] = min(figures[f"ratio_{name}"] for name in peers)
    return figures


def typical(runs: Sequence[Figures]) -> list[float]:
    """Milliseconds of every question, the median of its rounds: other work on the machine comes and goes."""
    return [statistics.median(ms) for ms in zip(*(run["ms"] for run in runs), strict=True)]


def _agreement(ours: Figures, theirs: Figures) -> float:
    """Share of our ten best that are among their ten best; they know no headings and round no lengths."""
    shares = [
        len(set(own) & set(other)) / max(1, len(own))
        for own, other in zip(ours["ids"], theirs["ids"], strict=True)
    ]
    return round(statistics.fmean(shares), 4)
