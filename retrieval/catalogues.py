"""The catalogue that questions are read with: kept in the process, looked up once for each question."""

from __future__ import annotations

import threading
from collections.abc import Callable

from sqlalchemy.orm import Session

from core.db import Database
from ingest.catalogue import Catalogue
from ingest.catalogue_repository import catalogue_stamp, load_catalogue

_TENANTS = 8  # whose catalogues are kept: one may be large, and the next question loads it again

_lock = threading.Lock()
_catalogues: dict[str, tuple[tuple[int, int, int], Catalogue]] = {}


def catalogue_of(session: Session, tenant_id: str) -> Catalogue:
    """The tenant's catalogue, kept in this process while it stays the same."""
    return _kept(tenant_id, catalogue_stamp(session, tenant_id), lambda: load_catalogue(session, tenant_id))


def _kept(tenant_id: str, stamp: tuple[int, int, int], load: Callable[[], Catalogue]) -> Catalogue:
    with _lock:
        known = _catalogues.get(tenant_id)
    if known is None or known[0] != stamp:
        known = (stamp, load())
        with _lock:
            if len(_catalogues) >= _TENANTS:
                _catalogues.clear()
            _catalogues[tenant_id] = known
    return known[1]


class LazyCatalogue:
    """The catalogue of one question, for all of its routes and variants."""

    def __init__(self, db: Database, tenant_id: str) -> None:
        self._db, self._tenant_id = db, tenant_id
        self._lock = threading.Lock()
        self._found: Catalogue | None = None

    def get(self) -> Catalogue:
        """The catalogue; the first caller asks the database."""
        with self._lock:
            if self._found is None:
                stamp = catalogue_stamp(self._db.quick(), self._tenant_id)
                self._found = _kept(self._tenant_id, stamp, self._load)
            return self._found

    def _load(self) -> Catalogue:
        with self._db.read() as session:
            return load_catalogue(session, self._tenant_id)
