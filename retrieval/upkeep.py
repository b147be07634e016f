"""The beat's entries that keep tiers as they should be: uses counted, moves made, recall watched, merges.

They run in the maintenance worker, apart from every query. A round that is still at work when the next one
is due goes on alone.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager

from core.db import get_database, utcnow
from core.memory import return_freed_memory
from core.worker import MERGE, OBSERVE, TEND, get_app
from retrieval.access import count_uses
from retrieval.moves import settle_moves
from retrieval.placement_service import round_of_moves

log = logging.getLogger(__name__)
_observing, _tending, _merging = threading.Lock(), threading.Lock(), threading.Lock()


@get_app().task(name=OBSERVE)
def observe() -> None:
    """Settle moves that have arrived, and measure the recall of sampled questions."""
    with _alone(_observing) as free:
        if free:
            db = get_database()
            with db.write() as session:
                settle_moves(session, utcnow())
            from retrieval.recall_round import recall_round

            recall_round(db)


@get_app().task(name=TEND)
def tend() -> None:
    """Count the uses of documents and move them where they belong."""
    with _alone(_tending) as free:
        if free:
            db = get_database()
            counted = count_uses(db)
            begun = round_of_moves(db)
            if begun:
                log.info("moves_begun", extra={"documents": begun, "queries_counted": counted})


@get_app().task(name=MERGE)
def merge() -> None:
    """Merge hot segments, so that a question searches few."""
    with _alone(_merging) as free:
        if free:
            from retrieval.side_merge import merge_aside

            if merge_aside(get_database()):
                return_freed_memory()


@contextmanager
def _alone(lock: threading.Lock) -> Generator[bool]:
    free = lock.acquire(blocking=False)
    try:
        yield free
    finally:
        if free:
            lock.release()
