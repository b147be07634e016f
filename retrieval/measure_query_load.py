"""Questions that come at random, at a share of what whoever answers them gets through; waiting counts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from retrieval.measure_lexical import Side

SHARE = 0.7
_ARRIVALS = 400
_PASSES = 2  # over all questions, to see what is got through
_SEED = 1


def at_random(answer: Callable[[int], object], questions: int, *, at_once: int) -> dict[str, Any]:
    """Ask at `SHARE` of the rate that is reached when a question always waits.

    Args:
        answer: answers a question by its number; called by `at_once` threads.
        questions: how many there are; they are asked in turn.
        at_once: threads.

    Returns:
        `per_s`, `p50_ms`, `p99_ms` and their ratio, from when a question came.
    """

    def timed(number: int, due: float) -> float:
        answer(number % questions)
        return (time.perf_counter() - due) * 1000

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(answer, range(questions)))  # warm
        begun = time.perf_counter()
        list(pool.map(answer, [*range(questions)] * _PASSES))
        rate = SHARE * _PASSES * questions / (time.perf_counter() - begun)
        source = random.Random(_SEED)  # noqa: S311 - arrival times, no secret
        due, waiting = time.perf_counter(), list[Any]()
        for number in range(_ARRIVALS):
            due += source.expovariate(rate)
            time.sleep(max(0.0, due - time.perf_counter()))
            waiting.append(pool.submit(timed, number, due))
        ms = sorted(one.result() for one in waiting)
    p50, p99 = ms[len(ms) // 2], ms[int(len(ms) * 0.99)]
    return {
        "per_s": round(rate, 1), "p50_ms": round(p50, 2), "p99_ms": round(p99, 2),
        "p99_over_p50": round(p99 / p50, 2),
    }  # fmt: skip


def over_processes(sides: Sequence[Side], questions: int) -> dict[str, Any]:
    """`at_random` over processes that answer one question at a time each, as several retrieval workers do."""
    idle: SimpleQueue[Side] = SimpleQueue()
    for side in sides:
        idle.put(side)

    def answer(number: int) -> None:
        side = idle.get()
        side.ask(mode="one", number=number)
        idle.put(side)  # not after an error: that side has ended

    return at_random(answer, questions, at_once=len(sides))
