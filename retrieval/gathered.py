"""Searches that wait for a processor are made together.

As many searches run at once as there are processors. One that comes while all are taken waits; whoever is
done hands its place to those that wait by then, and they are one batch, which costs less for each than one
search does. A search that finds a place free begins at once, alone: nobody waits for company.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np

from retrieval.vector_tier import Batch, Vector

_AT_ONCE = 64


@dataclass(slots=True, eq=False)
class _Asked:
    """A search that waits: for its result, or to search for itself and those that came after it."""

    key: Hashable
    vector: Vector
    woken: threading.Event = field(default_factory=threading.Event)
    batch: list[_Asked] | None = None
    found: Batch | None = None
    error: BaseException | None = None


class Gathered:
    """Makes batches of single searches. Any number of threads may ask.

    Args:
        places: searches that run at once; the processors when omitted.
    """

    def __init__(self, places: int | None = None) -> None:
        self._free = places or os.cpu_count() or 1
        self._waiting: list[_Asked] = []
        self._lock = threading.Lock()

    def search(self, key: Hashable, vector: Vector, many: Callable[[Vector], Batch]) -> Batch:
        """What `many` finds for a vector.

        Args:
            key: equal for searches that may be made together.
            vector: [d].
            many: searches for [n, d] at once; any of those with an equal key stands for the others. An error
                of it is every asker's.
        """
        mine = _Asked(key, vector)
        with self._lock:
            if self._free:
                self._free -= 1
                mine.batch = [mine]
            else:
                self._waiting.append(mine)
        if mine.batch is None:
            mine.woken.wait()
        if mine.batch is not None:
            try:
                self._run(mine.batch, many)
            finally:
                self._hand_on()
        if mine.error is not None:
            raise mine.error
        assert mine.found is not None
        return mine.found

    def _run(self, batch: list[_Asked], many: Callable[[Vector], Batch]) -> None:
        try:
            scores, ids = many(np.stack([one.vector for one in batch]))
            for number, one in enumerate(batch):
                one.found = scores[number : number + 1], ids[number : number + 1]
        except BaseException as error:
            for one in batch:
                one.error = error
            raise
        finally:
            for one in batch[1:]:
                one.woken.set()

    def _hand_on(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            first = self._waiting[0]
            batch = [one for one in self._waiting if one.key == first.key][:_AT_ONCE]
            taken = set(map(id, batch))
            self._waiting = [one for one in self._waiting if id(one) not in taken]
            first.batch = batch
        first.woken.set()
