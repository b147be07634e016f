"""Spherical k-means by matrix products: the centroids of inverted lists, and which list a row belongs to.

FAISS has one, but its wheel's BLAS takes two to three times as long as numpy's for the same products.
"""

from __future__ import annotations

import numpy as np

from retrieval.vector_tier import Ids, Vector

_BLOCK = 4096  # rows per product: [4096, lists] float32 is 32 MB with 2,048 lists


def centroids(sample: Vector, count: int, *, rounds: int, seed: int) -> Vector:
    """Centres of `count` clusters of unit vectors.

    Args:
        sample: [n, d] float32, unit length, n at least `count`.
        count: clusters, at least 1.
        rounds: of assigning and averaging.
        seed: decides where they start.

    Returns:
        [count, d] float32, unit length. A cluster that ran empty starts anew from a row of the sample.
    """
    random = np.random.default_rng(seed)
    centres = sample[np.sort(random.choice(len(sample), count, replace=False))].copy()
    for _ in range(rounds):
        member = nearest(sample, centres)
        order = np.argsort(member, kind="stable")
        present, first = np.unique(member[order], return_index=True)
        sums = np.add.reduceat(sample[order], first, axis=0)
        centres[present] = sums
        empty = np.setdiff1d(np.arange(count), present)
        centres[empty] = sample[random.choice(len(sample), len(empty), replace=False)]
        lengths = np.linalg.norm(centres, axis=1, keepdims=True)
        centres = np.where(lengths > 0, centres / np.maximum(lengths, 1e-12), sample[:1]).astype(np.float32)
    return centres


def nearest(rows: Vector, centres: Vector) -> Ids:
    """Index of the centre with the highest inner product, per row of [n, d]."""
    found = np.empty(len(rows), np.int64)
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        found[start : start + len(part)] = np.argmax(part @ centres.T, axis=1)
    return found
