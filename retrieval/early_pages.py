"""The originals of a segment as the release before this one wrote them: one `.npy` file per 4,096 rows.

Only read; a merge or a rebuild writes them anew as `vector_pages.PageFile`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from retrieval.files import DamagedIndex, read_checked
from retrieval.vector_pages import Rows
from retrieval.vector_tier import Ids


class EarlyPages:
    """The same doors as `PageFile`; nothing is cached."""

    hits = misses = padding_bytes = 0

    def __init__(self, folder: Path, count: int, dimension: int, page_rows: int, sums: Sequence[str]) -> None:
        self.count, self.dimension, self.page_rows = count, dimension, page_rows
        self.page_bytes = 2 * dimension * page_rows
        self.page_count = len(sums)
        self._folder, self._sums = folder, tuple(sums)

    def rows_at(self, rows: Ids) -> Rows:
        """Some rows, [m, dimension], in the order given. Raises `DamagedIndex`."""
        found = np.empty((len(rows), self.dimension), np.float16)
        pages = rows // self.page_rows
        for page in np.unique(pages).tolist():
            inside = pages == page
            found[inside] = self._page(page)[rows[inside] - page * self.page_rows]
        return found

    def block(self, start: int, stop: int) -> Rows:
        """Rows `[start, stop)`. Raises `DamagedIndex`."""
        parts = [block for _, block in self.blocks(start, stop)]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), np.float16)

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, Rows]]:
        """`(first row, rows)` from start to stop. Raises `DamagedIndex`."""
        stop = self.count if stop is None else stop
        while start < stop:
            page = start // self.page_rows
            first = page * self.page_rows
            end = min(stop, first + self.page_rows)
            yield start, self._page(page)[start - first : end - first]
            start = end

    def held_bytes(self) -> int:
        """Bytes of the page cache that are this segment's."""
        return 0

    def _page(self, number: int) -> Rows:
        path = self._folder / f"page-{number:05d}.npy"
        content = read_checked(path, self._sums[number])
        try:
            page = np.load(io.BytesIO(content), allow_pickle=False)
        except ValueError as error:
            raise DamagedIndex(f"Index file {path.name} cannot be read.") from error
        rows = min(self.page_rows, self.count - number * self.page_rows)
        if page.dtype != np.float16 or page.shape != (rows, self.dimension):
            raise DamagedIndex(f"Page {path.name} of segment {self._folder.name} has an unexpected shape.")
        return page
