from __future__ import annotations

import numpy as np
import pytest

from ingest.kept_rows import Float32, KeptRows, UInt64


class Counted:
    """Doubles rows and counts those it was given."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, rows: UInt64) -> Float32:
        self.rows += len(rows)
        return np.concatenate([rows, 2 * rows], axis=1).astype(np.float32)


@pytest.mark.parametrize("capacity", [1, 3, 7, 1000])
def test_rows_are_what_the_function_gives_whatever_is_kept(capacity: int) -> None:
    random = np.random.default_rng(capacity)
    function, kept = Counted(), KeptRows(Counted(), capacity)
    for _ in range(50):
        rows = random.integers(0, 4, size=(random.integers(1, 12), 2)).astype(np.uint64)
        assert np.array_equal(kept(rows), function(rows))


def test_a_row_is_computed_once() -> None:
    function = Counted()
    kept = KeptRows(function, 100)
    rows = np.array([[1, 2], [3, 4], [1, 2]], np.uint64)
    for _ in range(3):
        kept(rows)
    kept(np.array([[2, 1]], np.uint64))
    assert function.rows == 3
