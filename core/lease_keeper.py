"""The leases of all jobs that run in this process, renewed by one thread: working slowly is not dying."""

from __future__ import annotations

import logging
import threading
import time
from datetime import timedelta

from sqlalchemy import update

from core.db import Database, utcnow
from core.models import JobRow
from core.settings import get_settings

log = logging.getLogger(__name__)


class LeaseKeeper:
    """One thread per process; as long as the process lives, the leases that it holds live."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tokens: set[str] = set()
        self._db: Database | None = None
        self._thread: threading.Thread | None = None

    def hold(self, db: Database, token: str) -> None:
        """Start renewing the lease that has this token."""
        with self._lock:
            self._db = db
            self._tokens.add(token)
            if self._thread is None or not self._thread.is_alive():  # not alive: we are a forked child
                self._thread = threading.Thread(target=self._renew_for_ever, name="lease-keeper", daemon=True)
                self._thread.start()

    def release(self, token: str) -> None:
        """Stop renewing."""
        with self._lock:
            self._tokens.discard(token)

    def _renew_for_ever(self) -> None:
        while True:
            ttl = get_settings().worker.lease_ttl_s
            time.sleep(ttl / 4)
            with self._lock:
                tokens, db = list(self._tokens), self._db
            if not tokens or db is None:
                continue
            try:
                with db.write() as session:
                    session.execute(
                        update(JobRow)
                        .where(JobRow.lease_token.in_(tokens))
                        .values(lease_expires_at=utcnow() + timedelta(seconds=ttl))
                    )
            except Exception:  # without this thread every job of the process would lose its lease
                log.warning("lease_renewal_failed", exc_info=True)


LEASES = LeaseKeeper()
