"""What is chosen is the cheapest setting of which one may be sure."""

from __future__ import annotations

import numpy as np
import pytest

from retrieval.calibrate import Calibration, Questions, calibrate
from retrieval.faiss_index import widened
from retrieval.selection import Selection

ROWS, ASKED, K = 4000, 100, 50


def made(share: float = 1.0) -> Questions:
    """Question q wants the rows q * 40 + 1, 2, ...; it came from row q * 40."""
    sources = np.arange(ASKED) * 40
    wanted = sources[:, None] + 1 + np.arange(K) % 39
    every = Selection(ROWS, ROWS, rows=(0, ROWS))
    return Questions(np.eye(ASKED, 8, dtype=np.float32), sources, {1.0: every}, {1.0: wanted})


class Staged:
    """Names a wanted row of rank r from `lists(r)` probes on, behind as many others as `noise` says."""

    def __init__(self, lists: int, noise: int) -> None:
        self.lists, self.noise = lists, noise
        self.questions = made()

    def __call__(self, queries: np.ndarray, k: int, selection: Selection, probes: int) -> np.ndarray:
        found = np.full((ASKED, k), -1)
        for q, wanted in enumerate(self.questions.wanted[1.0]):
            named = [int(w) for r, w in enumerate(wanted[:39]) if r % 10 < 10 * probes / self.lists]
            others = list(range(3_000_000, 3_000_000 + self.noise))
            rows = [int(self.questions.sources[q]), *others, *named][:k]
            found[q, : len(rows)] = rows
        return found


def test_lists_and_candidates_are_the_least_that_reach_the_floor() -> None:
    staged = Staged(lists=20, noise=15)
    found = calibrate(staged, staged.questions, 0.95, most_probes=200, probe_cost=1.0, scanned_rows=9)
    assert found.by_share[0][1] in (19, 20, 21), "nine of ten wanted rows are not enough, to an eighth"
    assert found.by_cutoff[0][1] in range(25, 29), "ten behind fifteen others, to an eighth"
    assert found.scanned_rows == 9


def test_more_lists_are_taken_where_they_cost_less_than_candidates() -> None:
    class Sharper(Staged):
        def __call__(self, queries: np.ndarray, k: int, selection: Selection, probes: int) -> np.ndarray:
            self.noise = 100 // probes
            return super().__call__(queries, k, selection, probes)

    staged = Sharper(lists=1, noise=0)
    cheap = calibrate(staged, staged.questions, 0.95, most_probes=50, probe_cost=0.1, scanned_rows=0)
    dear = calibrate(staged, staged.questions, 0.95, most_probes=50, probe_cost=30.0, scanned_rows=0)
    assert cheap.by_share[0][1] > dear.by_share[0][1]
    assert cheap.by_cutoff[0][1] < dear.by_cutoff[0][1]


def test_a_floor_out_of_reach_takes_all_there_is() -> None:
    staged = Staged(lists=1000, noise=0)
    found = calibrate(staged, staged.questions, 0.95, most_probes=8, probe_cost=1.0, scanned_rows=0)
    assert found.by_share[0][1] == 8
    assert found.recall < 0.95


def test_fields_of_a_stored_calibration_come_back_and_old_ones_are_read() -> None:
    stored = Calibration(
        ((1.0, 3.0), (0.25, 4.0)), ((10.0, 20.0), (50.0, 80.0)), 7, 0.97, ((10.0, 3.0), (50.0, 6.0))
    )
    assert Calibration.from_fields(stored.to_fields()) == stored
    assert stored.probes(1.0, 10) == pytest.approx(3)
    assert stored.probes(1.0, 50) == pytest.approx(6)
    assert stored.probes(0.25, 50) == pytest.approx(8)
    old = Calibration.from_fields({"by_share": [[1.0, 3]], "by_cutoff": [[10, 20]], "recall": 0.96})
    assert old.probes(1.0, 50) == pytest.approx(3)


def test_widened_rows_are_what_numpy_makes_of_them() -> None:
    every = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    finite = np.where(np.isfinite(every), every, np.float16(0)).reshape(256, 256)
    assert np.array_equal(widened(finite), finite.astype(np.float32))
    assert widened(finite[:0]).shape == (0, 256)
