"""Questions at random on several processes that answer, as an operator runs several retrieval workers."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from retrieval.measure_lexical import Side

_SEED = 1


def load_over(sides: Sequence[Side], questions: int, *, share: float, arrivals: int) -> dict[str, Any]:
    """Ask at a share of what the processes get through together; waiting counts.

    Args:
        sides: processes that answer `{"mode": "one", "number": n}`, one question at a time each.
        questions: how many there are; they are asked in turn.
        share: of the rate at which they answer when they always have a question.
        arrivals: questions that come, at exponential intervals.

    Returns:
        `per_s`, `p50_ms`, `p99_ms` and their ratio.
    """
    idle: SimpleQueue[Side] = SimpleQueue()
    for side in sides:
        idle.put(side)

    def answered(number: int, due: float) -> float:
        side = idle.get()
        try:
            side.ask(mode="one", number=number)
        finally:
            idle.put(side)
        return (time.perf_counter() - due) * 1000

    with ThreadPoolExecutor(len(sides)) as pool:
        list(pool.map(lambda n: answered(n, 0.0), range(questions)))  # warm
        begun = time.perf_counter()
        list(pool.map(lambda n: answered(n, 0.0), range(2 * questions)))
        rate = share * 2 * questions / (time.perf_counter() - begun)
        source = random.Random(_SEED)  # noqa: S311 - arrival times, no secret
        due, waiting = time.perf_counter(), list[Any]()
        for number in range(arrivals):
            due += source.expovariate(rate)
            time.sleep(max(0.0, due - time.perf_counter()))
            waiting.append(pool.submit(answered, number, due))
        ms = sorted(one.result() for one in waiting)
    p50, p99 = ms[len(ms) // 2], ms[int(len(ms) * 0.99)]
    return {
        "per_s": round(rate, 1), "p50_ms": round(p50, 2), "p99_ms": round(p99, 2),
        "p99_over_p50": round(p99 / p50, 2),
    }  # fmt: skip
