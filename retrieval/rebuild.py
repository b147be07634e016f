"""Rebuild: generation N+1 is built beside N from the database, verified, brought up to date and swapped in.

| step | lease | what readers see |
|---|---|---|
| note S, the newest log entry | held for a moment | N |
| scan live passages, write segments and lexical index under `building/` | no | N |
| verify counts, checksums and sampled searches | no | N |
| replay the log after S until little is left | no | N |
| replay the rest, move the files, publish | held | N, then N+1 |

Nothing of N is touched, so a build that fails or is cancelled changes nothing, and N is kept for rollback.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from core.db import Database
from core.errors import GeoError, PermanentError
from core.ids import new_id
from core.settings import get_settings
from core.types import Scope, Tier
from retrieval import index_repository as repository
from retrieval import tier_repository
from retrieval.embed import Encode, embed_missing
from retrieval.faiss_index import load_flat, search_flat
from retrieval.files import DamagedIndex, sync_folder
from retrieval.index_files import apply_entries
from retrieval.lease import writer_lease
from retrieval.lexical_store import LexicalBuild
from retrieval.manifest import IndexFolder, Manifest
from retrieval.tier_writer import Layout
from retrieval.vector_pages import open_segment, write_segments
from retrieval.vector_tier import TierRef, VectorRow
from retrieval.writer import IndexWriter, VectorSpace, index_writer, verify_segments

log = logging.getLogger(__name__)

_SCAN = 500  # passages per read of the database
_SHORT_TAIL = 50  # log entries that may be left for the step under the lease
_SAMPLES_PER_SEGMENT = 8
_SCORE_TOLERANCE = 1e-4
Progress = Callable[[int, int], None]


class BuildCancelled(GeoError):
    """Somebody asked the build to stop."""

    code = "cancelled"
    title = "The build was cancelled"


class BuildRejected(PermanentError):
    """The new generation failed its checks; what is served stays as it was."""

    code = "build_rejected"
    title = "The build failed its checks"


@dataclass(slots=True)
class Builder:
    """One build. `build` makes the files, `swap` puts them in service, `discard` removes what is left.

    Args:
        db: the truth.
        folder: the served index.
        space: the encoder whose vectors are indexed.
        build_id: names the folder under `building/`.
        encode: for passages that have no vector of this encoder.
        progress: called as `progress(done, total)`; may renew a lease.
        cancelled: asked between batches.
    """

    db: Database
    folder: IndexFolder
    space: VectorSpace
    build_id: str
    encode: Encode
    progress: Progress = lambda _done, _total: None
    cancelled: Callable[[], bool] = lambda: False
    stats: dict[str, Any] = field(default_factory=dict[str, Any])

    def build(self, *, lease_held: bool = False) -> Manifest:
        """Build and verify beside what is served, and replay most of what happened meanwhile.

        Args:
            lease_held: the caller already is the writer.

        Returns:
            The manifest of the files under `building/`, without a number.

        Raises:
            BuildCancelled: `cancelled` said so.
            BuildRejected: the files are not what was written.
        """
        start = time.perf_counter()
        self.discard()
        aside = self._aside()
        aside.create()
        seq = self._newest_entry(lease_held)
        self.stats.update(passages=0, vectors=0, tail_entries=0)
        with LexicalBuild(aside.lexical) as words:
            refs = write_segments(
                aside.tier(Tier.HOT.value).segments,
                self._rows(words),
                dimension=self.space.dimension,
                page_vectors=self._layout().page_vectors,
                max_rows=self._layout().full_rows,
            )
            lexical = words.seal()
        manifest = Manifest(
            applied_seq=seq, model=self.space.model, dimension=self.space.dimension,
            tiers={Tier.HOT.value: TierRef(tuple(refs))}, lexical=lexical,
        )  # fmt: skip
        self._verify(aside, manifest)
        manifest = self._replay(aside, manifest, down_to=_SHORT_TAIL)
        self.stats.update(
            segments=len(manifest.tier(Tier.HOT.value).segments),
            build_s=round(time.perf_counter() - start, 3),
        )
        return manifest

    def swap(self, writer: IndexWriter, manifest: Manifest) -> Manifest:
        """Under the lease: replay the rest, move the files, publish, keep the replaced generation.

        Raises:
            BuildRejected: live passages are missing from the new files.
        """
        start, hot = time.perf_counter(), Tier.HOT.value
        aside = self._aside()
        manifest = self._replay(aside, manifest, down_to=0)
        with self.db.read() as session:
            live = repository.count_live_vectors(session, self.space.model)
            state = tier_repository.tier_state(session, Tier.HOT.value)
        if manifest.live_count < live:
            raise BuildRejected(
                f"The build holds {manifest.live_count} vectors, the database {live}; nothing was changed.",
                build_id=self.build_id,
            )
        built, source, target = manifest.tier(hot), aside.tier(hot), self.folder.tier(hot)
        for ref in built.segments:
            (source.segments / ref.name).rename(target.segments / ref.name)
        if built.dead is not None:
            (source.dead / built.dead.name).rename(target.dead / built.dead.name)
        (aside.lexical / manifest.lexical).rename(self.folder.lexical / manifest.lexical)
        for place in (target.segments, target.dead, self.folder.lexical):
            sync_folder(place)
        kept = _restorable(self.folder, (state.generation, *state.previous))
        published = writer.publish(manifest, previous=kept, mended=True)
        self.stats["swap_s"] = round(time.perf_counter() - start, 3)
        return published

    def discard(self) -> None:
        """Remove the folder of this build."""
        shutil.rmtree(self._aside().root, ignore_errors=True)

    def _aside(self) -> IndexFolder:
        return IndexFolder(self.folder.building / self.build_id)

    def _layout(self) -> Layout:
        retrieval = get_settings().retrieval
        return Layout(retrieval.page_vectors, retrieval.segment_merge_count)

    def _newest_entry(self, lease_held: bool) -> int:
        """The last log entry of a moment when no version is between its entry and its going live.

        An index task holds the lease from the one to the other; one that was killed between them appends
        again. So whatever the scan misses is in the log above this number. A caller that holds the lease
        may be such a task itself: its entry is above what was ever applied.
        """
        if lease_held:
            with self.db.read() as session:
                return tier_repository.tier_state(session, Tier.HOT.value).applied_seq
        with writer_lease(self.db):
            self._remove_abandoned()
            with self.db.read() as session:
                return repository.last_seq(session)

    def _remove_abandoned(self) -> None:
        """Folders of killed builds. Under the lease no repair runs, and this is the tier's only build."""
        for entry in self.folder.building.iterdir():
            if entry.name != self.build_id:
                shutil.rmtree(entry, ignore_errors=True)

    def _rows(self, words: LexicalBuild) -> Iterator[VectorRow]:
        """Vectors of live passages in segment order; the lexical index is filled on the way."""
        with self.db.read() as session:
            total = repository.count_live(session)
        after = ("", "", 0)
        while True:
            if self.cancelled():
                raise BuildCancelled(build_id=self.build_id)
            with self.db.read() as session:
                batch = repository.live_ids(session, after, _SCAN)
            if not batch:
                return
            after = batch[-1]
            ids = [passage_id for _, _, passage_id in batch]
            embed_missing(self.db, ids, self.space.model, self.encode)
            with self.db.read() as session:
                rows = repository.vector_rows(session, ids, self.space.model)
                texts = list(repository.lexical_documents(session, ids))
            words.change(texts)
            self.stats["passages"] += len(texts)
            self.stats["vectors"] += len(rows)
            yield from rows
            self.progress(self.stats["passages"], max(total, self.stats["passages"]))

    def _verify(self, aside: IndexFolder, manifest: Manifest) -> None:
        """Counts, checksums of every page, and sampled searches against a numpy scan."""
        try:
            count = verify_segments(aside, manifest)
        except DamagedIndex as error:
            raise BuildRejected(error.detail, build_id=self.build_id) from error
        if count != self.stats["vectors"]:
            raise BuildRejected(
                f"{self.stats['vectors']} vectors were written, {count} are there.", build_id=self.build_id
            )
        self.stats["sampled"] = 0
        for ref in manifest.tier(Tier.HOT.value).segments:
            self._check_samples(aside, ref)

    def _check_samples(self, aside: IndexFolder, ref: Any) -> None:
        segment = load_flat(open_segment(aside.tier(Tier.HOT.value).segments, ref))
        step = max(1, len(segment.ids) // _SAMPLES_PER_SEGMENT)
        for row in range(0, len(segment.ids), step):
            span = next(s for s in segment.spans if s.start <= row < s.end)
            scope = Scope(span.tenant_id, (span.collection_id,), "build")
            scores, _ = search_flat(segment, segment.vectors[row].copy(), 1, scope)
            exact = float(np.max(segment.vectors[span.start : span.end] @ segment.vectors[row]))
            self.stats["sampled"] += 1
            if abs(float(scores[0]) - exact) > _SCORE_TOLERANCE:
                raise BuildRejected(
                    f"A search in segment {ref.name} scored {scores[0]:.5f}, a scan {exact:.5f}.",
                    build_id=self.build_id,
                )

    def _replay(self, aside: IndexFolder, manifest: Manifest, *, down_to: int) -> Manifest:
        while True:
            with self.db.read() as session:
                entries = repository.log_after(session, manifest.applied_seq)
            if len(entries) <= down_to:
                return manifest
            manifest = _applied(self.db, aside, manifest, entries, self._layout(), self.space)
            self.stats["tail_entries"] += len(entries)


def rebuild(builder: Builder) -> Manifest:
    """Build beside, then swap under the lease. Leaves nothing behind when it fails."""
    try:
        manifest = builder.build()
        with index_writer(builder.db, builder.space, folder=builder.folder) as writer:
            return builder.swap(writer, manifest)
    finally:
        builder.discard()


def repair(writer: IndexWriter, encode: Encode) -> Manifest:
    """Rebuild on the spot: the writer met damaged files and holds the lease, so nothing else can publish."""
    log.warning("index_repair", extra={"fence": writer.lease.fence})
    builder = Builder(writer.db, writer.folder, writer.space, new_id("bld"), encode)
    try:
        return builder.swap(writer, builder.build(lease_held=True))
    finally:
        builder.discard()


def roll_back(writer: IndexWriter) -> Manifest:
    """Serve the newest kept generation again, with every log entry that it lacks.

    Raises:
        BuildRejected: nothing is kept, its files are damaged, or it belongs to another encoder.
    """
    with writer.db.read() as session:
        state = tier_repository.tier_state(session, Tier.HOT.value)
    if not state.previous:
        raise BuildRejected("No earlier generation is kept.")
    try:
        manifest = writer.folder.read_manifest(state.previous[0])
        verify_segments(writer.folder, manifest)
        if manifest.model != writer.space.model:
            raise BuildRejected(
                f"Generation {manifest.generation} holds vectors of {manifest.model}; "
                f"set GEO_PACKS__ENCODER={manifest.model} first."
            )
        while True:
            with writer.db.read() as session:
                entries = repository.log_after(session, manifest.applied_seq)
            if not entries:
                break
            manifest = _applied(writer.db, writer.folder, manifest, entries, writer.layout, writer.space)
    except DamagedIndex as error:
        raise BuildRejected(f"The kept generation is damaged: {error.detail}") from error
    kept = _restorable(writer.folder, (state.generation, *state.previous[1:]))
    return writer.publish(manifest, previous=kept, mended=True)


def _applied(
    db: Database,
    folder: IndexFolder,
    manifest: Manifest,
    entries: Sequence[repository.LogEntry],
    layout: Layout,
    space: VectorSpace,
) -> Manifest:
    changed = apply_entries(
        db, folder, manifest, entries, layout, model=space.model, dimension=space.dimension
    )
    return replace(changed, generation=0)


def _restorable(folder: IndexFolder, generations: Sequence[int]) -> tuple[int, ...]:
    """Those generations whose manifest is still there."""
    return tuple(g for g in generations if g and folder.manifest_path(g).is_file())
