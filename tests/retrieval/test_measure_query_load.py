"""Load that comes at random: every question is asked, and waiting counts."""

from __future__ import annotations

import sys
import threading
import time

from retrieval.measure_lexical import Side
from retrieval.measure_query_load import at_random, over_processes

ECHO = "import sys\nprint('{}', flush=True)\nfor line in sys.stdin: print(line, end='', flush=True)"


def test_waiting_for_the_questions_before_counts() -> None:
    asked, lock = list[int](), threading.Lock()

    def answer(number: int) -> None:
        with lock:
            asked.append(number)
            time.sleep(0.001)

    one = at_random(answer, 20, at_once=2)
    assert len(asked) == 20 + 2 * 20 + 400
    assert set(asked) == set(range(20))
    assert one["per_s"] <= 700, "two threads behind one lock answer a thousand a second at most"
    assert one["p99_ms"] > 2 * 1.0, "some waited for another"


def test_processes_that_are_idle_are_asked() -> None:
    command = [sys.executable, "-c", ECHO]
    with Side("a", command) as first, Side("b", command) as second:
        figures = over_processes((first, second), 5)
    assert figures["per_s"] > 0
    assert 0 < figures["p50_ms"] <= figures["p99_ms"]
