from __future__ import annotations

import heapq
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from generation.turns import engine_priority

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HEAD_START_S = 60.0


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def number(asked_s: float, priority: str) -> int:
    return engine_priority(at(asked_s), priority, head_start_s=HEAD_START_S)


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_number_orders_as_said(first: float, second: float) -> None:
    if second - first > 0.002:  # numbers are whole milliseconds
        assert number(first, "interactive") < number(second, "interactive")
        assert number(first, "batch") < number(second, "batch")
    assert number(first, "interactive") < number(first, "batch")
    if abs(second - first - HEAD_START_S) > 0.002:
        overtakes = number(second, "interactive") < number(first, "batch")
        assert overtakes == (second - first < HEAD_START_S)


def test_the_number_fits_the_engine() -> None:
    assert number(0, "batch") < 2**63


@given(
    batch=st.lists(st.integers(0, 600), min_size=1, max_size=20),
    gap_s=st.sampled_from([0.5, 1.0, 2.0]),
)
def test_nothing_starves_at_an_engine_that_interactive_requests_keep_full(
    batch: list[int], gap_s: float
) -> None:
    """An interactive request comes every `gap_s`, one second of work each; batch ones come between."""
    arrivals = [(float(t), "batch") for t in batch]
    arrivals += [(n * gap_s, "interactive") for n in range(int(900 / gap_s))]
    arrivals.sort()
    waiting: list[tuple[int, float, str]] = []
    now, begun = 0.0, dict[float, float]()
    while arrivals or waiting:
        while arrivals and arrivals[0][0] <= now:
            asked, priority = arrivals.pop(0)
            heapq.heappush(waiting, (number(asked, priority), asked, priority))
        if not waiting:
            now = arrivals[0][0]
            continue
        _, asked, priority = heapq.heappop(waiting)
        if priority == "batch":
            before = sum(1 for t in batch if t < asked)
            # Whatever was asked within the head start may go first, and so may the batch ones before.
            bound = asked + HEAD_START_S
            work_until_then = (bound / gap_s + 1) + before + len(batch)
            assert now <= max(bound, work_until_then) + 1
            begun[asked] = now
        now += 1.0
    assert set(begun) == {float(t) for t in batch}
