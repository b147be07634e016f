from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from retrieval import scattered_read
from retrieval.scattered_read import read_scattered


@pytest.fixture(params=["by the system", "one by one"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "one by one":
        monkeypatch.setattr(scattered_read, "_queue", lambda: None)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[int, np.ndarray]]:
    content = np.random.default_rng(1).integers(0, 256, (3000, 64), np.uint8)
    content.tofile(tmp_path / "f")
    handle = os.open(tmp_path / "f", os.O_RDONLY)
    yield handle, content
    os.close(handle)


@pytest.mark.parametrize("count", [1, 7, 512, 513, 2000])
def test_every_part_is_where_it_belongs(opened: tuple[int, np.ndarray], count: int) -> None:
    handle, content = opened
    rows = np.random.default_rng(count).integers(0, len(content), count)
    assert np.array_equal(read_scattered(handle, rows * 64, 64), content[rows])
    assert np.array_equal(read_scattered(handle, rows * 64 + 3, 5), content[rows, 3:8])


def test_an_end_before_the_last_byte_is_told(opened: tuple[int, np.ndarray]) -> None:
    handle, content = opened
    with pytest.raises(EOFError):
        read_scattered(handle, np.asarray([0, 64 * len(content) - 10]), 64)
    assert np.array_equal(read_scattered(handle, np.asarray([64]), 64)[0], content[1])


def test_a_handle_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    handle = os.open(tmp_path / "w", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError, match="Bad file"):
        read_scattered(handle, np.asarray([0]), 4)
    os.close(handle)


def test_a_forked_process_reads_with_a_list_of_its_own(opened: tuple[int, np.ndarray]) -> None:
    handle, content = opened
    rows = np.arange(100)
    read_scattered(handle, rows * 64, 64)
    if not (child := os.fork()):
        same = False
        try:
            same = np.array_equal(read_scattered(handle, rows * 64, 64), content[:100])
        finally:
            os._exit(0 if same else 1)  # whatever it met, the child must not go on with the tests
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(read_scattered(handle, rows * 64, 64), content[:100])
