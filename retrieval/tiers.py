"""Readers of the published index: an immutable snapshot per generation, shared by all threads.

`IndexReader.snapshot()` costs one `stat` while nothing was published. A thread that sees a new generation
loads what is new of it and swaps the snapshot; searches go on in the old one and never wait for a lock.

    reader = get_reader()
    index = reader.snapshot()            # one snapshot per query: both routes see the same generation
    index.dense.search(vector, k, scope)   # [(passage id, cosine)], best first, over all tiers
    index.lexical.search(question, k, scope)
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.errors import GeoError
from core.metrics import INDEX_GENERATION, INDEX_VECTORS, TIER_REFUSED, VECTOR_PAGE_PADDING
from core.settings import get_settings
from core.types import Scope, Tier
from retrieval.dense import DenseRoute
from retrieval.files import DamagedIndex
from retrieval.lexical import LexicalReader
from retrieval.lexical_store import open_lexical
from retrieval.manifest import LEXICAL, PARTS, IndexFolder, Manifest
from retrieval.tier_snapshot import SegmentedSnapshot, load_tier
from retrieval.tier_status import ALL

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
        beside: Mapping[str, float] | None = None,
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
            beside=beside,
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
    """What one generation serves.

    Attributes:
        tiers: every tier, those that hold nothing included.
        dense: all tiers together.
        model: the encoder whose vectors these are; empty while nothing was indexed.
    """

    generation: int
    tiers: Mapping[Tier, SegmentedSnapshot]
    dense: DenseRoute
    lexical: LexicalRoute
    model: str = ""

    @property
    def hot(self) -> SegmentedSnapshot:
        """The tier that takes every add."""
        return self.tiers[Tier.HOT]


def _empty(refused: str = "") -> dict[Tier, SegmentedSnapshot]:
    return {tier: SegmentedSnapshot(tier, refused=refused) for tier in Tier}


class IndexReader:
    """Follows the published generation of one index folder.

    Args:
        folder: the index.
        on_damage: called as `on_damage(part, reason)` once per generation and part whose files are refused;
            the part is `all` when the generation itself cannot be read.
        expected: whether the database says that something was published; a folder without a pointer is
            then a lost index, not an empty one.
        prepare: called with the encoder of a generation before it is served, when that is another one than
            before: questions then wait for no encoder, they are answered by the generation before.
    """

    def __init__(
        self,
        folder: IndexFolder,
        *,
        on_damage: OnDamage | None = None,
        expected: Callable[[], bool] | None = None,
        prepare: Callable[[str], None] | None = None,
    ) -> None:
        self._folder = folder
        self._on_damage = on_damage
        self._expected = expected
        self._prepare = prepare
        self._loading = threading.Lock()
        self._stamp: tuple[int, int] | str | None = "never looked"
        self._snapshot = self._made(0, _empty(), LexicalRoute())
        self._lexical_place: object = None

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
            last = attempt + 1 == _ATTEMPTS
            try:
                generation = self._folder.current_generation()
                if generation is None:
                    return self._load_nothing()
                manifest = self._folder.read_manifest(generation)
            except DamagedIndex as error:
                if not last and self._moved_on(attempt):
                    continue
                return self._refuse_all(error)
            found = {tier: self._load_tier(manifest, tier) for tier in Tier}
            damaged = any(isinstance(one, DamagedIndex) for one in found.values())
            if not damaged or last or not self._moved_on(attempt):
                return self._serve(manifest, found)
        raise AssertionError("the loop returns")

    def _moved_on(self, attempt: int) -> bool:
        """Whether another generation is in service than the one that failed to load."""
        return attempt == 0 or self._folder.current_stamp() != self._stamp

    def _load_tier(self, manifest: Manifest, tier: Tier) -> SegmentedSnapshot | DamagedIndex:
        ref = manifest.tier(tier.value)
        if not ref.segments:
            return SegmentedSnapshot(tier, manifest.dimension)
        try:
            return load_tier(
                self._folder.tier(tier.value), tier, ref,
                dimension=manifest.dimension, previous=self._snapshot.tiers[tier],
            )  # fmt: skip
        except DamagedIndex as error:
            return error

    def _serve(
        self, manifest: Manifest, found: Mapping[Tier, SegmentedSnapshot | DamagedIndex]
    ) -> IndexSnapshot:
        tiers: dict[Tier, SegmentedSnapshot] = {}
        for tier, one in found.items():
            why = one.detail if isinstance(one, DamagedIndex) else ""
            if why:
                self._report(tier.value, why)
            why = why or manifest.refused.get(tier.value, "")  # the writer has told of it already
            snapshot = one if isinstance(one, SegmentedSnapshot) and not why else None
            tiers[tier] = snapshot or SegmentedSnapshot(tier, refused=why)
            INDEX_GENERATION.labels(tier.value).set(manifest.generation)
            INDEX_VECTORS.labels(tier.value).set(tiers[tier].live_count)
            VECTOR_PAGE_PADDING.labels(tier.value).set(tiers[tier].padding_share)
            TIER_REFUSED.labels(tier.value).set(1 if why else 0)
        if manifest.model and manifest.model != self._snapshot.model and self._prepare is not None:
            self._prepare(manifest.model)
        return self._made(manifest.generation, tiers, self._lexical(manifest), manifest.model)

    def _lexical(self, manifest: Manifest) -> LexicalRoute:
        if why := manifest.refused.get(LEXICAL):
            TIER_REFUSED.labels(LEXICAL).set(1)
            return LexicalRoute(refused=why)
        if not manifest.lexical:
            return LexicalRoute()
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

    def _load_nothing(self) -> IndexSnapshot:
        if self._expected is not None and self._expected():
            return self._refuse_all(DamagedIndex("The index folder has no generation, the database has one."))
        return self._made(0, _empty(), LexicalRoute())

    def _refuse_all(self, error: DamagedIndex) -> IndexSnapshot:
        """The generation cannot be read; the words of the one before are better than nothing."""
        for part in PARTS:
            TIER_REFUSED.labels(part).set(1)
        self._report(ALL, error.detail)
        return self._made(0, _empty(error.detail), self._snapshot.lexical, self._snapshot.model)

    def _made(
        self,
        generation: int,
        tiers: Mapping[Tier, SegmentedSnapshot],
        lexical: LexicalRoute,
        model: str = "",
    ) -> IndexSnapshot:
        return IndexSnapshot(generation, tiers, DenseRoute(tiers, self._report), lexical, model)

    def _report(self, tier: str, reason: str) -> None:
        if tier in PARTS:
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
                prepare=_load_encoder,
            )
        return _reader


def _load_encoder(model: str) -> None:
    from ingest.encode import get_encoder

    try:
        get_encoder(model).encode_query("warm up")
    except GeoError:  # the dense route will say so of each question; the words are still found
        log.exception("encoder_missing", extra={"model": model})


def forget_reader() -> None:
    """Let the next `get_reader` follow the index folder that the settings name then."""
    global _reader
    with _reader_lock:
        _reader = None
