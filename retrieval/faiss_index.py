"""The one door to FAISS: flat segments in memory, searched exactly under a filter.

A reference of the semantics, for a segment with matrix `x` [n, d] and a query `q` [d]:

    scores = x @ q
    allowed = rows of the scope's spans, minus dead rows, intersected with the wanted ids
    result = the k allowed rows with the highest scores, best first
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import faiss as _faiss
import numpy as np
import numpy.typing as npt

from core.types import Scope
from retrieval.vector_pages import OwnerSpan, Segment
from retrieval.vector_tier import Ids

faiss: Any = _faiss  # its stubs lack the keyword arguments of the Python wrappers
faiss.omp_set_num_threads(1)  # parallel over queries; two threads on a busy box took one from 5 to 36 ms

Scores = npt.NDArray[np.float32]
# Up to this share of a segment, gathering the wanted rows beats visiting all of them.
_GATHER_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class FlatSegment:
    """A segment in memory. Never changes, so any number of threads may search it."""

    segment: Segment
    vectors: npt.NDArray[np.float32]
    index: Any

    @property
    def name(self) -> str:
        """Of the segment."""
        return self.segment.ref.name

    @property
    def ids(self) -> Ids:
        """Passage id per row."""
        return self.segment.ids

    @property
    def spans(self) -> tuple[OwnerSpan, ...]:
        """Who owns which rows."""
        return self.segment.spans


def load_flat(segment: Segment) -> FlatSegment:
    """Read and check all pages and build an `IndexFlatIP` over them, one copy in float32.

    Raises:
        DamagedIndex: a page is missing or does not match its checksum.
    """
    count, dimension = len(segment.ids), segment.dimension
    index = faiss.IndexFlatIP(dimension)
    index.codes.resize(count * index.code_size)  # `add` would double its buffer and leave half of it empty
    index.ntotal = count
    vectors = faiss.rev_swig_ptr(index.get_xb(), count * dimension).reshape(count, dimension)
    start = 0
    for page in segment.pages():
        vectors[start : start + len(page)] = page
        start += len(page)
    return FlatSegment(segment, vectors, index)


def search_flat(
    segment: FlatSegment,
    query: Scores,
    k: int,
    scope: Scope,
    *,
    dead: npt.NDArray[np.bool_] | None = None,
    passage_ids: Ids | None = None,
) -> tuple[Scores, Ids]:
    """The k best allowed rows of one segment.

    Args:
        segment: what to search.
        query: [d] float32.
        k: how many at most.
        scope: whose rows may be found; the tenant and its readable collections.
        dead: [n] True for tombstoned rows.
        passage_ids: ascending ids to which the search is limited, or None.

    Returns:
        Inner products [m] and passage ids [m], best first; m is the smaller of k and the allowed rows.
    """
    spans = allowed_spans(segment.spans, scope)
    if not spans or k < 1:
        return _EMPTY
    if passage_ids is not None:
        rows = _rows_of(segment, spans, passage_ids)
        if dead is not None:
            rows = rows[~dead[rows]]
        if len(rows) <= _GATHER_SHARE * len(segment.ids):
            return _search_rows(segment, query, k, rows)
        mask = np.zeros(len(segment.ids), np.bool_)
        mask[rows] = True
        return _search_mask(segment, query, k, mask)
    if len(spans) == 1 and (dead is None or not dead[spans[0][0] : spans[0][1]].any()):
        return _search_range(segment, query, k, *spans[0])
    mask = np.zeros(len(segment.ids), np.bool_)
    for start, end in spans:
        mask[start:end] = True
    if dead is not None:
        mask &= ~dead
    return _search_mask(segment, query, k, mask)


def allowed_spans(spans: Sequence[OwnerSpan], scope: Scope) -> list[tuple[int, int]]:
    """Row ranges that the scope may read; neighbours are joined."""
    ranges: list[tuple[int, int]] = []
    for span in spans:
        if span.tenant_id != scope.tenant_id or not scope.allows_collection(span.collection_id):
            continue
        if ranges and ranges[-1][1] == span.start:
            ranges[-1] = (ranges[-1][0], span.end)
        else:
            ranges.append((span.start, span.end))
    return ranges


_EMPTY: tuple[Scores, Ids] = (np.empty(0, np.float32), np.empty(0, np.int64))


def _rows_of(segment: FlatSegment, spans: Sequence[tuple[int, int]], wanted: Ids) -> Ids:
    """Rows inside `spans` that hold one of the wanted ids (ids ascend only inside one owner's span)."""
    found: list[Ids] = []
    for owner in segment.spans:
        if not any(start <= owner.start and owner.end <= end for start, end in spans):
            continue
        ids = segment.ids[owner.start : owner.end]
        at = np.searchsorted(ids, wanted)
        inside = at < len(ids)
        at, ids_wanted = at[inside], wanted[inside]
        found.append((at[ids[at] == ids_wanted] + owner.start).astype(np.int64))
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _search_rows(segment: FlatSegment, query: Scores, k: int, rows: Ids) -> tuple[Scores, Ids]:
    if not len(rows):
        return _EMPTY
    scores = segment.vectors[rows] @ query
    best = np.argsort(-scores, kind="stable")[:k]
    return scores[best], segment.ids[rows[best]]


def _search_range(segment: FlatSegment, query: Scores, k: int, start: int, end: int) -> tuple[Scores, Ids]:
    selector = faiss.IDSelectorRange(start, end)
    return _search(segment, query, min(k, end - start), selector)


def _search_mask(
    segment: FlatSegment, query: Scores, k: int, mask: npt.NDArray[np.bool_]
) -> tuple[Scores, Ids]:
    allowed = int(np.count_nonzero(mask))
    if not allowed:
        return _EMPTY
    bits = np.packbits(mask, bitorder="little")
    return _search(segment, query, min(k, allowed), faiss.IDSelectorBitmap(bits))


def _search(segment: FlatSegment, query: Scores, k: int, selector: Any) -> tuple[Scores, Ids]:
    parameters = faiss.SearchParameters(sel=selector)
    scores, rows = segment.index.search(query.reshape(1, -1), k, params=parameters)
    kept = rows[0] >= 0  # FAISS pads with -1
    return scores[0][kept], segment.ids[rows[0][kept]]
