from __future__ import annotations

import threading
import time

from core.memory import Trimmer


def test_memory_is_trimmed_once_after_work_and_not_during_it() -> None:
    trimmed = threading.Semaphore(0)
    trimmer = Trimmer(pause_s=0.4, trim=trimmed.release)
    trimmer.start()
    assert not trimmed.acquire(timeout=0.6)  # no work, no trim
    for _ in range(10):
        trimmer.note()
        time.sleep(0.05)
        assert not trimmed.acquire(blocking=False)
    assert trimmed.acquire(timeout=5)
    assert not trimmed.acquire(timeout=0.6)
    trimmer.note()
    assert trimmed.acquire(timeout=5)
