"""Lists of 4-bit codes: what they name, with and without a filter, however their centroids are found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retrieval import cluster, quick_lists
from retrieval.exact import recall, search
from retrieval.quick_lists import QuickLists, QuickListsBuilder, code_parts, read_quick_lists
from retrieval.selection import Selection
from tests.retrieval.vector_rows import clustered

ROWS, D, LISTS, K = 2000, 64, 48, 10
EVERY = Selection(ROWS, ROWS, rows=(0, ROWS))


def built(bits: int, dimension: int = D) -> tuple[QuickLists, np.ndarray]:
    stored = clustered(ROWS, dimension).astype(np.float16)
    rows = stored.astype(np.float32)
    centroids = cluster.centroids(stored, LISTS, rounds=4, seed=1)
    builder = QuickListsBuilder(centroids, bits, stored)
    for start in range(0, ROWS, 700):
        part = rows[start : start + 700]
        builder.add(start, part, cluster.nearest(part, centroids))
    return builder.finish(), rows


@pytest.fixture(params=["compared", "walked"])
def centroids_are(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "walked":
        monkeypatch.setattr(quick_lists, "_WALKED_FROM", 32)
    return request.param


@pytest.mark.parametrize("bits", [0, 8, 16])
@pytest.mark.usefixtures("centroids_are")
def test_the_best_are_named_and_a_file_keeps_all(bits: int, tmp_path: Path) -> None:
    lists, rows = built(bits)
    asked = clustered(50, D, seed=9).astype(np.float32)
    wanted = search(asked, rows, K)[1].tolist()
    named = 400  # codes of 64 numbers have 4 and 8 bytes
    scores, found = lists.search(asked, K if bits else named, EVERY, LISTS, K, named)
    assert recall(found.tolist(), wanted) >= 0.95
    if bits == 16:
        exact = np.einsum("nkd,nd->nk", rows[found], asked)
        assert np.abs(exact - scores).max() < 1e-3
    lists.write(tmp_path / "x")
    again = read_quick_lists(tmp_path / "x")
    assert (again.search(asked, K, EVERY, 8, K, 20)[1] == lists.search(asked, K, EVERY, 8, K, 20)[1]).all()
    assert again.nbytes == lists.nbytes > ROWS * (code_parts(D, bits > 0) // 2 + 8 + bits * D // 8)


@pytest.mark.usefixtures("centroids_are")
def test_a_filter_hides_rows_and_all_of_a_narrow_one_are_found() -> None:
    lists, _ = built(0)
    asked = clustered(5, D, seed=9).astype(np.float32)
    mask = np.zeros(ROWS, np.bool_)
    mask[::97] = True
    narrow = Selection(ROWS, int(mask.sum()), mask=mask)
    _, found = lists.search(asked, ROWS, narrow, 1, narrow.count)
    assert [sorted(one) for one in found.tolist()] == [np.flatnonzero(mask).tolist()] * 5


@pytest.mark.parametrize("dimension", [4, 30, 384])
def test_any_width_has_codes(dimension: int) -> None:
    lists, rows = built(0, dimension)
    found = lists.search(rows[:20], 50, EVERY, LISTS, K)[1]
    assert recall(found.tolist(), [[n] for n in range(20)]) >= 0.9


def test_codes_of_384_numbers_have_52_bytes_and_24_beside_rows() -> None:
    assert (code_parts(384, False), code_parts(384, True)) == (104, 48)
