"""`geo bench rebuild`: questions at a steady rate, alone, beside a rebuild, and with uploads beside both.

Questions are ranked by the real code (encoder, routes, fusion, rerank) at fixed times, whatever the answers
before them take, so a machine that falls behind is seen in the latencies. Workers and builds are processes
of their own, as nice as the product's; they have loaded what they need before a load begins. The three loads
take turns; ratios are of medians over the rounds.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

from core.errors import GeoError
from core.measured import machine, resident_bytes, versions
from core.settings import get_settings
from core.types import Scope
from retrieval.measure import LIBRARIES, SEED
from retrieval.measure_rebuild_churn import Churn, coming_and_going, warm
from retrieval.measure_rebuild_corpus import Corpus, prepared
from retrieval.scratch import ScratchStack

LIMIT = {"failed": 0, "stale": 0, "p99_ratio": 1.5, "p99_ratio_with_uploads": 3.0, "fresh_s": 1.0,
         "extra_memory_shards": 1.0}  # fmt: skip
_RATE = 20.0
_THREADS = 8
_WANTED = 8  # passages an answer is made of
_LOOK_EVERY = 10  # questions between two looks at the memory, which take milliseconds
_LOADS = ("alone", "rebuild", "rebuild_and_uploads")
_STAGES = ("ingest.normalize", "ingest.disambiguate", "ingest.purge")
_INDEX = ("retrieval.index", "retrieval.unindex", "retrieval.place")
Note = Callable[[str], None]
Figures = dict[str, Any]


@dataclass(slots=True)
class _Outcome:
    """What questions met under one load."""

    latencies_s: list[float] = field(default_factory=list[float])
    failed: int = 0
    stale: int = 0

    @property
    def told(self) -> str:
        """For people, while more rounds follow."""
        p50, p99 = (1000 * _quantile(self.latencies_s, share) for share in (0.5, 0.99))
        return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, {self.failed} failed, {self.stale} stale"

    @property
    def p99_s(self) -> float:
        return _quantile(self.latencies_s, 0.99)


def bench_rebuild(*, size: int, rounds: int, seconds: float, note: Note = print) -> Figures:
    """Measure what a rebuild costs those who ask meanwhile.

    Args:
        size: passages in the index, two in five outside the hot tier, a fifth of another tenant.
        rounds: how often each load is put on.
        seconds: length of one.
        note: told about progress.

    Raises:
        GeoError: a build did not end as published.
    """
    outcomes = {load: [_Outcome() for _ in range(rounds)] for load in _LOADS}
    churn, ends = Churn(), list[Figures]()
    peaks = dict.fromkeys(_LOADS, 0)
    with prepared(size, note) as (stack, corpus):
        asking = _Asking(stack, corpus, churn.deleted)
        note(f"{len(corpus.questions)} questions to begin with")
        asking.put(len(corpus.questions), _Outcome())  # caches are full, so memory stands still
        for at in range(rounds):
            for load in _LOADS:
                note(f"round {at + 1}: {load}")
                asking.peak = 0
                with _beside(load, stack, corpus, churn, ends, asking):
                    asking.put(seconds * _RATE, outcomes[load][at])
                peaks[load] = max(peaks[load], asking.peak)
                note(f"round {at + 1}: {load}: {outcomes[load][at].told}")
    _check(ends)
    own_extra = max(0, max(peaks.values()) - peaks["alone"])
    merged = [one for found in outcomes.values() for one in found]
    p99 = {load: statistics.median(one.p99_s for one in found) for load, found in outcomes.items()}
    builder = max(end["peak"] - end["before"] for end in ends)
    return {
        "queries": sum(len(one.latencies_s) for one in merged),
        "failed": sum(one.failed for one in merged),
        "stale": sum(one.stale for one in merged),
        "p99_ratio": round(p99["rebuild"] / p99["alone"], 3),
        "p99_ratio_with_uploads": round(p99["rebuild_and_uploads"] / p99["alone"], 3),
        "fresh_s": round(max(churn.fresh_s), 3) if churn.fresh_s else None,
        "fresh_median_s": round(statistics.median(churn.fresh_s), 3) if churn.fresh_s else None,
        "extra_memory_shards": round(max(own_extra, builder) / corpus.shard_bytes, 3),
        "extra_bytes": {"builder": builder, "reader": own_extra, "shard": corpus.shard_bytes},
        "p50_ms": {load: round(1000 * _median(found, 0.5), 1) for load, found in outcomes.items()},
        "p99_ms": {load: [round(1000 * one.p99_s, 1) for one in found] for load, found in outcomes.items()},
        "builds": sum(len(end["builds"]) for end in ends),
        "swap_s": [build["swap_s"] for end in ends for build in end["builds"] if "swap_s" in build],
        "documents": {"uploaded": churn.uploaded, "found": len(churn.fresh_s), "deleted": len(churn.deleted)},
        "machine": machine(),
        "versions": versions(*LIBRARIES),
        "seed": SEED,
        "sizes": {"passages": size, "rounds": rounds, "seconds": seconds, "rate_per_s": _RATE},
        "encoder": get_settings().packs.encoder,
        "peer": "none: the same questions without the rebuild",
        "limit": LIMIT,
    }


class _Asking:
    """Asks at fixed times and checks what is shown."""

    def __init__(self, stack: ScratchStack, corpus: Corpus, deleted: Mapping[str, float]) -> None:
        from retrieval.follow import follow
        from retrieval.tiers import get_reader

        follow(get_reader())  # as the retrieval worker does
        self._stack, self._corpus, self._reader = stack, corpus, get_reader()
        self._pool = ThreadPoolExecutor(_THREADS)
        self._asked = 0
        self._deleted = deleted
        self.peak = 0
        self._rows = get_settings().root / "geo.sqlite3"

    def put(self, count: float, outcome: _Outcome) -> None:
        """Ask `count` questions, `_RATE` in a second."""
        begun = time.monotonic()
        running = []
        for n in range(int(count)):
            due = begun + n / _RATE
            time.sleep(max(0.0, due - time.monotonic()))
            text = self._corpus.questions[self._asked % len(self._corpus.questions)]
            self._asked += 1
            running.append(self._pool.submit(self._ask, text, due, outcome))
            if n % _LOOK_EVERY == 0:
                self.peak = max(self.peak, resident_bytes(without=self._rows))
        for one in running:
            one.result()

    def find(self, text: str, document_id: str) -> bool:
        """Whether a question shows this document."""
        return document_id in {r.stored.passage.document_id for r in self._rank(text).ranked[:_WANTED]}

    def _ask(self, text: str, due: float, outcome: _Outcome) -> None:
        begun = time.monotonic()
        try:
            shown = {r.stored.passage.document_id for r in self._rank(text).ranked[:_WANTED]}
        except Exception:  # noqa: BLE001 - whatever fails is counted
            outcome.failed += 1
            return
        outcome.latencies_s.append(time.monotonic() - due)
        gone = {document for document, at in list(self._deleted.items()) if at < begun}
        if shown & (self._corpus.foreign | gone):
            outcome.stale += 1
        if not shown:
            outcome.failed += 1

    def _rank(self, text: str) -> Any:
        from retrieval.filters import Filters
        from retrieval.ranking import rank

        scope = Scope(self._stack.scope.tenant_id, (self._stack.collection_id,), "bench")
        return rank(self._stack.db, self._reader, scope, text=text, filters=Filters(), wanted=_WANTED)


@contextmanager
def _beside(
    load: str, stack: ScratchStack, corpus: Corpus, churn: Churn, ends: list[Figures], asking: _Asking
) -> Generator[None]:
    """The load beside the questions."""
    if load == "alone":
        yield
        return
    if load == "rebuild":
        with _child("builds") as builds:
            yield
    else:
        with _child("work", *_STAGES), _child("work", *_INDEX):
            warm(stack, churn)
            with _child("builds") as builds, coming_and_going(stack, churn, asking.find):
                yield
    ends.append(builds)
    if corpus.shard_bytes <= 0:
        raise GeoError("The index holds no vectors.")


@contextmanager
def _child(*arguments: str) -> Generator[Figures]:
    """One process beside; what it printed at its end is in the dictionary after the block."""
    command = [sys.executable, "-m", "retrieval.measure_rebuild_child", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own module
    found: Figures = {}
    try:
        _line(process.stdout)
        yield found
        assert process.stdin is not None
        process.stdin.close()
        found.update(json.loads(_line(process.stdout)))
        process.wait(timeout=120)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _line(stream: IO[str] | None) -> str:
    assert stream is not None
    while line := stream.readline():
        if line.strip() == "ready" or line.startswith("{"):
            return line
    raise GeoError("A process beside the questions ended early; its reason stands above.")


def _check(ends: Sequence[Figures]) -> None:
    for end in ends:
        for build in end["builds"]:
            if build["status"] != "published":
                raise GeoError(f"A build ended as {build['status']}: {build}")


def _median(outcomes: Sequence[_Outcome], share: float) -> float:
    return statistics.median(_quantile(one.latencies_s, share) for one in outcomes)


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
