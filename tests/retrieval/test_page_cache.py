from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.files import DamagedIndex
from retrieval.page_cache import PageCache
from retrieval.vector_pages import PageFile, PageWriter, resize_page_cache, rows_per_page

D = 8


@pytest.fixture(autouse=True)
def small_cache():
    resize_page_cache(4 * 12_288)
    yield
    resize_page_cache(64 << 20)


def stored(place: Path, count: int, page_rows: int = 256) -> tuple[PageFile, np.ndarray]:
    vectors = np.arange(count * D, dtype=np.float16).reshape(count, D)
    writer = PageWriter(place, D, page_rows)
    for vector in vectors:
        writer.add(vector.tobytes())
    return PageFile(place, count, D, page_rows, writer.finish()), vectors


@pytest.mark.parametrize("dimension", [1, 7, 16, 384, 768, 1024, 4096])
def test_a_page_is_whole_rows_and_whole_memory_pages(dimension: int) -> None:
    rows = rows_per_page(dimension)
    assert rows >= 1
    assert (2 * dimension * rows) % 4096 == 0


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 5000])
def test_every_way_of_reading_gives_what_was_written(tmp_path: Path, count: int) -> None:
    pages, vectors = stored(tmp_path / "v", count)
    assert np.array_equal(
        np.concatenate([np.empty((0, D), np.float16), *(b for _, b in pages.blocks())]), vectors
    )
    random = np.random.default_rng(0)
    for _ in range(20):
        rows = random.integers(0, max(1, count), 50 if count else 0)
        assert np.array_equal(pages.rows_at(rows), vectors[rows])


@given(wanted=st.lists(st.lists(st.integers(0, 4999), max_size=40), max_size=12))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_rows_are_right_whatever_was_read_before(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[list[int]]
) -> None:
    pages, vectors = stored(tmp_path_factory.mktemp("pages") / "v", 5000)
    for rows in wanted:
        chosen = np.asarray(rows, np.int64)
        assert np.array_equal(pages.rows_at(chosen), vectors[chosen])
    assert pages.held_bytes() <= 4 * 12_288


def test_what_is_read_again_and_again_is_found_in_memory(tmp_path: Path) -> None:
    pages, _ = stored(tmp_path / "v", 5000)
    rows = np.asarray([3, 300, 600], np.int64)
    for _ in range(10):
        pages.rows_at(rows)
    assert pages.hits >= 21
    assert pages.misses <= 9


def test_a_page_that_is_missed_once_does_not_push_out_others(tmp_path: Path) -> None:
    pages, _ = stored(tmp_path / "v", 5000)
    list(pages.blocks())  # all pages are checked
    used = np.asarray([3], np.int64)
    for _ in range(3):
        pages.rows_at(used)
    for start in range(1000, 2000, 256):
        pages.rows_at(np.asarray([start], np.int64))
    before = pages.hits
    pages.rows_at(used)
    assert pages.hits == before + 1


def test_more_pages_than_the_cache_holds_are_read_at_once(tmp_path: Path) -> None:
    pages, vectors = stored(tmp_path / "v", 5000)
    rows = np.arange(5000, dtype=np.int64)
    assert np.array_equal(pages.rows_at(rows), vectors)


def test_a_changed_page_is_refused(tmp_path: Path) -> None:
    _, vectors = stored(tmp_path / "v", 1000)
    content = bytearray((tmp_path / "v").read_bytes())
    writer = PageWriter(tmp_path / "w", D, 256)
    for vector in vectors:
        writer.add(vector.tobytes())
    sums = writer.finish()
    content[5000] ^= 1
    (tmp_path / "w").write_bytes(content)
    pages = PageFile(tmp_path / "w", 1000, D, 256, sums)
    assert np.array_equal(pages.rows_at(np.asarray([10], np.int64)), vectors[10:11])
    with pytest.raises(DamagedIndex):
        pages.rows_at(np.asarray([300], np.int64))
    with pytest.raises(DamagedIndex):
        pages.block(0, 1000)


def test_threads_that_push_out_each_others_pages_read_right_rows(tmp_path: Path) -> None:
    pages, vectors = stored(tmp_path / "v", 5000)
    wrong: list[int] = []

    def read(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(150):
            rows = random.integers(0, 5000, 30)
            if not np.array_equal(pages.rows_at(rows), vectors[rows]):
                wrong.append(seed)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_cache_of_nothing_still_holds_two_pages() -> None:
    assert PageCache(0, 4096).slots == 2
