"""The right to write index files: one holder at a time, with a number that only grows.

A holder that was stopped past its lease finds a higher number in the row and publishes nothing.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from core.db import Database, utcnow
from core.errors import GeoError, LeaseLost, TransientError
from core.models import LeaseRow

log = logging.getLogger(__name__)

INDEX_WRITER = "index_writer"
TTL_S = 20.0  # a killed writer is replaced after this
WAIT_S = 60.0  # above the TTL, so that a dead holder never fails a waiting job


@dataclass(frozen=True, slots=True)
class WriterLease:
    """A held right. `fence` is higher than that of every earlier holder."""

    name: str
    fence: int

    def check(self, session: Session) -> None:
        """Make the caller's transaction depend on the lease: it is still ours until the commit.

        Raises:
            LeaseLost: another writer took over; roll back.
        """
        row = session.scalar(select(LeaseRow).where(LeaseRow.name == self.name).with_for_update())
        if row is None or row.fence != self.fence:
            raise LeaseLost("Another process writes the index now.", fence=self.fence)
        row.expires_at = utcnow() + timedelta(seconds=TTL_S)


@contextmanager
def writer_lease(db: Database, *, name: str = INDEX_WRITER, wait_s: float = WAIT_S) -> Generator[WriterLease]:
    """Hold the lease for the block; a thread renews it.

    Raises:
        TransientError: another process held it for all of `wait_s`.
    """
    lease = _acquire(db, name, wait_s)
    done = threading.Event()
    keeper = threading.Thread(target=_renew, args=(db, lease, done), name=f"{name}-keeper", daemon=True)
    keeper.start()
    try:
        yield lease
    finally:
        done.set()
        keeper.join()
        _release(db, lease)


def _acquire(db: Database, name: str, wait_s: float) -> WriterLease:
    deadline = time.monotonic() + wait_s
    pause = 0.02
    while True:
        with db.write() as session:
            _ensure_row(session, name)
            row = session.scalars(select(LeaseRow).where(LeaseRow.name == name).with_for_update()).one()
            now = utcnow()
            if row.holder is None or row.expires_at is None or row.expires_at < now:
                row.fence += 1
                row.holder = f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident()}"[:80]
                row.expires_at = now + timedelta(seconds=TTL_S)
                return WriterLease(name, row.fence)
            holder = row.holder
        if time.monotonic() > deadline:
            raise TransientError(f"The index is being written by {holder}; the work goes on later.")
        time.sleep(pause)
        pause = min(0.5, pause * 1.5)


def _ensure_row(session: Session, name: str) -> None:
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    session.execute(insert(LeaseRow).values(name=name, fence=0).on_conflict_do_nothing())


def _renew(db: Database, lease: WriterLease, done: threading.Event) -> None:
    while not done.wait(TTL_S / 4):
        try:
            with db.write() as session:
                session.execute(
                    update(LeaseRow)
                    .where(LeaseRow.name == lease.name, LeaseRow.fence == lease.fence)
                    .values(expires_at=utcnow() + timedelta(seconds=TTL_S))
                )
        except GeoError:
            log.warning("writer_lease_renewal_failed", exc_info=True)


def _release(db: Database, lease: WriterLease) -> None:
    try:
        with db.write() as session:
            session.execute(
                update(LeaseRow)
                .where(LeaseRow.name == lease.name, LeaseRow.fence == lease.fence)
                .values(holder=None, expires_at=None)
            )
    except GeoError:  # it expires by itself
        log.warning("writer_lease_release_failed", exc_info=True)
