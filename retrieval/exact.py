"""Exact search of many queries at once by matrix products.

    scores = queries @ rows.T; the k highest per query

A block of rows is multiplied with all queries and thinned at once: whatever is not above a query's k-th score
so far cannot be among its best, so after the first blocks almost nothing is left to be sorted and the time is
the product's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from core.errors import TransientError
from retrieval.vector_tier import Ids, Vector

Mask = npt.NDArray[np.bool_]
Best = tuple[npt.NDArray[np.float32], Ids]
_BLOCK = 2048  # rows per product; with 256 queries the scores are 2 MB and stay in the cache
_QUERIES = 256


class TopK:
    """The k best rows per query of what was offered so far.

    Args:
        queries: [n, d] float32.
        k: at least 1.
    """

    def __init__(self, queries: Vector, k: int) -> None:
        self._queries = np.ascontiguousarray(queries, np.float32)
        self._k = k
        self._scores = np.full((len(queries), k), -np.inf, np.float32)
        self._rows = np.full((len(queries), k), -1, np.int64)

    def offer(self, first: int, rows: Vector, allowed: Mask | None = None) -> None:
        """Take in rows [m, d] float32 whose numbers begin at `first`; `allowed` [m] hides the others."""
        for start in range(0, len(rows), _BLOCK):
            part = rows[start : start + _BLOCK]
            shown = None if allowed is None else allowed[start : start + _BLOCK]
            for asked in range(0, len(self._queries), _QUERIES):
                scores = self._queries[asked : asked + _QUERIES] @ part.T
                if shown is not None:
                    scores[:, ~shown] = -np.inf
                self._take(asked, first + start, scores)

    def result(self) -> Best:
        """Scores [n, k] and rows [n, k], best first, ties by row; -inf and -1 where there were fewer."""
        order = np.lexsort((self._rows, -self._scores), axis=1)
        return np.take_along_axis(self._scores, order, 1), np.take_along_axis(self._rows, order, 1)

    def _take(self, asked: int, first: int, scores: Vector) -> None:
        kept_scores = self._scores[asked : asked + len(scores)]
        kept_rows = self._rows[asked : asked + len(scores)]
        floor = kept_scores.min(axis=1)
        if scores.shape[1] > self._k and kept_scores.max() == -np.inf:  # the first to be shown: most is above
            best = np.argpartition(scores, scores.shape[1] - self._k, axis=1)[:, -self._k :]
            kept_rows[:] = best + first
            kept_scores[:] = np.take_along_axis(scores, best, 1)
            kept_rows[kept_scores == -np.inf] = -1
            return
        above = np.flatnonzero(scores > floor[:, None])  # flat: numpy is slow to tell where in two dimensions
        if not len(above):
            return
        query, row = np.divmod(above, scores.shape[1])
        hit, line, counts = np.unique(query, return_inverse=True, return_counts=True)
        place = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        more_scores = np.full((len(hit), counts.max()), -np.inf, np.float32)
        more_rows = np.full(more_scores.shape, -1, np.int64)
        more_scores[line, place], more_rows[line, place] = scores[query, row], row + first
        together = np.concatenate((kept_scores[hit], more_scores), axis=1)
        numbers = np.concatenate((kept_rows[hit], more_rows), axis=1)
        best = np.argpartition(together, together.shape[1] - self._k, axis=1)[:, -self._k :]
        kept_scores[hit] = np.take_along_axis(together, best, 1)
        kept_rows[hit] = np.take_along_axis(numbers, best, 1)


def check_vectors(vectors: Vector) -> None:
    """Refuse questions without a direction, [n, d].

    Raises:
        TransientError: one of them is not finite, or all zero.
    """
    if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
        raise TransientError("The question's vector is not finite or has no length; try again.")


def search(queries: Vector, rows: Vector, k: int) -> Best:
    """The k rows with the highest inner product, per query.

    Args:
        queries: [n, d] float32.
        rows: [m, d] float32.
        k: how many.

    Returns:
        Scores [n, k] and rows [n, k], best first, ties by row; -inf and -1 where m is less than k.
    """
    top = TopK(queries, k)
    top.offer(0, rows)
    return top.result()


def search_blocks(queries: Vector, blocks: Iterable[tuple[int, Vector, Mask | None]], k: int) -> Best:
    """The same over `(number of the first row, rows, which of them are allowed)`."""
    top = TopK(queries, k)
    for first, rows, allowed in blocks:
        top.offer(first, rows, allowed)
    return top.result()


def recall(found: Sequence[Iterable[int]], wanted: Sequence[Iterable[int]]) -> float:
    """Mean share of each wanted set that was found; 1 when nothing was wanted."""
    shares = [len(set(f) & set(w)) / len(set(w)) for f, w in zip(found, wanted, strict=True) if set(w)]
    return float(np.mean(shares)) if shares else 1.0
