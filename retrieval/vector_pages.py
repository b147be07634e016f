"""The originals of a segment: fp16 vectors in one file of fixed-size pages, with a checksum per page.

    vectors.f16     float16 little endian, row after row; the last page is filled up with zeros
    pages.xxh64     uint64 per page

A page holds a whole number of rows and is a whole number of memory pages long, so nothing is lost between
rows or at the end of a page, and row `r` is at byte `2 * dimension * r`.

Two ways to read: `rows_at` gathers some rows through the page cache (rescoring), `block` reads a run of rows
past it (rebuilds, exact scans). Both check what they read; a page that was found good is not checked again by
the same process. Nothing is mapped: what the process holds is bounded by the cache, and a damaged disk is an
error, not the end of the process.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from core.settings import get_settings
from retrieval.files import DamagedIndex
from retrieval.page_cache import PageCaches
from retrieval.scattered_read import read_scattered
from retrieval.vector_tier import Ids

Rows = npt.NDArray[np.float16]
Sums = npt.NDArray[np.uint64]

# Smaller pages hold more of what scattered rows need, larger ones cost more per miss; scans
# read many at once. Measured in docs/adr/0022.
PAGE_BYTES = 12 << 10
_MEMORY_PAGE = 4096
_SCAN_BYTES = 3 << 20
_WITHOUT_PLAN = 64 << 20  # cache of a process that no plan reaches


def rows_per_page(dimension: int, page_bytes: int = PAGE_BYTES) -> int:
    """Rows of a page: the fewest that fill memory pages exactly and are not below `page_bytes`."""
    row_bytes = 2 * dimension
    step = _MEMORY_PAGE // math.gcd(_MEMORY_PAGE, row_bytes)
    return step * max(1, round(page_bytes / (step * row_bytes)))


class PageFile:
    """The originals of one segment, open for reading.

    Args:
        path: of `vectors.f16`; stays readable after it was removed.
        count, dimension: rows, and numbers per row.
        page_rows: rows per page.
        sums: checksum per page.

    Raises:
        DamagedIndex: the file is missing or has another length.
    """

    def __init__(self, path: Path, count: int, dimension: int, page_rows: int, sums: Sums) -> None:
        self.count, self.dimension, self.page_rows = count, dimension, page_rows
        self.page_bytes = 2 * dimension * page_rows
        self.page_count = len(sums)
        self.hits = self.misses = 0
        self._name = f"{path.parent.name}/{path.name}"
        self._sums = sums
        self._checked = np.zeros(len(sums), np.bool_)
        if len(sums) != -(-count // page_rows):
            raise DamagedIndex(f"Index file {self._name} has {len(sums)} pages, not those of {count} rows.")
        try:
            self._handle = os.open(path, os.O_RDONLY)
        except FileNotFoundError as error:
            raise DamagedIndex(f"Index file {self._name} is missing.") from error
        weakref.finalize(self, os.close, self._handle)
        if (size := os.fstat(self._handle).st_size) != self.page_bytes * self.page_count:
            raise DamagedIndex(f"Index file {self._name}, {size} bytes long, does not match its checksums.")

    @property
    def padding_bytes(self) -> int:
        """Bytes at the end that hold no row."""
        return self.page_bytes * self.page_count - 2 * self.dimension * self.count

    def rows_at(self, rows: Ids) -> Rows:
        """Some rows, [m, dimension], in the order given. Raises `DamagedIndex`."""
        row_bytes = 2 * self.dimension
        if not len(rows):
            return np.empty((0, self.dimension), np.float16)
        pages, within = np.divmod(rows, self.page_rows)
        unchecked = pages[~self._checked[pages]]
        if len(unchecked):
            self._check(np.unique(unchecked))
        cache = page_caches().of_size(self.page_bytes)
        found, missed = cache.gather(self, pages, within * row_bytes, row_bytes)
        self.misses += missed
        self.hits += len(rows) - missed
        return found.view(np.float16)

    def block(self, start: int, stop: int) -> Rows:
        """Rows `[start, stop)`, past the cache. Raises `DamagedIndex`."""
        first, last = start // self.page_rows, -(-stop // self.page_rows)
        content = np.empty((last - first) * self.page_bytes, np.uint8)
        self._read(content.data, first)
        rows = content.view(np.float16).reshape(-1, self.dimension)
        return rows[start - first * self.page_rows : stop - first * self.page_rows]

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, Rows]]:
        """`(first row, rows)` from start to stop, a few megabytes at a time. Raises `DamagedIndex`."""
        stop = self.count if stop is None else stop
        step = max(1, _SCAN_BYTES // self.page_bytes) * self.page_rows
        while start < stop:
            end = min(stop, (start // step + 1) * step)
            yield start, self.block(start, end)
            start = end

    def read_parts(self, offsets: Ids, length: int) -> npt.NDArray[np.uint8]:
        """The `length` bytes at each byte offset, [m, length], of checked pages. Raises `DamagedIndex`."""
        try:
            return read_scattered(self._handle, offsets, length)
        except EOFError as error:
            raise self._cut() from error
        except OSError as error:
            raise DamagedIndex(f"Index file {self._name} cannot be read: {error.strerror}.") from error

    def held_bytes(self) -> int:
        """Bytes of the page cache that are this file's."""
        return page_caches().of_size(self.page_bytes).held_bytes(self)

    def _check(self, pages: Ids) -> None:
        content = np.empty(self.page_bytes, np.uint8)
        for page in pages.tolist():
            self._read(content.data, page)

    def _read(self, into: memoryview, page: int) -> None:
        if os.preadv(self._handle, [into], page * self.page_bytes) != len(into):
            raise self._cut()
        for number in range(page, page + len(into) // self.page_bytes):
            if not self._checked[number]:
                start = (number - page) * self.page_bytes
                digest = xxhash.xxh3_64_intdigest(into[start : start + self.page_bytes])
                if digest != int(self._sums[number]):
                    raise DamagedIndex(
                        f"Page {number} of index file {self._name} does not match its checksum."
                    )
                self._checked[number] = True

    def _cut(self) -> DamagedIndex:
        return DamagedIndex(f"Index file {self._name} was cut, it does not match its checksums.")


class PageWriter:
    """Writes `vectors.f16`, a page in memory at a time.

    Args:
        path: of the file.
        dimension, page_rows: numbers per row, rows per page.
        sums: checksums of pages that the file holds already and that are kept; none begins it anew.
    """

    def __init__(self, path: Path, dimension: int, page_rows: int, sums: Sequence[int] = ()) -> None:
        self._file = path.open("ab" if sums else "wb")
        self._dimension, self._page_rows = dimension, page_rows
        self._waiting = bytearray()
        self._sums: list[int] = list(sums)

    def add(self, vector: bytes) -> None:
        """Append one row."""
        self._waiting += vector
        if len(self._waiting) == 2 * self._dimension * self._page_rows:
            self._write()

    def sync(self) -> Sums:
        """Make the pages that are full durable; returns their checksums."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return np.asarray(self._sums, np.uint64)

    def finish(self) -> Sums:
        """Make the file durable; returns the checksums of its pages."""
        if self._waiting:
            self._waiting += bytes(2 * self._dimension * self._page_rows - len(self._waiting))
            self._write()
        sums = self.sync()
        self._file.close()
        return sums

    def _write(self) -> None:
        self._file.write(self._waiting)
        self._sums.append(xxhash.xxh3_64_intdigest(self._waiting))
        self._waiting = bytearray()


_caches: PageCaches | None = None


def page_caches() -> PageCaches:
    """The process's cache of pages."""
    global _caches
    if _caches is None:
        _caches = PageCaches(get_settings().retrieval.page_cache_bytes or _WITHOUT_PLAN)
    return _caches


def resize_page_cache(capacity_bytes: int) -> None:
    """Start anew with another capacity."""
    global _caches
    _caches = PageCaches(capacity_bytes)


def follow_plan(granted: int | None) -> None:
    """Take the capacity that the engine's memory plan grants, unless a setting says how much.

    A plan that grants little because another machine runs the engine does not shrink the cache below the
    default.
    """
    if get_settings().retrieval.page_cache_bytes or not granted:
        return
    wanted = max(granted, _WITHOUT_PLAN)
    if page_caches().capacity_bytes != wanted:
        resize_page_cache(wanted)
