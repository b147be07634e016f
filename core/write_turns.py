"""Turns for the writers of one process: SQLite takes one writer at a time and keeps no queue of its own.

Who finds its lock taken looks again after pauses of up to 100 ms. Among many threads chance decides then, and
the unlucky one gives up (`database is locked`) although the lock was free hundreds of times. Here the threads
of a process stand in line, and only the first one looks for the lock, beside the first of each other process.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager


class WriteTurns:
    """One thread at a time, in the order in which they came.

    The turns order, and the database's lock excludes: a turn that was never passed on (its thread was struck
    by a signal's exception) holds up the line once, for `patience_s`, and no longer.

    Args:
        patience_s: after so long without any turn passed on, a waiting thread goes on without.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._line: deque[threading.Event] = deque()
        self._taken = False
        self._passed_on = 0

    @contextmanager
    def turn(self) -> Generator[None]:
        """Wait for the turn, and pass it on at the end."""
        self._wait()
        try:
            yield
        finally:
            self._pass_on()

    def _wait(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            mine, passed_on = threading.Event(), self._passed_on
            self._line.append(mine)
        try:
            while not mine.wait(self._patience_s):
                with self._lock:
                    if passed_on == self._passed_on:
                        self._leave(mine)
                        return
                    passed_on = self._passed_on
        except BaseException:
            with self._lock:
                called = not self._leave(mine)
            if called:
                self._pass_on()
            raise

    def _leave(self, mine: threading.Event) -> bool:
        """Leave the line; False where the turn has come by now. Called with the lock held."""
        if mine.is_set():
            return False
        self._line.remove(mine)
        return True

    def _pass_on(self) -> None:
        with self._lock:
            self._passed_on += 1
            if self._line:
                self._line.popleft().set()
            else:
                self._taken = False
