"""The routes of recall, run beside each other with one deadline (decision 6).

Whatever a route finds is cut down to what the scope and the filters may see before it leaves here. A route
that fails or is late is reported with its reason and counted; it is never silently dropped, and a query
whose every route failed is an outage, not an empty answer.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from core.errors import TransientError
from core.metrics import ROUTE_EMPTY_STREAK, ROUTE_FAILURES, ROUTE_HITS, ROUTE_SECONDS
from core.retry import classify
from core.types import Hit, Route

log = logging.getLogger(__name__)

RouteSearch = Callable[[], Sequence[Hit]]
ALARM_STREAK = 20  # as in deploy/prometheus/alerts.yml
_PROCESSORS = os.cpu_count() or 1
_PATIENCE_S = 0.02  # ten times what a route takes
_NEVER_EMPTY = (Route.DENSE, Route.LEXICAL)


@dataclass(frozen=True, slots=True)
class RouteReport:
    """How one route fared.

    Attributes:
        state: `ok`, `partial` (a part of its index is damaged and left out, or it failed when it was asked
            again), `failed` or `late`.
        error: set unless the state is `ok`.
        empty_streak: questions in a row for which the route found nothing and another one something.
    """

    state: str
    hits: int
    ms: float
    error: str = ""
    empty_streak: int = 0

    def as_json(self) -> dict[str, Any]:
        """For the stored trace and the wire."""
        told = {"state": self.state, "hits": self.hits, "ms": round(self.ms, 2), "error": self.error or None}
        return {**told, "empty_streak": self.empty_streak} if self.empty_streak else told


@dataclass(frozen=True, slots=True)
class Recalled:
    """Hits per route (best first, ranks from 1) and a report for every route that was asked."""

    hits: Mapping[Route, Sequence[Hit]]
    reports: Mapping[Route, RouteReport] = field(default_factory=dict[Route, RouteReport])


class RoutePool:
    """Threads for routes. A route that ran late keeps its thread until it ends, so the pool has spares.

    A route is a millisecond or less, and half of it holds the interpreter's lock: more threads than
    processors hand that lock to and fro and finish later. So a question has its share of the processors as
    threads, and each takes the next route that nobody has begun. Where one keeps them for longer, what has
    not begun gets threads of its own.
    """

    def __init__(self, threads: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="route")
        self._watch = EmptyWatch()
        self._asking = 0
        self._lock = threading.Lock()

    def recall(self, searches: Mapping[Route, RouteSearch], *, deadline_s: float) -> Recalled:
        """Run all routes at once and wait for each until the deadline.

        Args:
            searches: what to run per route; each returns hits, best first.
            deadline_s: seconds from now, for all routes together.

        Raises:
            TransientError: every route failed or was late.
        """
        round_ = _Round(searches)
        with self._counted() as asking:
            threads = min(len(searches), max(1, _PROCESSORS // asking))
            self._run(round_, threads, deadline_s)
        hits: dict[Route, Sequence[Hit]] = {}
        reports: dict[Route, RouteReport] = {}
        for route, outcome in round_.ended().items():
            found, report = _told(route, outcome, deadline_s)
            reports[route] = report
            if found is not None:
                hits[route] = found
        if searches and not hits:
            reasons = "; ".join(f"{route}: {report.error}" for route, report in reports.items())
            raise TransientError(f"Every route of the search failed ({reasons}).")
        return Recalled(hits, self._watch.seen(hits, reports))

    def _run(self, round_: _Round, threads: int, deadline_s: float) -> None:
        """Return when all routes have ended, or at the deadline."""
        for _ in range(threads):
            self._executor.submit(round_.work)
        patience = min(_PATIENCE_S, deadline_s)
        if round_.wait(patience):
            return
        for _ in range(round_.not_begun):
            self._executor.submit(round_.work)
        round_.wait(deadline_s - patience)

    @contextmanager
    def _counted(self) -> Generator[int]:
        """How many questions are asked now, this one included."""
        with self._lock:
            self._asking += 1
            asking = self._asking
        try:
            yield asking
        finally:
            with self._lock:
                self._asking -= 1


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How a route ended: with hits or an error; with neither when it has not."""

    ms: float = 0.0
    hits: Sequence[Hit] | None = None
    error: Exception | None = None


class _Round:
    """The routes of one question, taken by threads one after another."""

    def __init__(self, searches: Mapping[Route, RouteSearch]) -> None:
        self._waiting = deque(searches.items())
        self._outcomes: dict[Route, _Outcome] = dict.fromkeys(searches, _Outcome())
        self._left = len(searches)
        self._lock, self._all_ended = threading.Lock(), threading.Event()

    @property
    def not_begun(self) -> int:
        """Routes that no thread has taken."""
        return len(self._waiting)

    def work(self) -> None:
        """Search until no route is left that nobody has begun."""
        while True:
            try:
                route, search = self._waiting.popleft()
            except IndexError:
                return
            begun = time.perf_counter()
            try:
                found, error = search(), None
            except Exception as raised:  # any failure of one route is a report, not the query's end
                log.warning("route_failed", extra={"route": route.value}, exc_info=raised)
                found, error = None, raised
            outcome = _Outcome((time.perf_counter() - begun) * 1000, found, error)
            with self._lock:
                self._outcomes[route] = outcome
                self._left -= 1
                if not self._left:
                    self._all_ended.set()

    def wait(self, seconds: float) -> bool:
        """Whether all routes end within so many seconds."""
        return self._left == 0 or self._all_ended.wait(seconds)

    def ended(self) -> dict[Route, _Outcome]:
        """How each route stands; one that has not begun does not begin any more."""
        self._waiting.clear()
        with self._lock:
            return dict(self._outcomes)


class EmptyWatch:
    """Notices a route that finds nothing again and again while others do: a dead index raises no error.

    An index of another model, or one that was emptied, answers every search in good order with nothing.
    Entity and code routes are left out: most questions name no entity and hold no code.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streaks = dict.fromkeys(_NEVER_EMPTY, 0)

    def seen(
        self, hits: Mapping[Route, Sequence[Hit]], reports: Mapping[Route, RouteReport]
    ) -> dict[Route, RouteReport]:
        """Count one question; returns the reports with the streaks."""
        told = dict(reports)
        if not any(hits.values()):  # nothing to be found, or nobody could
            return told
        with self._lock:
            for route in self._streaks.keys() & hits.keys():
                streak = self._streaks[route] = 0 if hits[route] else self._streaks[route] + 1
                ROUTE_EMPTY_STREAK.labels(route.value).set(streak)
                if streak == ALARM_STREAK:
                    log.error("route_empty", extra={"route": route.value, "questions": streak})
                told[route] = replace(told[route], empty_streak=streak)
        return told


def _told(route: Route, outcome: _Outcome, deadline_s: float) -> tuple[Sequence[Hit] | None, RouteReport]:
    if outcome.error is not None:
        return None, _failure(route, "failed", classify(outcome.error).detail, 0.0)
    if outcome.hits is None:
        return None, _failure(route, "late", f"no result within {deadline_s * 1000:.0f} ms", deadline_s)
    ROUTE_SECONDS.labels(route.value).observe(outcome.ms / 1000)
    ROUTE_HITS.labels(route.value).observe(len(outcome.hits))
    return outcome.hits, RouteReport("ok", len(outcome.hits), outcome.ms)


def _failure(route: Route, state: str, error: str, seconds: float) -> RouteReport:
    ROUTE_FAILURES.labels(route.value, state).inc()
    return RouteReport(state, 0, seconds * 1000, error)


def without_parts(recalled: Recalled, route: Route, refused: Mapping[str, str]) -> Recalled:
    """What was recalled, with the parts of a route's index that were left out told in its report."""
    if not refused:
        return recalled
    return partly(
        recalled, route, "; ".join(f"the {part} tier is refused ({why})" for part, why in refused.items())
    )


def partly(recalled: Recalled, route: Route, error: str) -> Recalled:
    """What was recalled, with a route that found less than it should told in its report and counted."""
    report = recalled.reports.get(route)
    if report is None or report.state != "ok":
        return recalled
    ROUTE_FAILURES.labels(route.value, "partial").inc()
    told = replace(report, state="partial", error=error)
    return Recalled(recalled.hits, {**recalled.reports, route: told})


def search_until_enough(
    search: Callable[[int], Sequence[tuple[int, float]]],
    keep: Callable[[Sequence[int]], set[int]],
    k: int,
    *,
    growth: int = 8,
) -> list[tuple[int, float]]:
    """The best `k` results that `keep` lets through, widening the search until there are enough.

    A filter that the index does not know is applied to its results; asking for `growth` times more after
    each try finds the k best visible ones however rare they are.

    Args:
        search: `search(n)` gives the best n, best first; fewer than n means that there are no more.
        keep: the ids among the given ones that may be shown.
        k: results wanted.
        growth: factor between tries, above 1.
    """
    wanted = k
    while True:
        found = search(wanted)
        visible = keep([passage_id for passage_id, _ in found])
        kept = [(passage_id, score) for passage_id, score in found if passage_id in visible]
        if len(kept) >= k or len(found) < wanted:
            return kept[:k]
        wanted *= growth


_pool: RoutePool | None = None
_pool_lock = threading.Lock()


def get_route_pool(threads: int) -> RoutePool:
    """The process's pool, made on first use."""
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = RoutePool(threads)
        return _pool
