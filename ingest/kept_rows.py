"""A function of rows that is computed once for each different row. Pure but for what it keeps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

UInt64 = npt.NDArray[np.uint64]
Float32 = npt.NDArray[np.float32]

_MIX = np.random.default_rng(64).integers(1, 1 << 63, size=32, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
"""Odd factors whose sums tell rows apart; two of a million meet with a chance of 1 in 10 million."""


class KeptRows:
    """Words of a text repeat, and so does what is computed of each by itself.

    Args:
        compute: [n, columns] → [n, width], each row by itself.
        capacity: rows kept; when they are full, all are forgotten.
    """

    def __init__(self, compute: Callable[[UInt64], Float32], capacity: int) -> None:
        self._compute, self._capacity = compute, capacity
        self._place: dict[int, int] = {}
        self._kept = np.empty((0, 0), np.float32)

    def __call__(self, rows: UInt64) -> Float32:
        """[n, columns], n ≥ 1 → [n, width]."""
        keys = (rows * _MIX[: rows.shape[1]]).sum(axis=1, dtype=np.uint64)
        distinct, first, back = np.unique(keys, return_index=True, return_inverse=True)
        numbers: list[int] = distinct.tolist()
        unknown = [i for i, key in enumerate(numbers) if key not in self._place]
        if len(self._place) + len(unknown) > self._capacity:
            self._place.clear()
            unknown = list(range(len(numbers)))
        if len(unknown) > self._capacity:
            return self._compute(rows)
        if unknown:
            self._keep([numbers[i] for i in unknown], self._compute(rows[first[unknown]]))
        return self._kept[[self._place[key] for key in numbers]][back]

    def _keep(self, keys: list[int], computed: Float32) -> None:
        begin = len(self._place)
        if begin + len(keys) > len(self._kept):  # grows by doubling: most processes meet few words
            size = min(self._capacity, 2 * (begin + len(keys)))
            grown = np.empty((size, computed.shape[1]), np.float32)
            grown[:begin] = self._kept[:begin] if begin else 0
            self._kept = grown
        self._kept[begin : begin + len(keys)] = computed
        self._place.update(zip(keys, range(begin, begin + len(keys)), strict=True))
