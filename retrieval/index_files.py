"""Log entries → index files: the one place that changes vectors and lexical index together.

`apply_entries` is the whole meaning of the log. Indexing, deleting, the tail of a rebuild and a rollback all
go through it, so they agree. Applying an entry twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from core.db import Database
from core.ids import new_id
from core.types import Tier
from retrieval import index_repository as repository
from retrieval.files import DamagedIndex
from retrieval.index_repository import LogEntry
from retrieval.lexical import LexicalDocument, LexicalWriter
from retrieval.manifest import DeadRef, IndexFolder, Manifest, SegmentRef, TierFolder, TierRef
from retrieval.vector_pages import (
    Segment,
    dead_rows_file,
    merge_rows,
    open_segment,
    read_dead_rows,
    write_segments,
)

_FULL_SEGMENT_PAGES = 16  # 65,536 rows of 384 numbers are 100 MB in memory while a build checks them
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Layout:
    """How segments are cut and when they are merged."""

    page_vectors: int
    merge_count: int

    @property
    def full_rows(self) -> int:
        """Rows of a segment that is never merged again."""
        return self.page_vectors * _FULL_SEGMENT_PAGES


class OpenSegments:
    """Segments of one tier with their dead rows, as the writer needs them: ids, no vectors."""

    def __init__(self, folder: TierFolder, tier: TierRef) -> None:
        self._folder = folder
        self.segments = [_opened(folder, ref) for ref in tier.segments]
        self.dead: dict[str, Mask] = {}
        if tier.dead is not None:
            stored = read_dead_rows(folder.dead / tier.dead.name, tier.dead.checksum)
            for segment in self.segments:
                if (rows := stored.get(segment.ref.name)) is not None:
                    self.dead[segment.ref.name] = _mask(len(segment.ids), rows)
        self.dead_changed = False

    def present(self, ids: Sequence[int]) -> set[int]:
        """Those of `ids` that a search could return."""
        return {int(segment.ids[row]) for segment, row in self._live_rows(ids)}

    def bury(self, ids: Sequence[int]) -> None:
        """Mark the rows of these ids dead."""
        for segment, row in self._live_rows(ids):
            self.dead.setdefault(segment.ref.name, np.zeros(len(segment.ids), np.bool_))[row] = True
            self.dead_changed = True

    def add(self, refs: Iterable[SegmentRef]) -> None:
        """Take new segments in."""
        self.segments.extend(_opened(self._folder, ref) for ref in refs)

    def merge(self, layout: Layout, dimension: int) -> None:
        """Merge small segments when there are too many; dead rows are left behind."""
        small = sorted((s for s in self.segments if len(s.ids) < layout.full_rows), key=lambda s: len(s.ids))
        if len(small) <= layout.merge_count:
            return
        chosen, rows = small[:2], sum(len(s.ids) for s in small[:2])
        for segment in small[2:]:
            if len(segment.ids) > rows:  # sizes stay geometric, so a row is copied few times
                break
            chosen.append(segment)
            rows += len(segment.ids)
        merged = write_segments(
            self._folder.segments,
            merge_rows([(s, self.dead.get(s.ref.name)) for s in chosen]),
            dimension=dimension,
            page_vectors=layout.page_vectors,
            max_rows=layout.full_rows,
        )
        names = {s.ref.name for s in chosen}
        self.segments = [s for s in self.segments if s.ref.name not in names]
        self.dead_changed |= any(self.dead.pop(name, None) is not None for name in names)
        self.add(merged)

    def store_dead(self, previous: DeadRef | None) -> DeadRef | None:
        """Write the tombstones if they changed."""
        if not self.dead_changed:
            return previous
        rows = {name: np.flatnonzero(mask).astype(np.int64) for name, mask in self.dead.items()}
        rows = {name: found for name, found in rows.items() if len(found)}
        if not rows:
            return None
        name, checksum = dead_rows_file(self._folder.dead, rows)
        return DeadRef(name, sum(len(found) for found in rows.values()), checksum)

    def _live_rows(self, ids: Sequence[int]) -> Iterable[tuple[Segment, int]]:
        wanted = np.asarray(list(ids), np.int64)
        for segment in self.segments:
            dead = self.dead.get(segment.ref.name)
            for row in np.flatnonzero(np.isin(segment.ids, wanted)).tolist():
                if dead is None or not dead[row]:
                    yield segment, row


def apply_entries(
    db: Database,
    folder: IndexFolder,
    manifest: Manifest,
    entries: Sequence[LogEntry],
    layout: Layout,
    *,
    model: str,
    dimension: int,
) -> Manifest:
    """Bring index files from `manifest.applied_seq` to the last of `entries`.

    The lexical index is committed before this returns; the manifest is neither numbered nor stored.

    Returns:
        The manifest of the changed files, with the generation of the one given.

    Raises:
        DamagedIndex: a file that the manifest names is missing or does not match.
    """
    final: dict[int, str] = {}
    for entry in entries:
        for passage_id in entry.passage_ids:
            final[passage_id] = entry.op
    adds = [i for i, op in final.items() if op == "add"]
    deletes = [i for i, op in final.items() if op == "delete"]
    place, hot = folder.tier(Tier.HOT.value), manifest.tier(Tier.HOT.value)
    segments = OpenSegments(place, hot)
    segments.bury(deletes)
    missing = sorted(set(adds) - segments.present(adds))
    with db.read() as session:
        vectors = repository.vector_rows(session, missing, model)
    segments.add(
        write_segments(
            place.segments,
            vectors,
            dimension=dimension,
            page_vectors=layout.page_vectors,
            max_rows=layout.full_rows,
        )
    )
    segments.merge(layout, dimension)
    lexical = manifest.lexical or new_id("lex")
    with db.read() as session:  # texts are read as they are written: a thousand documents may be large
        texts = repository.lexical_documents(session, adds)
        change_lexical(folder, lexical, texts, deletes, fresh=not manifest.lexical)
    refs = tuple(s.ref for s in segments.segments)
    return replace(
        manifest,
        applied_seq=entries[-1].seq if entries else manifest.applied_seq,
        model=model,
        dimension=dimension,
        lexical=lexical,
    ).with_tier(Tier.HOT.value, replace(hot, segments=refs, dead=segments.store_dead(hot.dead)))


def change_lexical(
    folder: IndexFolder, name: str, add: Iterable[LexicalDocument], delete: Iterable[int], *, fresh: bool
) -> None:
    """Upsert and delete in one commit of the lexical index `name`.

    Raises:
        DamagedIndex: it should exist and does not, or cannot be opened.
    """
    place = folder.lexical / name
    if not fresh and not (place / "meta.json").is_file():
        raise DamagedIndex(f"The lexical index {name} is missing.")
    try:
        writer = LexicalWriter(place)
    except ValueError as error:
        raise DamagedIndex(f"The lexical index {name} cannot be opened: {error}") from error
    writer.apply(add, delete)


_headers: dict[tuple[str, str], Segment] = {}  # ids are 8 bytes a row; reading them anew costs every publish


def _opened(folder: TierFolder, ref: SegmentRef) -> Segment:
    key = (str(folder.segments), ref.name)
    segment = _headers.get(key)
    if segment is None or segment.ref != ref or not segment.folder.is_dir():
        segment = _headers[key] = open_segment(folder.segments, ref)
    return segment


def forget_segments(folder: TierFolder, kept: set[str]) -> None:
    """Drop cached headers of segments that are not in `kept`."""
    place = str(folder.segments)
    for key in [k for k in _headers if k[0] == place and k[1] not in kept]:
        del _headers[key]


def _mask(count: int, rows: npt.NDArray[np.int64]) -> Mask:
    mask = np.zeros(count, np.bool_)
    if len(rows) and int(rows.max()) >= count:
        raise DamagedIndex("The tombstones name rows that a segment does not have.")
    mask[rows] = True
    return mask
