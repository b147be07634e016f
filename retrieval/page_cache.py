"""The bounded cache of originals: fixed-size pages of segment files, in slots of one block of memory.

Paged like a KV cache: a file's table says in which slot each of its pages is, so rows are gathered with two
array lookups, and memory is one block whatever is read. A page that is missed a second time within a while
takes the slot of one that was not used since the clock's hand last passed it (second chance); for the first
miss its one row is read past the cache, so that scattered questions do not push out what many questions need.
"""

from __future__ import annotations

import threading
import weakref
from typing import Protocol

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


_NEVER = -1


class PagedFile(Protocol):
    """What the cache reads from."""

    page_bytes: int
    page_count: int

    def read_page(self, page: int, into: memoryview) -> None:
        """Fill `into`, `page_bytes` long. Raises `DamagedIndex`."""
        ...

    def is_checked(self, pages: Ids) -> Flags:
        """Which of the pages are known to match their checksum, so that a part may be read alone."""
        ...

    def read_parts(self, offsets: Ids, length: int) -> Bytes:
        """The `length` bytes at each byte offset of the file, [m, length]. Raises `DamagedIndex`."""
        ...


class PageCache:
    """Pages of one size. Any number of threads may read.

    Args:
        capacity_bytes: memory for pages; at least two pages are held whatever it says.
        page_bytes: size of a page.
    """

    def __init__(self, capacity_bytes: int, page_bytes: int) -> None:
        self.slots = max(2, capacity_bytes // page_bytes)
        self.page_bytes = page_bytes
        self._block = np.empty((self.slots, page_bytes), np.uint8)  # untouched slots take no memory
        self._view = self._block.reshape(-1).data
        self._page = np.full(self.slots, -1, np.int64)
        self._owner: list[weakref.ref[PagedFile] | None] = [None] * self.slots
        self._used = np.zeros(self.slots, np.bool_)
        self._pinned = np.zeros(self.slots, np.bool_)
        self._tables: weakref.WeakKeyDictionary[PagedFile, npt.NDArray[np.int32]] = (
            weakref.WeakKeyDictionary()
        )
        self._hand = 0
        self._single = 0
        self._lately = _NEVER - 1  # what a table holds for a page that was missed in this while
        self._lock = threading.Lock()

    def gather(self, file: PagedFile, pages: Ids, at: Ids, length: int) -> tuple[Bytes, int]:
        """Copy `length` bytes at offset `at` of each of the pages.

        Args:
            file: where they are.
            pages: [m] page numbers, in any order, may repeat.
            at: [m] multiples of `length`, below `page_bytes`.
            length: divides `page_bytes`.

        Returns:
            [m, length] uint8, and how many different pages had to be read.

        Raises:
            DamagedIndex: a page does not match its checksum.
        """
        out = np.empty((len(pages), length), np.uint8)
        per_page = self.page_bytes // length
        lines = self._block.reshape(self.slots * per_page, length)
        missed = start = 0
        while start < len(pages):  # as many at a time as surely fit
            part = np.arange(start, min(start + self.slots // 2, len(pages)))
            start += self.slots // 2
            with self._lock:
                table = self._table(file)
                alone = self._once(file, table, pages[part])
                held = part[~alone]
                missed += self._bring(file, table, pages[held])
                out[held] = lines[table[pages[held]] * per_page + at[held] // length]
            if alone.any():
                single = part[alone]
                out[single] = file.read_parts(pages[single] * self.page_bytes + at[single], length)
                missed += len(single)
        return out, missed

    def held_bytes(self, file: PagedFile) -> int:
        """Bytes that one file's pages take."""
        table = self._tables.get(file)
        return 0 if table is None else int(np.count_nonzero(table >= 0)) * self.page_bytes

    def _table(self, file: PagedFile) -> npt.NDArray[np.int32]:
        if (table := self._tables.get(file)) is None:
            table = self._tables[file] = np.full(file.page_count, _NEVER, np.int32)
        return table

    def _once(self, file: PagedFile, table: npt.NDArray[np.int32], pages: Ids) -> Flags:
        """Pages in no slot that were not missed lately; notes that they are missed now."""
        slots = table[pages]
        alone = (slots < 0) & (slots != self._lately) & file.is_checked(pages)
        table[pages[alone]] = self._lately
        self._single += int(np.count_nonzero(alone))
        if self._single > 2 * self.slots:
            self._single, self._lately = 0, self._lately - 1
        return alone

    def _bring(self, file: PagedFile, table: npt.NDArray[np.int32], pages: Ids) -> int:
        """Have all of the pages in slots; there are at most half as many as slots."""
        slots = table[pages]
        there = slots[slots >= 0]
        self._used[there] = True
        if len(there) == len(pages):
            return 0
        missing = np.unique(pages[slots < 0])
        self._pinned[there] = True
        try:
            victims = self._victims(len(missing))
        finally:
            self._pinned[there] = False
        reference = weakref.ref(file)
        for page, slot in zip(missing.tolist(), victims.tolist(), strict=True):
            self._free(slot)
            start = slot * self.page_bytes
            file.read_page(page, self._view[start : start + self.page_bytes])
            table[page] = slot
            self._page[slot], self._owner[slot], self._used[slot] = page, reference, True
        return len(missing)

    def _victims(self, wanted: int) -> Ids:
        """Slots to reuse, from the hand on: not pinned, and not used since the hand was there before."""
        found: list[Ids] = []
        while wanted:
            window = np.arange(self._hand, min(self._hand + 4 * wanted, self.slots))
            free = window[~self._pinned[window] & ~self._used[window]][:wanted]
            passed = window if len(free) < wanted else window[: free[-1] - self._hand + 1]
            self._used[passed] = False
            self._pinned[free] = True  # not twice in one call
            found.append(free)
            wanted -= len(free)
            self._hand = int(passed[-1] + 1) % self.slots
        victims = np.concatenate(found)
        self._pinned[victims] = False
        return victims

    def _free(self, slot: int) -> None:
        reference = self._owner[slot]
        if reference is not None and (owner := reference()) is not None:
            self._tables[owner][self._page[slot]] = _NEVER
        self._owner[slot] = None


class PageCaches:
    """The process's cache: one `PageCache` per page size, within one capacity together."""

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self._lock = threading.Lock()
        self._by_size: dict[int, PageCache] = {}

    def of_size(self, page_bytes: int) -> PageCache:
        """The cache of pages of this size; the first of another size halves what the others may take."""
        if (cache := self._by_size.get(page_bytes)) is None:
            with self._lock:
                if page_bytes not in self._by_size:
                    share = self.capacity_bytes // (len(self._by_size) + 1)
                    self._by_size = {size: PageCache(share, size) for size in (*self._by_size, page_bytes)}
                cache = self._by_size[page_bytes]
        return cache
