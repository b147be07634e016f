"""Routes under a deadline: failures are reported, an outage is not an empty answer, filters never starve."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from core.errors import TransientError
from core.metrics import ROUTE_EMPTY_STREAK, ROUTE_FAILURES
from core.types import Hit, Route
from retrieval.hits import ranked_hits
from retrieval.routes import ALARM_STREAK, Recalled, RoutePool, search_until_enough


@pytest.fixture
def pool() -> RoutePool:
    return RoutePool(6)


def hits(route: Route, *ids: int) -> list[Hit]:
    return [Hit(i, route, rank, 1.0 / rank) for rank, i in enumerate(ids, 1)]


def failures(route: Route, why: str) -> float:
    return ROUTE_FAILURES.labels(route.value, why)._value.get()


def test_every_route_is_heard_and_reported(pool: RoutePool) -> None:
    recalled = pool.recall(
        {Route.DENSE: lambda: hits(Route.DENSE, 1, 2), Route.LEXICAL: lambda: []}, deadline_s=5
    )
    assert [h.passage_id for h in recalled.hits[Route.DENSE]] == [1, 2]
    assert recalled.reports[Route.LEXICAL].state == "ok"
    assert recalled.reports[Route.LEXICAL].hits == 0


def test_a_dead_route_is_reported_and_counted_and_the_others_answer(pool: RoutePool) -> None:
    def dead() -> Sequence[Hit]:
        raise OSError("segment file is gone")

    before = failures(Route.DENSE, "failed")
    recalled = pool.recall({Route.DENSE: dead, Route.LEXICAL: lambda: hits(Route.LEXICAL, 3)}, deadline_s=5)
    assert Route.DENSE not in recalled.hits
    assert recalled.reports[Route.DENSE].state == "failed"
    assert "segment file is gone" in recalled.reports[Route.DENSE].error
    assert [h.passage_id for h in recalled.hits[Route.LEXICAL]] == [3]
    assert failures(Route.DENSE, "failed") == before + 1


def test_a_late_route_is_left_behind_at_the_deadline(pool: RoutePool) -> None:
    release = threading.Event()

    def late() -> Sequence[Hit]:
        release.wait(10)
        return hits(Route.DENSE, 1)

    before, start = failures(Route.DENSE, "late"), time.perf_counter()
    recalled = pool.recall({Route.DENSE: late, Route.LEXICAL: lambda: hits(Route.LEXICAL, 3)}, deadline_s=0.2)
    assert time.perf_counter() - start < 2
    release.set()
    assert recalled.reports[Route.DENSE].state == "late"
    assert Route.DENSE not in recalled.hits
    assert failures(Route.DENSE, "late") == before + 1


def test_a_slow_route_keeps_no_thread_from_the_others() -> None:
    """More slow routes than a question has threads: the quick one behind them is heard all the same."""
    release = threading.Event()

    def slow() -> Sequence[Hit]:
        release.wait(10)
        return []

    searches = {
        Route.DENSE: slow, Route.LEXICAL: slow, Route.ENTITY: slow, Route.CODE: lambda: hits(Route.CODE, 7)
    }  # fmt: skip
    recalled = RoutePool(8).recall(searches, deadline_s=0.3)
    release.set()
    assert [h.passage_id for h in recalled.hits[Route.CODE]] == [7]
    assert {route for route, report in recalled.reports.items() if report.state == "late"} == {
        Route.DENSE, Route.LEXICAL, Route.ENTITY,
    }  # fmt: skip


def test_a_route_that_got_no_thread_before_the_deadline_does_not_begin_after_it() -> None:
    release, begun = threading.Event(), list[str]()
    pool = RoutePool(1)

    def slow() -> Sequence[Hit]:
        release.wait(10)
        return hits(Route.DENSE, 1)

    def noted() -> Sequence[Hit]:
        begun.append("lexical")
        return hits(Route.LEXICAL, 2)

    with pytest.raises(TransientError, match="no result within 50 ms"):
        pool.recall({Route.DENSE: slow, Route.LEXICAL: noted}, deadline_s=0.05)
    release.set()
    recalled = pool.recall({Route.ENTITY: lambda: hits(Route.ENTITY, 3)}, deadline_s=5)
    assert recalled.reports[Route.ENTITY].state == "ok"
    assert begun == []


def test_many_questions_at_once_have_each_their_own_hits(pool: RoutePool) -> None:
    found: list[tuple[int, Recalled]] = []

    def ask(number: int) -> None:
        for n in range(number, number + 50):
            searches = {route: lambda route=route, n=n: hits(route, n) for route in Route}
            found.append((n, pool.recall(searches, deadline_s=5)))

    threads = [threading.Thread(target=ask, args=(1000 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 400
    for n, recalled in found:
        assert {route: [h.passage_id for h in own] for route, own in recalled.hits.items()} == {
            route: [n] for route in Route
        }


def test_a_route_that_finds_nothing_while_others_do_is_counted_and_told(
    pool: RoutePool, caplog: pytest.LogCaptureFixture
) -> None:
    def ask(*dense: int) -> Recalled:
        return pool.recall(
            {Route.DENSE: lambda: hits(Route.DENSE, *dense), Route.LEXICAL: lambda: hits(Route.LEXICAL, 3)},
            deadline_s=5,
        )

    for n in range(1, ALARM_STREAK):
        assert ask().reports[Route.DENSE].empty_streak == n
    assert "route_empty" not in caplog.text
    report = ask().reports[Route.DENSE]
    assert report.as_json()["empty_streak"] == ALARM_STREAK
    assert ROUTE_EMPTY_STREAK.labels("dense")._value.get() == ALARM_STREAK
    assert caplog.text.count("route_empty") == 1
    assert ask().reports[Route.LEXICAL].empty_streak == 0
    assert caplog.text.count("route_empty") == 1
    assert "empty_streak" not in ask(1).reports[Route.DENSE].as_json()
    assert ROUTE_EMPTY_STREAK.labels("dense")._value.get() == 0


def test_an_empty_corpus_is_no_alarm(pool: RoutePool) -> None:
    nothing = {route: (lambda: list[Hit]()) for route in (Route.DENSE, Route.LEXICAL)}
    for _ in range(ALARM_STREAK + 1):
        assert pool.recall(nothing, deadline_s=5).reports[Route.DENSE].empty_streak == 0


def test_all_routes_dead_is_an_outage_that_names_them(pool: RoutePool) -> None:
    def dead() -> Sequence[Hit]:
        raise RuntimeError("no index")

    with pytest.raises(TransientError, match=r"dense: .*no index.*lexical: .*no index"):
        pool.recall({Route.DENSE: dead, Route.LEXICAL: dead}, deadline_s=5)


def test_ranks_follow_scores_ties_follow_ids_and_repeats_count_once() -> None:
    ranked = ranked_hits(Route.DENSE, [(7, 0.5), (3, 0.9), (5, 0.5), (3, 0.4)])
    assert [(h.passage_id, h.rank, h.score) for h in ranked] == [(3, 1, 0.9), (5, 2, 0.5), (7, 3, 0.5)]


def test_a_rare_visible_passage_is_found_however_many_hidden_ones_rank_above_it() -> None:
    everything = [(i, 1.0 / (i + 1)) for i in range(1000)]
    asked: list[int] = []

    def search(n: int) -> list[tuple[int, float]]:
        asked.append(n)
        return everything[:n]

    found = search_until_enough(search, lambda ids: {990, 995} & set(ids), 5)
    assert [i for i, _ in found] == [990, 995]
    assert asked == [5, 40, 320, 2560]


def test_an_unfiltered_search_asks_once() -> None:
    asked: list[int] = []

    def search(n: int) -> list[tuple[int, float]]:
        asked.append(n)
        return [(i, 1.0) for i in range(n)]

    assert len(search_until_enough(search, set, 5)) == 5
    assert asked == [5]
