"""Spherical k-means by matrix products: the centroids of inverted lists, and which list a row belongs to.

FAISS has one, but its wheel's BLAS takes two to three times as long as numpy's for the same products.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retrieval.vector_pages import Rows
from retrieval.vector_tier import Ids, Vector

_BLOCK = 2048  # rows per product: [2048, lists] float32 is 27 MB with 3,346 lists

Step = Callable[[str, Callable[[], Vector]], Vector]


def _made(_name: str, make: Callable[[], Vector]) -> Vector:
    return make()


def centroids(sample: Vector | Rows, count: int, *, rounds: int, seed: int, step: Step = _made) -> Vector:
    """Centres of `count` clusters of unit vectors.

    Args:
        sample: [n, d] float32 or float16, unit length, n at least `count`; a block at a time is made float32.
        count: clusters, at least 1.
        rounds: of assigning and averaging.
        seed: decides where they start.
        step: called as `step(name, make)` for each round; may know what `make` would give.

    Returns:
        [count, d] float32, unit length. A cluster that ran empty starts anew from a row of the sample.
    """
    random = np.random.default_rng(seed)
    centres = sample[np.sort(random.choice(len(sample), count, replace=False))].astype(np.float32)
    for number in range(rounds):
        random = np.random.default_rng((seed, number))
        centres = step(f"centroids-{number}", lambda now=centres, draw=random: _moved(sample, now, draw))
    return centres


def _moved(sample: Vector | Rows, centres: Vector, random: np.random.Generator) -> Vector:
    """One round: every centre goes to the middle of its rows."""
    count, centres = len(centres), centres.copy()
    member = nearest(sample, centres)
    order = np.argsort(member, kind="stable")
    sums = np.zeros_like(centres)
    for start in range(0, len(order), _BLOCK):
        some = order[start : start + _BLOCK]
        present, first = np.unique(member[some], return_index=True)
        sums[present] += np.add.reduceat(sample[some].astype(np.float32), first, axis=0)
    present = np.unique(member)
    centres[present] = sums[present]
    empty = np.setdiff1d(np.arange(count), present)
    centres[empty] = sample[random.choice(len(sample), len(empty), replace=False)]
    lengths = np.linalg.norm(centres, axis=1, keepdims=True)
    return np.where(lengths > 0, centres / np.maximum(lengths, 1e-12), sample[:1]).astype(np.float32)


def nearest(rows: Vector | Rows, centres: Vector) -> Ids:
    """Index of the centre with the highest inner product, per row of [n, d]."""
    found = np.empty(len(rows), np.int64)
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK].astype(np.float32, copy=False)
        found[start : start + len(part)] = np.argmax(part @ centres.T, axis=1)
    return found
