"""Give memory that was freed back to the system: glibc keeps it for later, in every thread's arena.

Measured with the encoder and four threads: 1.13 GB stay after the work, 0.95 with two arenas and a trim.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

_M_ARENA_MAX = -8  # malloc.h
_PAUSE_S = 60.0


def limit_arenas(count: int = 2) -> None:
    """Have all threads share `count` heaps. Does nothing without glibc."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_M_ARENA_MAX, count)


def return_freed_memory() -> None:
    """Hand freed pages back (20–60 ms for a gigabyte). Does nothing without glibc."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


class Trimmer:
    """Trims once after each stretch of work, when nothing came for `pause_s`."""

    def __init__(self, pause_s: float = _PAUSE_S, trim: Callable[[], None] = return_freed_memory) -> None:
        self._worked = threading.Event()
        self._pause_s, self._trim = pause_s, trim

    def note(self) -> None:
        """Work was done."""
        self._worked.set()

    def start(self) -> None:
        """Watch in a daemon thread."""
        threading.Thread(target=self._run, name="memory-trim", daemon=True).start()

    def _run(self) -> None:
        while self._worked.wait():
            self._worked.clear()
            while self._worked.wait(self._pause_s):
                self._worked.clear()
            self._trim()
