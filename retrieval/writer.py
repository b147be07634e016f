"""The single writer: append to the log, bring the files up to the log, publish the next generation.

The index log is written first and the files follow it. Whatever a killed writer left undone is in the log,
and the next one does it before its own work:

| killed | what the next writer finds |
|---|---|
| before the log's commit | nothing happened |
| while writing files | entries above the manifest's `applied_seq`; stray files, which are collected |
| before the tier row's commit | a manifest that nothing names; it is written anew |
| before the pointer moved | the row names a higher generation; the pointer is moved |
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sqlalchemy.orm import Session

from core.db import Database, utcnow
from core.errors import ConfigError
from core.metrics import INDEX_GENERATION, INDEX_PUBLISH_SECONDS, INDEX_VECTORS
from core.settings import get_settings
from core.types import Tier
from retrieval import index_repository as repository
from retrieval import tier_repository
from retrieval.builds import report_damage
from retrieval.files import DamagedIndex
from retrieval.index_files import apply_entries
from retrieval.index_repository import LogEntry
from retrieval.lease import WriterLease, writer_lease
from retrieval.manifest import PARTS, IndexFolder, Manifest
from retrieval.served import VectorSpace as VectorSpace
from retrieval.served import served_space
from retrieval.tier_repository import TierState
from retrieval.tier_status import ALL
from retrieval.tier_writer import Layout, forget_segments, verify_tier

log = logging.getLogger(__name__)
_TAIL = 5000  # log entries per publish, and
_TAIL_PASSAGES = 20_000  # their passages: about 40 MB of rows in memory
_TRIM_EVERY = 100  # publishes between two looks at log entries that nobody needs


class IndexWriter:
    """Made by `index_writer`; holds the lease for its life."""

    def __init__(self, db: Database, folder: IndexFolder, space: VectorSpace, lease: WriterLease) -> None:
        retrieval = get_settings().retrieval
        self.db = db
        self.folder = folder
        self.space = space
        self.lease = lease
        self.layout = Layout(retrieval.segment_merge_count, retrieval.recall_floor, retrieval.segment_rows)
        self._keep = retrieval.keep_generations

    def append(
        self, session: Session, op: str, document_id: str, version: int, passage_ids: Sequence[int]
    ) -> None:
        """Add one entry to the log in the caller's transaction, which ends if the lease is lost."""
        self.lease.check(session)
        tier = repository.indexed_tier(session, document_id, version) if op == "add" else Tier.HOT.value
        repository.append_log(session, op, document_id, version, passage_ids, tier)

    def move(
        self, session: Session, document_id: str, version: int, passage_ids: Sequence[int], tier: Tier
    ) -> None:
        """Add the entry that brings passages to another tier, in the caller's transaction; see `append`."""
        self.lease.check(session)
        repository.append_log(session, "place", document_id, version, passage_ids, tier.value)

    def catch_up(self) -> Manifest:
        """Make every committed log entry searchable. Does nothing when there is none.

        A part whose files turn out to be damaged begins anew with what comes from now on; the others go on,
        and a rebuild of the part is opened.

        Raises:
            ConfigError: the index holds another encoder's vectors.
            LeaseLost: another writer took over; nothing was published.
        """
        manifest = self.current()
        while True:
            with self.db.read() as session:
                entries = _first(repository.log_after(session, manifest.applied_seq, limit=_TAIL))
            if not entries:
                return manifest
            start = time.perf_counter()
            changed = apply_entries(
                self.db, self.folder, manifest, entries, self.layout,
                model=self.space.model, dimension=self.space.dimension,
            )  # fmt: skip
            refused = changed.refused.items() - manifest.refused.items()
            manifest = self.publish(changed)
            INDEX_PUBLISH_SECONDS.observe(time.perf_counter() - start)
            for part, reason in refused:
                report_damage(self.db, part, reason)

    def current(self) -> Manifest:
        """The manifest in service, after repairing a pointer that a killed writer did not move.

        When files and database disagree in a way that only a rebuild mends, an empty generation is published
        that says so, and a rebuild of everything is opened; what comes from now on is served meanwhile.

        Raises:
            ConfigError: the index holds another encoder's vectors.
        """
        with self.db.read() as session:
            state = tier_repository.tier_state(session, Tier.HOT.value)
        try:
            manifest = self._stored(state)
        except DamagedIndex as error:
            log.error("index_damaged", extra={"detail": error.detail})
            manifest = self.publish(
                Manifest(
                    applied_seq=state.applied_seq, model=state.model or self.space.model,
                    dimension=state.dimension or self.space.dimension,
                    refused=dict.fromkeys(PARTS, error.detail),
                )
            )  # fmt: skip
            report_damage(self.db, ALL, error.detail)
        check_space(manifest, self.space)
        return manifest

    def _stored(self, state: TierState) -> Manifest:
        on_disk = self._pointer()
        if state.generation == 0 and not on_disk:
            return Manifest()
        if on_disk > state.generation:
            raise DamagedIndex(
                f"Index files are at generation {on_disk}, the database at {state.generation}."
            )
        manifest = self.folder.read_manifest(state.generation)
        if on_disk < state.generation:
            self.folder.point_to(state.generation)
        return manifest

    def publish(
        self, changed: Manifest, *, previous: tuple[int, ...] | None = None, mended: Sequence[str] = ()
    ) -> Manifest:
        """Number, store and serve a manifest whose files are complete.

        Args:
            changed: names the complete files.
            previous: generations to keep for rollback, newest first; None leaves them as they are.
            mended: parts whose files are new and verified, so that a refusal ends.

        Raises:
            LeaseLost: another writer took over; the pointer did not move.
        """
        with self.db.read() as session:
            state = tier_repository.tier_state(session, Tier.HOT.value)
        newest = max(state.generation, self._pointer())
        manifest = replace(
            changed, generation=newest + 1, fence=self.lease.fence, published_at=utcnow().isoformat()
        )
        self.folder.write_manifest(manifest)
        kept = (state.previous if previous is None else previous)[: self._keep - 1]
        with self.db.write() as session:
            self.lease.check(session)
            published = TierState(
                manifest.generation, manifest.applied_seq, manifest.model, manifest.dimension, kept
            )
            tier_repository.set_published(session, published, refused=manifest.refused, mended=mended)
        self.folder.point_to(manifest.generation)
        for tier in Tier:
            INDEX_GENERATION.labels(tier.value).set(manifest.generation)
            INDEX_VECTORS.labels(tier.value).set(manifest.tier(tier.value).live_count)
        self._collect(manifest, kept)
        return manifest

    def _pointer(self) -> int:
        try:
            return self.folder.current_generation() or 0
        except DamagedIndex:
            return 0

    def _collect(self, current: Manifest, previous: tuple[int, ...]) -> None:
        """Remove files that no kept generation names, and log entries that none of them needs."""
        numbers = self.folder.generations()
        kept_numbers = {*numbers[: self._keep], *previous, current.generation}
        kept: list[Manifest] = []
        for number in numbers:
            if number not in kept_numbers:
                self.folder.manifest_path(number).unlink(missing_ok=True)
                continue
            try:
                kept.append(self.folder.read_manifest(number))
            except DamagedIndex:
                log.warning("kept_manifest_damaged", extra={"generation": number})
        for tier, place in self.folder.tiers.items():
            refs = [m.tier(tier) for m in kept]
            segments = {s.name for ref in refs for s in ref.segments}
            _remove_except(place.segments, segments)
            _remove_except(place.dead, {ref.dead.name for ref in refs if ref.dead})
            forget_segments(place, segments)
        _remove_except(self.folder.lexical, {m.lexical for m in kept})
        if current.generation % _TRIM_EVERY == 0:
            with self.db.write() as session:
                repository.trim_log(session, min(m.applied_seq for m in kept))


def _first(entries: Sequence[LogEntry]) -> Sequence[LogEntry]:
    """As many entries as one publish takes, at least one."""
    passages = 0
    for count, entry in enumerate(entries):
        passages += len(entry.passage_ids)
        if passages > _TAIL_PASSAGES and count:
            return entries[:count]
    return entries


def check_space(manifest: Manifest, space: VectorSpace) -> None:
    """Refuse to mix vectors of two encoders.

    Raises:
        ConfigError: names both models and widths.
    """
    if not manifest.dimension or (manifest.model, manifest.dimension) == (space.model, space.dimension):
        return
    raise ConfigError(
        f"the index holds {manifest.dimension}-wide vectors of {manifest.model}, but the encoder "
        f"{space.model} gives {space.dimension}; to change to it: geo tiers rebuild all --model {space.model}"
    )


@contextmanager
def index_writer(
    db: Database, space: VectorSpace | None = None, *, folder: IndexFolder | None = None
) -> Generator[IndexWriter]:
    """Hold the writer's lease for the block.

    Args:
        db: where lease and log stand.
        space: the encoder whose vectors the caller brings; whatever the index holds when it brings none. That
            is read under the lease, because who held it before may have changed the encoder.
        folder: of the index files; that of the settings by default.

    Raises:
        TransientError: another process kept the lease for too long.
    """
    place = folder or IndexFolder(get_settings().index_dir)
    with writer_lease(db) as lease:
        place.create()
        yield IndexWriter(db, place, space or served_space(db), lease)


def verify_segments(folder: IndexFolder, manifest: Manifest) -> int:
    """Read every page of a manifest against its checksum; returns the number of live rows.

    Raises:
        DamagedIndex: something is missing, does not match, or counts disagree.
    """
    for name, ref in manifest.tiers.items():
        verify_tier(folder.tier(name), ref)
    return manifest.live_count


def _remove_except(place: Path, kept: set[str]) -> None:
    for entry in place.iterdir():
        if entry.name in kept:
            continue
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
