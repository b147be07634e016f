"""The bounded cache of originals: fixed-size pages of segment files, in slots of one block of memory.

Paged like a KV cache: a file's table says in which slot each of its pages is, so rows are gathered with two
array lookups, and memory is one block whatever is read. A page that is missed a second time within a while
takes the slot of one that was not used since the clock's hand last passed it (second chance), so that
scattered questions do not push out what many questions need. Rows of other pages are read by themselves.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Protocol

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


_NEVER = -1


class PagedFile(Protocol):
    """What the cache reads from."""

    page_count: int

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
        self._page = np.full(self.slots, -1, np.int64)
        self._owner = np.full(self.slots, -1, np.int64)
        self._used = np.zeros(self.slots, np.bool_)
        self._files: weakref.WeakValueDictionary[int, PagedFile] = weakref.WeakValueDictionary()
        self._tables: weakref.WeakKeyDictionary[PagedFile, tuple[int, npt.NDArray[np.int32]]] = (
            weakref.WeakKeyDictionary()
        )
        self._numbers = itertools.count()
        self._hand = 0
        self._single = 0
        self._lately = _NEVER - 1  # what a table holds for a page that was missed in this while
        self._lock = threading.Lock()

    def gather(self, file: PagedFile, pages: Ids, at: Ids, length: int) -> tuple[Bytes, int]:
        """Copy `length` bytes at offset `at` of each of the pages.

        Args:
            file: where they are; all of these pages are known to match their checksum.
            pages: [m] page numbers, in any order, may repeat.
            at: [m] multiples of `length`, below `page_bytes`.
            length: divides `page_bytes`.

        Returns:
            [m, length] uint8, and how many of them were not in memory.

        Raises:
            DamagedIndex: the file was cut.
        """
        out = np.empty((len(pages), length), np.uint8)
        per_page = self.page_bytes // length
        line = at // length
        with self._lock:
            number, table = self._table(file)
            slots = table[pages]
            held = slots >= 0
            there = slots[held]
            self._used[there] = True
            out[held] = self._block.reshape(-1, length)[there * per_page + line[held]]
            missing = np.flatnonzero(~held)
            if len(missing):
                again = slots[missing] == self._lately
                self._note(table, pages[missing[~again]])
                if again.any():
                    self._admit(number, table, np.unique(pages[missing[again]]), file)
        if len(missing):
            out[missing] = file.read_parts(pages[missing] * self.page_bytes + at[missing], length)
        return out, len(missing)

    def held_bytes(self, file: PagedFile) -> int:
        """Bytes that one file's pages take."""
        found = self._tables.get(file)
        return 0 if found is None else int(np.count_nonzero(found[1] >= 0)) * self.page_bytes

    def _table(self, file: PagedFile) -> tuple[int, npt.NDArray[np.int32]]:
        if (found := self._tables.get(file)) is None:
            number = next(self._numbers)
            found = self._tables[file] = number, np.full(file.page_count, _NEVER, np.int32)
            self._files[number] = file
        return found

    def _note(self, table: npt.NDArray[np.int32], pages: Ids) -> None:
        """These pages are missed for the first time in this while."""
        table[pages] = self._lately
        self._single += len(pages)
        if self._single > 2 * self.slots:
            self._single, self._lately = 0, self._lately - 1

    def _admit(self, number: int, table: npt.NDArray[np.int32], pages: Ids, file: PagedFile) -> None:
        """Read pages into slots, as many as half of the cache at most."""
        pages = pages[: self.slots // 2]
        slots = self._victims(len(pages))
        content = file.read_parts(pages * self.page_bytes, self.page_bytes)
        self._free(slots)
        self._block[slots] = content
        table[pages] = slots
        self._page[slots], self._owner[slots], self._used[slots] = pages, number, True

    def _victims(self, wanted: int) -> Ids:
        """Slots to reuse, from the hand on: those that were not used since the hand was there before."""
        found: list[Ids] = []
        taken = np.zeros(self.slots, np.bool_)
        while wanted:
            window = np.arange(self._hand, min(self._hand + 4 * wanted, self.slots))
            free = window[~taken[window] & ~self._used[window]][:wanted]
            passed = window if len(free) < wanted else window[: free[-1] - self._hand + 1]
            self._used[passed] = False
            taken[free] = True  # not twice in one call
            found.append(free)
            wanted -= len(free)
            self._hand = int(passed[-1] + 1) % self.slots
        return np.concatenate(found)

    def _free(self, slots: Ids) -> None:
        owners = self._owner[slots]
        for number in np.unique(owners).tolist():
            if (owner := self._files.get(number)) is not None:
                self._tables[owner][1][self._page[slots[owners == number]]] = _NEVER


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
