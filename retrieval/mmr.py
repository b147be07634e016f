"""Maximal marginal relevance: what stands before counts against what says the same. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def mmr_order(scores: Sequence[float], vectors: Floats, *, balance: float) -> list[int]:
    """Places of the passages in their new order; the best one stays first.

    Next comes argmax of balance · score(p) − (1 − balance) · max over chosen q of cos(p, q). Scores are
    brought to [0, 1]; vectors are taken from their mean first, as an encoder's lie in a narrow cone, where
    any two of them are alike.

    Args:
        scores: higher is better.
        vectors: [n, d], any length; a row of zeros is like nothing.
        balance: in [0, 1]; 1 keeps the order of the scores.

    Raises:
        ValueError: not one vector per score.

    Source: Carbonell and Goldstein, SIGIR 1998, doi:10.1145/290941.291025.
    """
    if len(vectors) != len(scores):
        raise ValueError(f"{len(scores)} scores, but {len(vectors)} vectors")
    if not len(scores):
        return []
    values = np.asarray(scores, np.float64)
    span = float(values.max() - values.min())
    worth = (values - values.min()) / span if span > 0 else np.ones_like(values)
    apart = vectors - vectors.mean(axis=0)
    size = np.linalg.norm(apart, axis=1, keepdims=True)
    unit = np.divide(apart, size, out=np.zeros_like(apart), where=size > 1e-6)
    alike = unit @ unit.T
    left = sorted(range(len(values)), key=lambda n: (-values[n], n))
    order = [left.pop(0)]
    while left:
        nearest = alike[left][:, order].max(axis=1)
        gains = balance * worth[left] - (1 - balance) * nearest
        order.append(left.pop(int(np.argmax(gains))))
    return order
