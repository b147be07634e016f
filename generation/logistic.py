"""Logistic regression for small tables, and figures that never see the rows they were fitted on. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
_PENALTY = 1.0  # of squared weights, on standardized columns
_STEPS = 25


def fit(rows: Matrix, truth: npt.NDArray[np.bool_]) -> Callable[[Matrix], Matrix]:
    """Fit weights by Newton's method, each class weighing one half.

    Args:
        rows: float64 (n, d); columns are standardized inside.
        truth: (n,), both classes present.

    Returns:
        A function from (m, d) rows to (m,) probabilities.
    """
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)

    def prepared(table: Matrix) -> Matrix:
        return np.column_stack([(table - mean) / spread, np.ones(len(table))])

    table = prepared(rows)
    share = truth.mean()
    importance = np.where(truth, 0.5 / share, 0.5 / (1 - share))
    penalty = np.full(table.shape[1], _PENALTY)
    penalty[-1] = 1e-6
    weights = np.zeros(table.shape[1])
    for _ in range(_STEPS):
        chance = _sigmoid(table @ weights)
        slope = table.T @ (importance * (chance - truth)) + penalty * weights
        curve = (table * (importance * chance * (1 - chance))[:, None]).T @ table + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return lambda other: _sigmoid(prepared(other) @ weights)


def _sigmoid(x: Matrix) -> Matrix:
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))


def cross_fitted(
    rows: Matrix, truth: npt.NDArray[np.bool_], groups: Sequence[str], *, folds: int = 10
) -> Matrix:
    """Probability of each row by weights fitted on the other folds; rows of a group share a fold.

    The fold of a group is its hash, so it depends on nothing but its name.
    """
    fold = np.array([int(hashlib.sha256(g.encode()).hexdigest(), 16) % folds for g in groups])
    chances = np.zeros(len(rows))
    for held in range(folds):
        out = fold == held
        if out.any():
            chances[out] = fit(rows[~out], truth[~out])(rows[out])
    return chances


def balanced_accuracy(truth: Sequence[bool], said: Sequence[bool]) -> float | None:
    """Mean of the shares of positives and of negatives that were told right; None without one of them."""
    shares: list[float] = []
    for wanted in (True, False):
        own = [s == wanted for t, s in zip(truth, said, strict=True) if t is wanted]
        if not own:
            return None
        shares.append(sum(own) / len(own))
    return sum(shares) / 2
