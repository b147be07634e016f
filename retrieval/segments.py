"""Segments on disk: originals in pages, their ids, who owns which rows, and a search structure.

A segment is a folder that is written once:

    segment.json    format, kind, count, dimension, rows per page, owner spans, a checksum per file, what the
                    structure was calibrated to
    ids.npy         int64 passage ids, one per row
    vectors.f16, pages.xxh64      see vector_pages.py
    structure.faiss               unless the kind needs none (structures.py)

Rows are ordered by (tenant, collection, passage id), so a collection is one contiguous range of rows. That
is what lets a scope be a filter *inside* the search: a span of rows instead of a test per row.
"""

from __future__ import annotations

import heapq
import io
import json
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from core.ids import new_id
from retrieval.early_pages import EarlyPages
from retrieval.files import DamagedIndex, checksum, checksum_of_file, read_checked, sync_folder, write_durably
from retrieval.passage_ids import PassageIds
from retrieval.segment_draft import Draft, Noted, Pace, Steps
from retrieval.selection import Mask, OwnerSpan
from retrieval.structures import StructurePlan, build_structure
from retrieval.vector_pages import PageFile, PageWriter, rows_per_page
from retrieval.vector_tier import Ids, SegmentRef, VectorRow

_FORMAT = 2
_HEADER, _IDS, _VECTORS, _SUMS, _STRUCTURE = (
    "segment.json", "ids.npy", "vectors.f16", "pages.xxh64", "structure.faiss",
)  # fmt: skip
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment opened for reading: header and ids are checked and in memory, originals are read on demand.

    Attributes:
        calibration: what the search structure needs to reach the recall floor, as its builder found it.
        structure_sum: checksum of the structure's file; empty when the kind has none.
    """

    ref: SegmentRef
    folder: Path
    dimension: int
    spans: tuple[OwnerSpan, ...]
    ids: PassageIds
    pages: PageFile | EarlyPages
    calibration: Mapping[str, Any]
    structure_sum: str = ""

    def checked_structure(self) -> Path:
        """The file of the search structure, for a kind that has one. Raises `DamagedIndex`."""
        path = self.folder / _STRUCTURE
        if checksum_of_file(path) != self.structure_sum:
            raise DamagedIndex(f"Index file {path.name} of {path.parent.name} does not match its checksum.")
        return path

    def order(self, row: int) -> tuple[str, str, int]:
        """`VectorRow.order` of a row."""
        span = self.owner(row)
        return span.tenant_id, span.collection_id, int(self.ids.at(np.asarray([row], np.int64))[0])

    def owner(self, row: int) -> OwnerSpan:
        """Who has this row."""
        return self.spans[bisect_right(self.spans, row, key=lambda span: span.start) - 1]

    def find(self, wanted: Ids) -> Ids:
        """Rows, ascending, that hold one of the ids; `wanted` ascends."""
        found = [self.ids.find(span.start, span.end, wanted) for span in self.spans]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def rows(self, skip: Mask | None = None) -> Iterator[VectorRow]:
        """All rows in order, without those marked in `skip`. Raises `DamagedIndex`."""
        for start, block in self.pages.blocks():
            ids = self.ids.at(np.arange(start, start + len(block), dtype=np.int64)).tolist()
            for offset, passage_id in enumerate(ids):
                if skip is None or not skip[start + offset]:
                    span = self.owner(start + offset)
                    yield VectorRow(span.tenant_id, span.collection_id, passage_id, block[offset].tobytes())

    def verify(self) -> None:
        """Read every file against its checksum. Raises `DamagedIndex`."""
        rows = sum(len(block) for _, block in self.pages.blocks())
        if rows != self.ref.count:
            raise DamagedIndex(f"Segment {self.ref.name} holds {rows} vectors, not {self.ref.count}.")
        if self.structure_sum:
            self.checked_structure()

    def disk_bytes(self) -> int:
        """Size of all its files."""
        return sum(path.stat().st_size for path in self.folder.iterdir())


def write_segments(
    folder: Path,
    rows: Iterable[VectorRow],
    *,
    dimension: int,
    max_rows: int,
    plan: StructurePlan,
    draft: Draft | None = None,
) -> list[SegmentRef]:
    """Write rows into as many segments as `max_rows` asks for; one page is in memory at a time.

    Args:
        folder: where segment folders live.
        rows: strictly ascending by `VectorRow.order`.
        dimension: numbers per vector.
        max_rows: rows per segment.
        plan: which search structure the segments get.
        draft: where they are written so that a later call goes on; `rows` then follow what `drafted` says.

    Raises:
        ValueError: rows out of order, or a vector of another width.
    """
    refs: list[SegmentRef] = []
    writer: _SegmentWriter | None = None
    last: tuple[str, str, int] | None = None
    if draft is not None and (noted := drafted(draft, dimension)) is not None:
        writer, last = _SegmentWriter(folder, dimension, plan, draft, noted), noted.last
        if noted.complete or writer.count >= max_rows:
            refs.append(writer.finish())
            writer = None
    try:
        for row in rows:
            if last is not None and row.order <= last:
                raise ValueError(f"rows are not ascending: {row.order} after {last}")
            last = row.order
            if writer is None:
                writer = _SegmentWriter(folder, dimension, plan, draft)
            writer.add(row)
            if writer.count == max_rows:
                refs.append(writer.finish())
                writer = None
    except BaseException:
        if writer is not None:
            writer.keep()
        raise
    if writer is not None:
        refs.append(writer.finish())
    return refs


def drafted(draft: Draft, dimension: int) -> Noted | None:
    """The rows that an earlier attempt left in a draft."""
    return draft.noted(dimension, rows_per_page(dimension))


def merge_rows(segments: Sequence[tuple[Segment, Mask | None]]) -> Iterator[VectorRow]:
    """Live rows of several segments in one order; `(segment, dead rows)` pairs."""
    streams = [segment.rows(dead) for segment, dead in segments]
    yield from heapq.merge(*streams, key=lambda row: row.order)


def open_segment(folder: Path, ref: SegmentRef) -> Segment:
    """Check a segment's header and ids.

    Raises:
        DamagedIndex: a file is missing or does not match; counts disagree.
    """
    place = folder / ref.name
    header: dict[str, Any] = json.loads(read_checked(place / _HEADER, ref.checksum))
    ids = _array(read_checked(place / _IDS, header["ids"]), place / _IDS, np.int64)
    spans = tuple(OwnerSpan(*entry) for entry in header["spans"])
    count, dimension = int(header["count"]), int(header["dimension"])
    end = spans[-1].end if spans else 0
    if len(ids) != count or count != ref.count or end != count:
        raise DamagedIndex(f"Segment {ref.name} holds {len(ids)} ids, its manifest says {ref.count}.")
    pages: PageFile | EarlyPages
    if header.get("format", 1) == 1:
        pages = EarlyPages(place, count, dimension, int(header["page_vectors"]), header["pages"])
    else:
        sums = _array(read_checked(place / _SUMS, header["pages"]), place / _SUMS, np.uint64)
        pages = PageFile(place / _VECTORS, count, dimension, int(header["page_rows"]), sums)
    return Segment(
        ref, place, dimension, spans, PassageIds(ids), pages,
        header.get("calibration", {}), header.get("structure", ""),
    )  # fmt: skip


def finished_segment(folder: Path, name: str) -> Segment:
    """A finished segment that nothing names yet. Raises `DamagedIndex` unless all of it is in order."""
    try:
        content = (folder / name / _HEADER).read_bytes()
        header: dict[str, Any] = json.loads(content)
        ref = SegmentRef(name, int(header["count"]), checksum(content), str(header["kind"]))
    except (OSError, ValueError, KeyError) as error:
        raise DamagedIndex(f"The header of segment {name} cannot be read.") from error
    segment = open_segment(folder, ref)
    segment.verify()
    return segment


class _SegmentWriter:
    """One segment; `noted` are the rows of a draft that are there already."""

    def __init__(
        self,
        folder: Path,
        dimension: int,
        plan: StructurePlan,
        draft: Draft | None = None,
        noted: Noted | None = None,
    ) -> None:
        self._final = folder / new_id("seg")
        self._draft, self._pace = draft, Pace()
        if draft is None:
            self._aside = folder / f".{self._final.name}.tmp"
            self._aside.mkdir(parents=True)
        else:
            self._aside = draft.folder
            if noted is None:
                draft.begin()
        self._dimension, self._plan = dimension, plan
        self._page_rows = rows_per_page(dimension)
        sums = () if noted is None else noted.sums.tolist()
        self._pages = PageWriter(self._aside / _VECTORS, dimension, self._page_rows, sums)
        self._ids = array("q", () if noted is None else noted.ids.tobytes())
        self._spans: list[OwnerSpan] = [] if noted is None else list(noted.spans)
        self._complete = noted.sums if noted is not None and noted.complete else None

    @property
    def count(self) -> int:
        return len(self._ids)

    def add(self, row: VectorRow) -> None:
        if len(row.vector) != 2 * self._dimension:
            raise ValueError(
                f"passage {row.passage_id} has a vector of {len(row.vector) // 2} numbers, "
                f"the tier has {self._dimension}"
            )
        at, last = len(self._ids), self._spans[-1] if self._spans else None
        if last is not None and (last.tenant_id, last.collection_id) == (row.tenant_id, row.collection_id):
            self._spans[-1] = OwnerSpan(last.tenant_id, last.collection_id, last.start, at + 1)
        else:
            self._spans.append(OwnerSpan(row.tenant_id, row.collection_id, at, at + 1))
        self._ids.append(row.passage_id)
        self._pages.add(row.vector)
        if self._draft is not None and not len(self._ids) % self._page_rows and self._pace.due():
            self._note(self._draft)

    def keep(self) -> None:
        """Note what is there: the work was stopped between two rows."""
        if self._draft is not None and self._complete is None:
            self._note(self._draft)

    def _note(self, draft: Draft, complete: npt.NDArray[np.uint64] | None = None) -> None:
        draft.note(
            self._pages, self._ids, self._spans,
            dimension=self._dimension, page_rows=self._page_rows, complete=complete,
        )  # fmt: skip

    def finish(self) -> SegmentRef:
        sums, ids = self._pages.finish(), np.asarray(self._ids, np.int64)
        if self._draft is not None and self._complete is None:
            self._complete = sums
            self._note(self._draft, complete=sums)
        pages = PageFile(self._aside / _VECTORS, len(ids), self._dimension, self._page_rows, sums)
        kind = self._plan.kind(len(ids))
        header: dict[str, Any] = {
            "format": _FORMAT,
            "kind": kind,
            "count": len(ids),
            "dimension": self._dimension,
            "page_rows": self._page_rows,
            "ids": write_durably(self._aside / _IDS, _npy(ids)),
            "pages": write_durably(self._aside / _SUMS, _npy(sums)),
            "spans": [[s.tenant_id, s.collection_id, s.start, s.end] for s in self._spans],
        }
        steps = Steps() if self._draft is None else self._draft.steps()
        built = build_structure(kind, pages, self._plan, self._aside / _STRUCTURE, steps)
        if built is not None:
            header["structure"], header["calibration"] = built.checksum, built.calibration
        content = json.dumps(header, separators=(",", ":")).encode()
        write_durably(self._aside / _HEADER, content)
        if self._draft is not None:
            self._draft.finish()
        self._aside.rename(self._final)
        sync_folder(self._final.parent)
        return SegmentRef(self._final.name, len(ids), checksum(content), kind)


def _npy(values: npt.NDArray[np.generic]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def _array(content: bytes, path: Path, dtype: type[Number]) -> npt.NDArray[Number]:
    try:
        values = np.load(io.BytesIO(content), allow_pickle=False)
    except ValueError as error:
        raise DamagedIndex(f"Index file {path.name} cannot be read.") from error
    if values.dtype != dtype:
        raise DamagedIndex(f"Index file {path.name} holds {values.dtype}, not {dtype.__name__}.")
    return values


def dead_rows_file(folder: Path, dead: Mapping[str, Ids]) -> tuple[str, str]:
    """Write tombstones: per segment, the ascending rows that are dead.

    Returns:
        File name and checksum.
    """
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dead)
    name = f"{new_id('dead')}.npz"
    return name, write_durably(folder / name, buffer.getvalue())


def read_dead_rows(path: Path, expected: str) -> dict[str, Ids]:
    """Read what `dead_rows_file` wrote. Raises `DamagedIndex`."""
    content = read_checked(path, expected)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: np.asarray(archive[name], np.int64) for name in archive.files}
