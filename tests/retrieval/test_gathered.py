from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from retrieval.gathered import Gathered
from retrieval.vector_tier import Batch, Vector
from tests.support.waiting import until


class Slow:
    """Finds the first number of each vector; the first call waits until it is let go."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, vectors: Vector) -> Batch:
        self.sizes.append(len(vectors))
        self.begun.set()
        assert self.go.wait(20)
        if (vectors < 0).any():
            raise ValueError("negative")
        return vectors[:, :1], vectors[:, :1].astype(np.int64)


def asked(gathered: Gathered, many: Slow, numbers: list[int], keys: list[str]) -> list[int]:
    """Searches of that many threads; all but the first begin while the first runs."""
    with ThreadPoolExecutor(len(numbers)) as pool:

        def one(number: int, key: str) -> int:
            return int(gathered.search(key, np.full(2, number, np.float32), many)[1][0, 0])

        first = pool.submit(one, numbers[0], keys[0])
        assert many.begun.wait(20)
        others = [pool.submit(one, n, key) for n, key in zip(numbers[1:], keys[1:], strict=True)]
        until(lambda: len(gathered._waiting) == len(others))
        many.go.set()
        return [one.result(20) for one in (first, *others)]


def test_searches_that_wait_are_made_together_and_each_gets_its_own() -> None:
    many = Slow()
    assert asked(Gathered(1), many, [1, 2, 3, 4], ["a"] * 4) == [1, 2, 3, 4]
    assert many.sizes == [1, 3]


def test_searches_of_other_scopes_are_not_mixed() -> None:
    many = Slow()
    assert asked(Gathered(1), many, [1, 2, 3, 4], ["a", "b", "a", "b"]) == [1, 2, 3, 4]
    assert sorted(many.sizes) == [1, 1, 2]


def test_a_search_that_finds_a_place_waits_for_nobody() -> None:
    many = Slow()
    many.go.set()
    gathered = Gathered(1)
    for number in range(3):
        assert gathered.search("a", np.full(2, number, np.float32), many)[1][0, 0] == number
    assert many.sizes == [1, 1, 1]


def test_an_error_reaches_all_of_a_batch_and_none_after_it() -> None:
    many, gathered = Slow(), Gathered(1)
    many.go.set()
    with pytest.raises(ValueError, match="negative"):
        gathered.search("a", np.full(2, -1, np.float32), many)
    assert gathered.search("a", np.full(2, 7, np.float32), many)[1][0, 0] == 7


def test_many_threads_that_ask_all_the_time_get_their_own() -> None:
    gathered = Gathered(2)

    def many(vectors: Vector) -> Batch:
        return vectors[:, :1], vectors[:, :1].astype(np.int64)

    def ask(start: int) -> bool:
        return all(
            gathered.search(n % 3, np.full(2, n, np.float32), many)[1][0, 0] == n
            for n in range(start, start + 300)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(0, 8000, 1000)))
    assert gathered._free == 2
    assert gathered._waiting == []
