"""What a filter leaves, as ids that an index can limit its own search to."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from core.db import Database
from core.types import Scope
from retrieval.filters import Filters
from retrieval.query_repository import filtered_document_ids, live_passage_ids

MAX_FILTER_PASSAGES = 20_000  # a filter that leaves more is applied to what the route found


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for a search inside an index; None leaves it open.

    Attributes:
        passage_ids: every passage that the filter lets through, when they are few enough.
        document_ids: otherwise every document, when the filter goes by documents and they are few enough.
    """

    passage_ids: tuple[int, ...] | None = None
    document_ids: tuple[str, ...] | None = None


class Pushdown:
    """Looks the limits of one question up, once for all of its routes."""

    def __init__(self, db: Database, scope: Scope, filters: Filters) -> None:
        self._db, self._scope, self._filters = db, scope, filters
        self._lock = threading.Lock()
        self._limits: Limits | None = Limits() if filters.empty else None

    def limits(self) -> Limits:
        """The limits; the first caller asks the database."""
        with self._lock:
            if self._limits is None:
                self._limits = self._looked_up()
            return self._limits

    def _looked_up(self) -> Limits:
        with self._db.read() as session:
            ids = live_passage_ids(session, self._scope, self._filters, limit=MAX_FILTER_PASSAGES)
            if ids is not None:
                return Limits(passage_ids=tuple(ids))
            documents = filtered_document_ids(session, self._scope, self._filters)
        return Limits(document_ids=None if documents is None else tuple(documents))
