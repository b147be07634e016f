"""Segments on disk: fp16 vectors in pages of a fixed number of rows, their ids, and who owns which rows.

A segment is a folder that is written once:

    segment.json     count, dimension, rows per page, owner spans, a checksum per file
    ids.npy          int64 passage ids, one per row
    page-00000.npy   float16 [rows, dimension]; every page but the last is full

Rows are ordered by (tenant, collection, passage id), so a collection is one contiguous range of rows. That
is what lets a scope be a filter *inside* the search: a span of rows instead of a test per row.
"""

from __future__ import annotations

import heapq
import io
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from core.ids import new_id
from retrieval.files import DamagedIndex, checksum, read_checked, sync_folder, write_durably
from retrieval.vector_tier import Ids, SegmentRef, VectorRow

Page = npt.NDArray[np.float16]
Number = TypeVar("Number", bound=np.generic)
_HEADER = "segment.json"
_IDS = "ids.npy"


@dataclass(frozen=True, slots=True)
class OwnerSpan:
    """Rows `[start, end)` belong to one collection."""

    tenant_id: str
    collection_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment opened for reading: header and ids are checked and in memory, pages are read on demand."""

    ref: SegmentRef
    folder: Path
    dimension: int
    page_vectors: int
    spans: tuple[OwnerSpan, ...]
    ids: Ids
    page_checksums: tuple[str, ...]

    def pages(self) -> Iterator[Page]:
        """Pages in row order: float16 [rows, dimension]. Raises `DamagedIndex` at the first bad one."""
        left = len(self.ids)
        for number, expected in enumerate(self.page_checksums):
            path = self.folder / _page_name(number)
            page = _array(read_checked(path, expected), path, np.float16)
            rows = min(left, self.page_vectors)
            if page.shape != (rows, self.dimension):
                raise DamagedIndex(f"Page {path.name} of segment {self.ref.name} has an unexpected shape.")
            left -= rows
            yield page

    def owner(self, row: int) -> OwnerSpan:
        """Who has this row."""
        return self.spans[bisect_right(self.spans, row, key=lambda span: span.start) - 1]

    def find(self, wanted: Ids) -> Ids:
        """Rows that hold one of the ids; `wanted` ascends. Ids ascend inside one owner's span only."""
        found: list[Ids] = []
        for span in self.spans:
            ids = self.ids[span.start : span.end]
            at = np.searchsorted(ids, wanted)
            at, there = at[at < len(ids)], wanted[at < len(ids)]
            found.append((at[ids[at] == there] + span.start).astype(np.int64))
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def vectors_at(self, rows: Ids) -> Page:
        """The originals of some rows, [m, dimension], in the order given. Raises `DamagedIndex`."""
        vectors = np.empty((len(rows), self.dimension), np.float16)
        start = 0
        for page in self.pages():
            inside = (rows >= start) & (rows < start + len(page))
            vectors[inside] = page[rows[inside] - start]
            start += len(page)
        return vectors

    def rows(self, skip: npt.NDArray[np.bool_] | None = None) -> Iterator[VectorRow]:
        """All rows in order, without those marked in `skip`."""
        start = 0
        spans = iter(self.spans)
        span = next(spans, None)
        for page in self.pages():
            for offset in range(len(page)):
                row = start + offset
                while span is not None and row >= span.end:
                    span = next(spans, None)
                if span is None:
                    raise DamagedIndex(f"Segment {self.ref.name} has rows without an owner.")
                if skip is None or not skip[row]:
                    yield VectorRow(
                        span.tenant_id, span.collection_id, int(self.ids[row]), page[offset].tobytes()
                    )
            start += len(page)


def write_segments(
    folder: Path, rows: Iterable[VectorRow], *, dimension: int, page_vectors: int, max_rows: int
) -> list[SegmentRef]:
    """Write rows into as many segments as `max_rows` asks for; one page is in memory at a time.

    Args:
        folder: where segment folders live.
        rows: strictly ascending by `VectorRow.order`.
        dimension: numbers per vector.
        page_vectors: rows per page.
        max_rows: rows per segment.

    Raises:
        ValueError: rows out of order, or a vector of another width.
    """
    refs: list[SegmentRef] = []
    writer: _SegmentWriter | None = None
    last: tuple[str, str, int] | None = None
    for row in rows:
        if last is not None and row.order <= last:
            raise ValueError(f"rows are not ascending: {row.order} after {last}")
        last = row.order
        if writer is None:
            writer = _SegmentWriter(folder, dimension, page_vectors)
        writer.add(row)
        if writer.count == max_rows:
            refs.append(writer.finish())
            writer = None
    if writer is not None:
        refs.append(writer.finish())
    return refs


def merge_rows(
    segments: Sequence[tuple[Segment, npt.NDArray[np.bool_] | None]],
) -> Iterator[VectorRow]:
    """Live rows of several segments in one order; `(segment, dead rows)` pairs."""
    streams = [segment.rows(dead) for segment, dead in segments]
    yield from heapq.merge(*streams, key=lambda row: row.order)


def open_segment(folder: Path, ref: SegmentRef) -> Segment:
    """Check a segment's header and ids.

    Raises:
        DamagedIndex: a file is missing or does not match; counts disagree.
    """
    place = folder / ref.name
    header = json.loads(read_checked(place / _HEADER, ref.checksum))
    ids = _array(read_checked(place / _IDS, header["ids"]), place / _IDS, np.int64)
    spans = tuple(OwnerSpan(*entry) for entry in header["spans"])
    end = spans[-1].end if spans else 0
    if len(ids) != header["count"] or len(ids) != ref.count or end != ref.count:
        raise DamagedIndex(f"Segment {ref.name} holds {len(ids)} ids, its manifest says {ref.count}.")
    return Segment(
        ref, place, int(header["dimension"]), int(header["page_vectors"]), spans, ids, tuple(header["pages"])
    )


class _SegmentWriter:
    def __init__(self, folder: Path, dimension: int, page_vectors: int) -> None:
        self._final = folder / new_id("seg")
        self._aside = folder / f".{self._final.name}.tmp"
        self._aside.mkdir(parents=True)
        self._dimension = dimension
        self._page_vectors = page_vectors
        self._ids: list[int] = []
        self._spans: list[OwnerSpan] = []
        self._pages: list[str] = []
        self._page: list[bytes] = []

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
        self._page.append(row.vector)
        if len(self._page) == self._page_vectors:
            self._write_page()

    def finish(self) -> SegmentRef:
        if self._page:
            self._write_page()
        ids = write_durably(self._aside / _IDS, _npy(np.asarray(self._ids, np.int64)))
        header = {
            "count": len(self._ids),
            "dimension": self._dimension,
            "page_vectors": self._page_vectors,
            "ids": ids,
            "pages": self._pages,
            "spans": [[s.tenant_id, s.collection_id, s.start, s.end] for s in self._spans],
        }
        content = json.dumps(header, separators=(",", ":")).encode()
        write_durably(self._aside / _HEADER, content)
        self._aside.rename(self._final)
        sync_folder(self._final.parent)
        return SegmentRef(self._final.name, len(self._ids), checksum(content))

    def _write_page(self) -> None:
        page = np.frombuffer(b"".join(self._page), np.float16).reshape(len(self._page), self._dimension)
        self._pages.append(write_durably(self._aside / _page_name(len(self._pages)), _npy(page)))
        self._page = []


def _page_name(number: int) -> str:
    return f"page-{number:05d}.npy"


def _npy(array: npt.NDArray[np.generic]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _array(content: bytes, path: Path, dtype: type[Number]) -> npt.NDArray[Number]:
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except ValueError as error:
        raise DamagedIndex(f"Index file {path.name} cannot be read.") from error
    if array.dtype != dtype:
        raise DamagedIndex(f"Index file {path.name} holds {array.dtype}, not {dtype.__name__}.")
    return array


def dead_rows_file(folder: Path, dead: dict[str, npt.NDArray[np.int64]]) -> tuple[str, str]:
    """Write tombstones: per segment, the ascending rows that are dead.

    Returns:
        File name and checksum.
    """
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dead)
    name = f"{new_id('dead')}.npz"
    return name, write_durably(folder / name, buffer.getvalue())


def read_dead_rows(path: Path, expected: str) -> dict[str, npt.NDArray[np.int64]]:
    """Read what `dead_rows_file` wrote. Raises `DamagedIndex`."""
    content = read_checked(path, expected)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: np.asarray(archive[name], np.int64) for name in archive.files}
