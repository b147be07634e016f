"""Which rows of a segment one search may return: scope, wanted ids and tombstones, brought to one value.

Pure. A scope is a few spans of rows, because a segment's rows are ordered by owner; that is what lets the
filter run inside the search as a range or a bitmap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.types import Scope
from retrieval.vector_tier import Ids

Mask = npt.NDArray[np.bool_]
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class OwnerSpan:
    """Rows `[start, end)` belong to one collection."""

    tenant_id: str
    collection_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of one segment that a search may return.

    Attributes:
        total: rows of the segment.
        count: of them, rows that are selected.
        rows: range of rows, when the selection is one; otherwise None.
        chosen: the selected rows, ascending, when they are few and were looked up; otherwise None.
        mask: [total] True for selected rows, when neither of the others is set.
    """

    total: int
    count: int
    rows: Range | None = None
    chosen: Ids | None = None
    mask: Mask | None = None

    @property
    def everything(self) -> bool:
        """Whether nothing is filtered."""
        return self.count == self.total

    def row_numbers(self) -> Ids:
        """The selected rows, ascending."""
        if self.rows is not None:
            return np.arange(*self.rows, dtype=np.int64)
        if self.chosen is not None:
            return self.chosen
        return np.flatnonzero(self.mask) if self.mask is not None else np.empty(0, np.int64)

    def bounds(self) -> Range:
        """The narrowest range that holds all selected rows; there is at least one."""
        if self.rows is not None:
            return self.rows
        rows = self.row_numbers()
        return int(rows[0]), int(rows[-1]) + 1

    def as_mask(self) -> Mask:
        """[total] True for selected rows; not to be changed."""
        if self.mask is not None:
            return self.mask
        mask = np.zeros(self.total, np.bool_)
        if self.rows is not None:
            mask[slice(*self.rows)] = True
        elif self.chosen is not None:
            mask[self.chosen] = True
        return mask


def select(
    spans: Sequence[OwnerSpan],
    scope: Scope,
    *,
    total: int,
    dead: Mask | None = None,
    wanted: Ids | None = None,
) -> Selection:
    """Bring the three filters to one.

    Args:
        spans: who owns which rows of the segment.
        scope: whose rows may be found.
        total: rows of the segment.
        dead: [total] True for tombstoned rows, or None.
        wanted: ascending rows to which the search is limited, or None.
    """
    ranges = allowed_ranges(spans, scope)
    if wanted is not None:
        rows = _inside(wanted, ranges)
        if dead is not None:
            rows = rows[~dead[rows]]
        return Selection(total, len(rows), chosen=rows)
    if not ranges:
        return Selection(total, 0)
    if len(ranges) == 1 and (dead is None or not dead[slice(*ranges[0])].any()):
        return Selection(total, ranges[0][1] - ranges[0][0], rows=ranges[0])
    mask = np.zeros(total, np.bool_)
    for start, end in ranges:
        mask[start:end] = True
    if dead is not None:
        mask &= ~dead
    return Selection(total, int(np.count_nonzero(mask)), mask=mask)


def allowed_ranges(spans: Sequence[OwnerSpan], scope: Scope) -> list[Range]:
    """Row ranges that the scope may read; neighbours are joined."""
    ranges: list[Range] = []
    for span in spans:
        if span.tenant_id != scope.tenant_id or not scope.allows_collection(span.collection_id):
            continue
        if ranges and ranges[-1][1] == span.start:
            ranges[-1] = (ranges[-1][0], span.end)
        else:
            ranges.append((span.start, span.end))
    return ranges


def _inside(rows: Ids, ranges: Sequence[Range]) -> Ids:
    if not ranges:
        return np.empty(0, np.int64)
    starts = np.asarray([start for start, _ in ranges], np.int64)
    ends = np.asarray([end for _, end in ranges], np.int64)
    at = np.searchsorted(starts, rows, side="right") - 1
    return rows[(at >= 0) & (rows < ends[at])]
