"""Readers of the published index: an immutable snapshot per generation, shared by all threads.

`IndexReader.snapshot()` costs one `stat` while nothing was published. A thread that sees a new generation
loads what is new of it and swaps the snapshot; searches go on in the old one and never wait for a lock.

    reader = get_reader()
    index = reader.snapshot()            # one snapshot per query: both routes see the same generation
    index.hot.search(vector, k, scope)   # [(passage id, cosine)], best first
    index.lexical.search(question, k, scope)
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.metrics import INDEX_GENERATION, INDEX_VECTORS, TIER_REFUSED
from core.settings import get_settings
from core.types import Scope, Tier
from retrieval.files import DamagedIndex
from retrieval.lexical import LexicalReader
from retrieval.lexical_store import open_lexical
from retrieval.manifest import LEXICAL, IndexFolder, Manifest
from retrieval.tier_snapshot import SegmentedSnapshot, load_tier

log = logging.getLogger(__name__)

_ATTEMPTS = 5  # a writer may collect a generation while it is being loaded
OnDamage = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class LexicalRoute:
    """The lexical index of one generation."""

    reader: LexicalReader | None = None
    refused: str = ""

    def search(
        self,
        question: str,
        k: int,
        scope: Scope,
        *,
        document_ids: Sequence[str] | None = None,
        passage_ids: Sequence[int] | None = None,
    ) -> list[tuple[int, float]]:
        """`LexicalReader.search` inside the scope.

        Raises:
            DamagedIndex: the lexical index is damaged and being rebuilt.
        """
        reader = self._usable()
        if reader is None:
            return []
        return reader.search(
            question,
            k,
            tenant_id=scope.tenant_id,
            collection_ids=scope.collection_ids,
            document_ids=document_ids,
            passage_ids=passage_ids,
        )

    def holding(
        self,
        spellings: Sequence[Sequence[str]],
        k: int,
        scope: Scope,
        *,
        document_ids: Sequence[str] | None = None,
        passage_ids: Sequence[int] | None = None,
    ) -> list[int]:
        """`LexicalReader.holding` inside the scope. Raises like `search`."""
        reader = self._usable()
        if reader is None:
            return []
        return reader.holding(
            spellings,
            k,
            tenant_id=scope.tenant_id,
            collection_ids=scope.collection_ids,
            document_ids=document_ids,
            passage_ids=passage_ids,
        )

    def _usable(self) -> LexicalReader | None:
        if self.refused:
            raise DamagedIndex(f"The lexical index is refused ({self.refused}) until it is rebuilt.")
        return self.reader


@dataclass(frozen=True, slots=True)
class IndexSnapshot:
    """What one generation serves."""

    generation: int
    hot: SegmentedSnapshot
    lexical: LexicalRoute


class IndexReader:
    """Follows the published generation of one index folder.

    Args:
        folder: the index.
        on_damage: called as `on_damage(tier, reason)` once per generation whose files are refused.
        expected: whether the database says that something was published; a folder without a pointer is
            then a lost index, not an empty one.
    """

    def __init__(
        self,
        folder: IndexFolder,
        *,
        on_damage: OnDamage | None = None,
        expected: Callable[[], bool] | None = None,
    ) -> None:
        self._folder = folder
        self._on_damage = on_damage
        self._expected = expected
        self._loading = threading.Lock()
        self._stamp: tuple[int, int] | str | None = "never looked"
        self._snapshot = IndexSnapshot(0, SegmentedSnapshot(Tier.HOT), LexicalRoute())

    def snapshot(self, *, wait: bool = False) -> IndexSnapshot:
        """The newest generation, loaded if this process has not seen it yet.

        Args:
            wait: wait for a generation that another thread is loading instead of serving the one before.
        """
        if self._folder.current_stamp() == self._stamp:
            return self._snapshot
        first = self._stamp == "never looked"
        if self._loading.acquire(blocking=first or wait):  # others search the old generation meanwhile
            try:
                stamp = self._folder.current_stamp()
                if stamp != self._stamp:
                    self._snapshot = self._load()
                    self._stamp = stamp
            finally:
                self._loading.release()
        return self._snapshot

    def _load(self) -> IndexSnapshot:
        for attempt in range(_ATTEMPTS):
            try:
                generation = self._folder.current_generation()
                if generation is None:
                    return self._empty()
                manifest = self._folder.read_manifest(generation)
                hot = self._load_hot(manifest)
            except DamagedIndex as error:
                if attempt + 1 < _ATTEMPTS and self._moved_on(attempt):
                    continue
                return self._refuse(error)
            return self._serve(manifest, hot)
        raise AssertionError("the loop returns")

    def _moved_on(self, attempt: int) -> bool:
        """Whether another generation is in service than the one that failed to load."""
        return attempt == 0 or self._folder.current_stamp() != self._stamp

    def _load_hot(self, manifest: Manifest) -> SegmentedSnapshot:
        hot = Tier.HOT.value
        return load_tier(
            self._folder.tier(hot), Tier.HOT, manifest.tier(hot),
            dimension=manifest.dimension, previous=self._snapshot.hot,
        )  # fmt: skip

    def _serve(self, manifest: Manifest, hot: SegmentedSnapshot) -> IndexSnapshot:
        INDEX_GENERATION.labels(Tier.HOT.value).set(manifest.generation)
        INDEX_VECTORS.labels(Tier.HOT.value).set(hot.live_count)
        TIER_REFUSED.labels(Tier.HOT.value).set(0)
        return IndexSnapshot(manifest.generation, hot, self._lexical(manifest))

    def _lexical(self, manifest: Manifest) -> LexicalRoute:
        place = self._folder.lexical / manifest.lexical
        previous = self._snapshot.lexical
        if previous.reader is not None and self._lexical_place == place:
            return previous
        try:
            route = LexicalRoute(open_lexical(self._folder.lexical, manifest.lexical))
        except DamagedIndex as error:
            self._report(LEXICAL, error.detail)
            return LexicalRoute(refused=error.detail)
        TIER_REFUSED.labels(LEXICAL).set(0)
        self._lexical_place = place
        return route

    _lexical_place: object = None

    def _empty(self) -> IndexSnapshot:
        if self._expected is not None and self._expected():
            return self._refuse(DamagedIndex("The index folder has no generation, the database has one."))
        return IndexSnapshot(0, SegmentedSnapshot(Tier.HOT), LexicalRoute())

    def _refuse(self, error: DamagedIndex) -> IndexSnapshot:
        self._report(Tier.HOT.value, error.detail)
        return IndexSnapshot(0, SegmentedSnapshot(Tier.HOT, refused=error.detail), self._snapshot.lexical)

    def _report(self, tier: str, reason: str) -> None:
        TIER_REFUSED.labels(tier).set(1)
        log.error("tier_refused", extra={"tier": tier, "reason": reason})
        if self._on_damage is not None:
            self._on_damage(tier, reason)


_reader: IndexReader | None = None
_reader_lock = threading.Lock()


def get_reader() -> IndexReader:
    """The process's reader; damage is recorded in the database and starts a rebuild."""
    global _reader
    with _reader_lock:
        if _reader is None:
            from core.db import get_database
            from retrieval.builds import index_expected, report_damage

            db = get_database()
            _reader = IndexReader(
                IndexFolder(get_settings().index_dir),
                on_damage=lambda tier, reason: report_damage(db, tier, reason),
                expected=lambda: index_expected(db),
            )
        return _reader


def forget_reader() -> None:
    """Let the next `get_reader` follow the index folder that the settings name then."""
    global _reader
    with _reader_lock:
        _reader = None
