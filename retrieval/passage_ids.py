"""Passage ids of a segment's rows: ascending inside an owner's span, four bytes each where they fit."""

from __future__ import annotations

import numpy as np

from retrieval.vector_tier import Ids


class PassageIds:
    """Ids by row. Database ids of one segment are rarely 2³² apart, so a difference to the lowest is kept."""

    __slots__ = ("_base", "_ids")

    def __init__(self, ids: Ids) -> None:
        self._base = int(ids.min()) if len(ids) else 0
        narrow = not len(ids) or int(ids.max()) - self._base < 1 << 32
        self._ids = (ids - self._base).astype(np.uint32) if narrow else ids - self._base

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self._ids.nbytes

    def at(self, rows: Ids) -> Ids:
        """Ids of some rows."""
        return self._ids[rows].astype(np.int64) + self._base

    def all(self) -> Ids:
        """Ids of all rows."""
        return self._ids.astype(np.int64) + self._base

    def find(self, start: int, end: int, wanted: Ids) -> Ids:
        """Rows of `[start, end)`, one owner's, that hold one of the ascending ids."""
        part = self._ids[start:end]
        first, last = np.searchsorted(wanted, (self._base, self._base + (1 << 32)))
        if self._ids.dtype != np.uint32:
            last = len(wanted)
        near = (wanted[first:last] - self._base).astype(self._ids.dtype)
        at = np.searchsorted(part, near)
        at, near = at[at < len(part)], near[at < len(part)]
        return (at[part[at] == near] + start).astype(np.int64)
