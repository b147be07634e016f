"""Filling the parts of a build: from the database, from served pages, or with an earlier generation's files.

Each function goes on where `BuildState` says, and notes how far it is after every finished segment. A segment
that takes minutes is a draft until then (`segment_draft.py`), so a killed attempt costs seconds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import dropwhile, islice

from core.db import Database
from core.settings import get_settings
from core.types import Tier
from retrieval import index_repository
from retrieval.build_files import BuildFolder, BuildState, PartState
from retrieval.embed import Encode, embed_missing
from retrieval.files import DamagedIndex
from retrieval.lexical_store import change_lexical
from retrieval.lexical_writer import LexicalDocument
from retrieval.manifest import LEXICAL
from retrieval.segment_draft import Draft
from retrieval.segments import drafted, finished_segment, merge_rows, open_segment
from retrieval.tier_writer import Layout, dead_masks, open_tier
from retrieval.vector_tier import TierRef, VectorRow, VectorTier

_SCAN = 500  # passages per read of the database
_DRAFT = ".draft"  # beside the finished segments
_SEALED = (
    50_000  # passages after which the words so far are sealed: five seconds that a killed build does again
)


def layout() -> Layout:
    """How this installation cuts segments."""
    retrieval = get_settings().retrieval
    return Layout(retrieval.segment_merge_count, retrieval.recall_floor, retrieval.segment_rows)


@dataclass(slots=True)
class PartBuilder:
    """What the functions of this module share.

    Args:
        db: the truth.
        files: the build's folder.
        state: how far it is; changed in place and stored.
        encode: for passages that have no vector of the encoder.
        step: called with the number of passages done since; raises when the build is to stop.
    """

    db: Database
    files: BuildFolder
    state: BuildState
    encode: Encode
    step: Callable[[int], None]

    def scan_tier(self, part: str) -> None:
        """Fill a tier with the live passages that the database has in it."""
        progress = self._begun(part)
        while not progress.done:
            draft, wanted, seen = self._draft(part, progress)
            tier = self._open(part, draft)
            self._count("vectors", tier.add(self._database_rows(part, wanted, seen)))
            self.state.tiers[part] = tier.commit()
            progress = self.state.parts[part] = seen[-1]
            self.files.save(self.state)

    def _database_rows(self, part: str, wanted: int, seen: list[PartState]) -> Iterator[VectorRow]:
        """Up to `wanted` rows above `seen[-1]`, which is brought up to the last one."""
        while wanted:
            after = seen[-1].after
            with self.db.read() as session:
                batch = index_repository.live_places(session, after, min(_SCAN, wanted), part)
            if not batch:
                seen[:] = [PartState(after, done=True)]
                return
            ids = [passage_id for _, _, passage_id in batch]
            embed_missing(self.db, ids, self.state.model, self.encode)
            with self.db.read() as session:
                rows = index_repository.vector_rows(session, ids, self.state.model)
            wanted -= len(batch)
            yield from rows
            seen[:] = [PartState(batch[-1])]
            self._count("passages", len(batch))
            self.step(len(batch))

    def compact_tier(self, part: str, ref: TierRef) -> None:
        """Fill a tier with the live rows of the files in `source`, which `ref` names."""
        progress = self._begun(part)
        source = self.files.source.tier(part)
        segments = [open_segment(source.segments, one) for one in ref.segments]
        masks = dead_masks(source.dead, ref.dead, segments)
        served = merge_rows([(s, masks.get(s.ref.name)) for s in segments])
        rows: Iterator[VectorRow] | None = None
        while not progress.done:
            draft, wanted, seen = self._draft(part, progress)
            if rows is None:
                rows = dropwhile(lambda row, after=seen[-1].after: row.order <= after, served)
            tier = self._open(part, draft)
            self._count("vectors", tier.add(self._page_rows(rows, wanted, seen)))
            self.state.tiers[part] = tier.commit()
            progress = self.state.parts[part] = seen[-1]
            self.files.save(self.state)

    def _page_rows(
        self, rows: Iterator[VectorRow], wanted: int, seen: list[PartState]
    ) -> Iterator[VectorRow]:
        taken = 0
        for taken, row in enumerate(islice(rows, wanted), 1):
            yield row
            seen[:] = [PartState(row.order)]
            if taken % _SCAN == 0:
                self._count("passages", _SCAN)
                self.step(_SCAN)
        if taken < wanted:
            seen[:] = [PartState(seen[-1].after, done=True)]

    def scan_lexical(self) -> None:
        """Fill a lexical index with the live passages."""
        progress = self.state.parts.setdefault(LEXICAL, PartState())
        root = self.files.index.lexical
        while not progress.done:
            seen = [progress]
            before = self.state.lexical
            self.state.lexical = change_lexical(root, before, self._texts(_SEALED, seen))
            progress = self.state.parts[LEXICAL] = seen[-1]
            self.files.save(self.state)
            if before:
                shutil.rmtree(root / before, ignore_errors=True)

    def _texts(self, wanted: int, seen: list[PartState]) -> Iterator[LexicalDocument]:
        while wanted:
            after = seen[-1].after
            with self.db.read() as session:
                batch = index_repository.live_places(session, after, min(_SCAN, wanted))
                texts = list(index_repository.lexical_documents(session, [i for _, _, i in batch]))
            if not batch:
                seen[:] = [PartState(after, done=True)]
                return
            wanted -= len(batch)
            yield from texts
            seen[:] = [PartState(batch[-1])]
            self._count("texts", len(batch))
            self.step(len(batch))

    def _begun(self, part: str) -> PartState:
        """How far a tier is, with a segment that was finished by a process killed before it noted that."""
        progress = self.state.parts.setdefault(part, PartState())
        if progress.done:
            return progress
        folder, ref = self.files.index.tier(part).segments, self.state.tiers.get(part, TierRef())
        for name in {path.name for path in folder.glob("seg_*")} - {s.name for s in ref.segments}:
            with suppress(DamagedIndex):
                found = finished_segment(folder, name)
                if progress.after < found.order(0):
                    self.state.tiers[part] = ref = replace(ref, segments=(*ref.segments, found.ref))
                    progress = self.state.parts[part] = PartState(found.order(found.ref.count - 1))
                    self._count("vectors", found.ref.count)
                    self._count("passages", found.ref.count)
                    self.step(found.ref.count)
        return progress

    def _draft(self, part: str, progress: PartState) -> tuple[Draft, int, list[PartState]]:
        """The segment that is being written: its draft, how many rows it may still get, and after which."""
        draft = Draft(self.files.index.tier(part).segments / _DRAFT, lambda: self.step(0))
        wanted, noted = layout().rows(Tier(part)), drafted(draft, self.state.dimension)
        if noted is None or noted.last is None or noted.last <= progress.after:
            draft.begin()
            return draft, wanted, [progress]
        self._count("passages", len(noted.ids))
        self.step(len(noted.ids))
        return draft, 0 if noted.complete else wanted - len(noted.ids), [PartState(noted.last)]

    def _open(self, part: str, draft: Draft) -> VectorTier:
        return open_tier(
            self.files.index.tier(part), Tier(part), self.state.tiers.get(part, TierRef()),
            dimension=self.state.dimension, layout=layout(), draft=draft,
        )  # fmt: skip

    def _count(self, name: str, count: int) -> None:
        self.state.stats[name] = self.state.stats.get(name, 0) + count
