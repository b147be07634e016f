"""Load new generations beside the questions: the one that would come first after a publish waits for none.

Loading a hundred thousand vectors takes tenths of a second. A process that answers questions therefore looks
for a new generation by itself; questions are answered from the one before until the new one is loaded.
"""

from __future__ import annotations

import logging
import threading
import weakref

from retrieval.tiers import IndexReader

log = logging.getLogger(__name__)

EVERY_S = 0.1  # one `stat`


def follow(reader: IndexReader) -> threading.Event:
    """Keep the reader at the newest generation, in a thread that ends with it.

    Returns:
        Set it to end the thread earlier.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_follow, args=(weakref.ref(reader), stop), daemon=True, name="follow")
    thread.start()
    return stop


def _follow(followed: weakref.ref[IndexReader], stop: threading.Event) -> None:
    failed = False
    while not stop.wait(EVERY_S):
        if (reader := followed()) is None:
            return
        try:
            reader.snapshot()
            failed = False
        except Exception:  # the next question meets it too and says so
            if not failed:
                log.exception("generation_not_loaded")
            failed = True
        del reader
