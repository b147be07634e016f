"""The part of the worker that batch answers may take, so that an interactive one finds a place."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import select

from core.db import Database, put_in_outbox
from core.errors import GeoError
from core.jobs import waiting_jobs
from core.models import JobRow
from core.worker import Task

log = logging.getLogger(__name__)


class BatchRoom:
    """Counts the batch answers of this process.

    A batch job that finds no room is not claimed: its message is spent and its row waits. Whoever leaves the
    room rings for the oldest that waits; the reaper rings as well, so a lost ring only costs time.

    Args:
        places: batch answers at a time.
    """

    def __init__(self, places: int) -> None:
        self._free = threading.Semaphore(places)

    @contextmanager
    def place(self, db: Database, job_id: str) -> Generator[bool]:
        """Whether the job may be worked on now; its place is given back at the end."""
        with db.read() as session:
            gives_way = bool(session.scalar(select(JobRow.gives_way).where(JobRow.id == job_id)))
        if not gives_way:
            yield True
        elif not self._free.acquire(blocking=False):
            yield False
        else:
            try:
                yield True
            finally:
                self._free.release()
                self._ring_next(db)

    def _ring_next(self, db: Database) -> None:
        try:
            for job_id in waiting_jobs(db, Task.ANSWER, 1, giving_way=True):
                with db.write() as session:
                    put_in_outbox(session, Task.ANSWER.value, job_id, True)
        except GeoError:
            log.warning("next_batch_answer_not_rung", exc_info=True)
