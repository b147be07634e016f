"""Exact scores of candidates: their originals are gathered for many queries at once and multiplied."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retrieval.faiss_index import WIDENED_ROWS, widened
from retrieval.vector_pages import Rows
from retrieval.vector_tier import Ids, Vector


def exact_scores(queries: Vector, at: Ids, rows: Ids, originals: Callable[[Ids], Rows]) -> Vector:
    """Inner products [m] of queries with rows.

    Args:
        queries: [n, d] float32.
        at: [m] which query, ascending.
        rows: [m] which row.
        originals: gives some rows as [m, d] float16, which the caller keeps nothing of.
    """
    scores = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), WIDENED_ROWS):
        some = slice(start, start + WIDENED_ROWS)
        found = widened(originals(rows[some]))
        np.einsum("md,md->m", found, queries[at[some]], out=scores[some])
    return scores
