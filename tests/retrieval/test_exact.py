"""Exact search of many queries against sorting every score."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval.exact import search, search_blocks

RNG = np.random.default_rng(3)


def vectors(count: int, width: int = 24) -> np.ndarray:
    return RNG.normal(size=(count, width)).astype(np.float32)


def by_sorting(queries: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    return np.sort(queries @ rows.T, axis=1)[:, ::-1][:, :k]


@pytest.mark.parametrize("rows", [1, 9, 10, 11, 2047, 2048, 2049, 9000])
@pytest.mark.parametrize("k", [1, 10, 300])
@pytest.mark.parametrize("queries", [1, 7, 300])
def test_the_best_are_those_of_sorting_every_score(queries: int, rows: int, k: int) -> None:
    asked, stored = vectors(queries), vectors(rows)
    scores, found = search(asked, stored, k)
    wanted = by_sorting(asked, stored, k)
    shown = wanted.shape[1]
    np.testing.assert_allclose(scores[:, :shown], wanted, rtol=1e-4, atol=1e-5)
    assert (scores[:, shown:] == -np.inf).all()
    assert (found[:, shown:] == -1).all()
    told = np.take_along_axis(asked @ stored.T, found[:, :shown], 1)
    np.testing.assert_allclose(told, wanted, rtol=1e-4, atol=1e-5)
    assert all(len(set(line)) == shown for line in found[:, :shown].tolist())


@pytest.mark.parametrize("falling", [False, True])
def test_rows_in_the_order_of_their_scores(falling: bool) -> None:
    """Every block is better than all before it, for one query alone, or none is."""
    stored = np.zeros((7000, 24), np.float32)
    stored[:, 0] = np.arange(7000)[:: -1 if falling else 1]
    asked = np.stack([np.eye(24, dtype=np.float32)[0], -np.eye(24, dtype=np.float32)[0]])
    scores, _ = search(asked, stored, 20)
    assert scores[0].tolist() == list(range(6999, 6979, -1))
    assert (-scores[1]).tolist() == list(range(20))


def test_hidden_rows_are_never_found_and_numbers_are_those_of_the_blocks() -> None:
    asked, stored = vectors(40), vectors(9000)
    allowed = RNG.random(9000) < 0.002
    blocks = [(1_000_000 + start, stored[start : start + 3100], allowed[start : start + 3100])
              for start in range(0, 9000, 3100)]  # fmt: skip
    scores, found = search_blocks(asked, blocks, 10)
    shown = np.flatnonzero(allowed)
    _, wanted = search(asked, stored[shown], 10)
    assert (found == shown[wanted] + 1_000_000).all()
    assert np.isfinite(scores).all()


def test_fewer_allowed_rows_than_wanted_leave_the_rest_empty() -> None:
    asked, stored = vectors(3), vectors(5000)
    allowed = np.zeros(5000, bool)
    allowed[[7, 4000]] = True
    scores, found = search_blocks(asked, [(0, stored, allowed)], 5)
    assert [set(line) for line in found[:, :2].tolist()] == [{7, 4000}] * 3
    assert (found[:, 2:] == -1).all()
    assert (scores[:, 2:] == -np.inf).all()


def test_equal_scores_come_in_the_order_of_their_rows() -> None:
    scores, found = search(np.ones((2, 4), np.float32), np.ones((50, 4), np.float32), 50)
    assert (scores == 4).all()
    assert found.tolist() == [list(range(50))] * 2
