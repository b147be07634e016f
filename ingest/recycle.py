"""End a pool child that holds models and has had nothing to do for a while.

A child that linked a document's names keeps the recogniser, a tokenizer and sometimes the encoder, over a
gigabyte. The pool starts a small one in its place; its first document loads them again (3–8 s).
"""

from __future__ import annotations

import os
import threading
import time

import psutil
from celery import signals

from core.settings import get_settings
from core.worker import QUEUES, worker_name

_RECYCLED = 0x9B  # billiard's exit code of a child that ends by plan
_SMALL_BYTES = 400 << 20  # what one that has read nothing yet stays well below


class IdleWatch:
    """When this process last worked, and whether it works now."""

    def __init__(self) -> None:
        self._busy = 0
        self._since: float | None = None  # no document yet: nothing to give back

    def begin(self, **_: object) -> None:
        """A task begins."""
        self._busy += 1

    def end(self, sender: object = None, **_: object) -> None:
        """A task ended. A canary does not count as work."""
        self._busy -= 1
        if getattr(sender, "name", "") in QUEUES:
            self._since = time.monotonic()

    def idle_for(self) -> float:
        """Seconds since the last document's task; 0 while a task runs or when there was none."""
        return 0.0 if self._busy or self._since is None else time.monotonic() - self._since


def watch(state: IdleWatch, after_s: float) -> None:
    """Wait until the process is idle for `after_s` and large, then end it.

    A message that arrives in this moment is delivered again: it is acknowledged late.
    """
    while True:
        time.sleep(min(5.0, after_s / 4))
        if state.idle_for() > after_s and psutil.Process().memory_info().rss > _SMALL_BYTES:
            os._exit(_RECYCLED)


@signals.worker_process_init.connect
def _start(**_: object) -> None:
    if worker_name() != "ingest":
        return
    state = IdleWatch()
    signals.task_prerun.connect(state.begin, weak=False)
    signals.task_postrun.connect(state.end, weak=False)
    threading.Thread(
        target=watch, args=(state, get_settings().worker.ingest_idle_s), name="idle-watch", daemon=True
    ).start()
