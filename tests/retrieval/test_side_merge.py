"""Hot segments merged beside the writer: nothing is lost, doubled or brought back, whatever else happens."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.db import Database, get_database
from core.settings import Settings, get_settings
from core.types import Scope, Tier
from retrieval import lease, side_merge
from retrieval.builds import COMPACT
from retrieval.manifest import IndexFolder
from retrieval.rebuild import Builder, BuildPlan
from retrieval.rebuild import run as rebuild
from retrieval.side_merge import merge_aside, worth_merging
from retrieval.writer import index_writer
from tests.retrieval.indexing import SPACE, Corpus
from tests.retrieval.killed_writer import FINISHED, run_until_killed

ALL = Scope("t1", None, "test")
FULL = 1 << 18


@pytest.fixture
def corpus(sqlite_database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    monkeypatch.setattr(side_merge, "_LEAST_ROWS", 1)
    monkeypatch.setenv("GEO_RETRIEVAL__SEGMENT_MERGE_COUNT", "1000")  # leaves all of it to the merge aside
    get_settings.cache_clear()
    return Corpus(sqlite_database, IndexFolder(settings.index_dir))


def grown(corpus: Corpus, documents: int = 6) -> list[str]:
    names = []
    for n in range(documents):
        names.append(corpus.document(1 + n % 3, collection=f"c{n % 2}"))
        corpus.index(names[-1])
    return names


def hot_segments(corpus: Corpus) -> list[int]:
    return [s.segment.ref.count for s in corpus.reader().snapshot().hot.segments]


def assert_served(corpus: Corpus) -> None:
    """Every vector is found once, with its own cosine, in its own collection, and nothing else is."""
    index = corpus.reader().snapshot()
    assert not index.dense.refused
    query = corpus.query()
    for scope in (ALL, Scope("t1", ("c1",), "test"), Scope("t2", None, "test")):
        hits = index.dense.search(query, 1000, scope)
        assert [i for i, _ in hits] == corpus.expected(query, 1000, scope)
        for passage_id, score in hits:
            assert score == pytest.approx(float(corpus.vectors[passage_id] @ query), abs=1e-4)


@given(st.lists(st.integers(1, FULL), max_size=20))
def test_merges_are_worth_their_copies_and_end_with_few_segments(counts: list[int]) -> None:
    copied, total = 0, sum(counts)
    while chosen := worth_merging(counts, FULL):
        rows = sum(counts[at] for at in chosen)
        assert len(chosen) > 1
        assert rows <= FULL
        assert 4 * (rows - max(counts[at] for at in chosen)) >= max(counts[at] for at in chosen)
        copied += rows
        counts = [count for at, count in enumerate(counts) if at not in chosen] + [rows]
    assert sum(counts) == total
    assert copied <= 30 * total
    assert len([c for c in counts if c >= 2048]) <= 12 + 2 * total // FULL


@pytest.mark.parametrize(
    ("counts", "merged"),
    [
        ([], []),
        ([200_000], []),
        ([2000, 2000], []),  # scanned in a moment
        ([45_000, 40_000, 5000, 5000, 5000], [45_000, 40_000, 5000, 5000, 5000]),
        ([100_000, 5000, 4000], [5000, 4000]),  # the large one is not copied for so little
        ([100_000, 20_000, 9000], [100_000, 20_000, 9000]),
        ([FULL, FULL, 9000, 9000], [9000, 9000]),
        ([200_000, 100_000], []),  # together above what one may hold
    ],
)
def test_what_is_merged(counts: list[int], merged: list[int]) -> None:
    assert sorted(counts[at] for at in worth_merging(counts, FULL)) == sorted(merged)


def test_one_segment_answers_as_many_did(corpus: Corpus) -> None:
    names = grown(corpus)
    corpus.unindex(names[0])
    assert len(hot_segments(corpus)) > 3
    before = corpus.folder.current_generation()
    assert merge_aside(corpus.db, corpus.folder) == 1
    assert hot_segments(corpus) == [len(corpus.vectors)]  # the dead row stayed behind
    assert corpus.folder.current_generation() == (before or 0) + 1
    assert_served(corpus)
    assert merge_aside(corpus.db, corpus.folder) == 0
    assert not (corpus.folder.root / "merging").exists()


def test_an_index_of_nothing_is_left_alone(corpus: Corpus) -> None:
    assert merge_aside(corpus.db, corpus.folder) == 0
    name = corpus.document(2)
    corpus.index(name)
    corpus.unindex(name)
    assert merge_aside(corpus.db, corpus.folder) == 0


def test_segments_of_dead_rows_alone_stay_for_the_writer(corpus: Corpus) -> None:
    for name in grown(corpus, 3):
        corpus.unindex(name)
    assert merge_aside(corpus.db, corpus.folder) == 0
    assert_served(corpus)


def test_what_comes_goes_and_changes_meanwhile_is_served(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = grown(corpus, 5)  # so few that the writer merges none of them
    corpus.place(names[4], "warm")

    def meanwhile() -> None:
        corpus.unindex(names[1])
        corpus.index(corpus.document(2, collection="c0", document=names[2]))  # a new version
        corpus.index(corpus.document(3))
        corpus.place(names[3], "cold")
        corpus.place(names[4], "hot")

    _before_the_swap(monkeypatch, meanwhile)
    assert merge_aside(corpus.db, corpus.folder) >= 1
    assert_served(corpus)


def test_segments_that_a_rebuild_replaced_end_the_merge(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(corpus)

    def meanwhile() -> None:
        plan = BuildPlan("bld_1", ("hot",), COMPACT, SPACE)
        rebuild(Builder(corpus.db, corpus.folder, plan, _no_encoder))

    _before_the_swap(monkeypatch, meanwhile)
    assert merge_aside(corpus.db, corpus.folder) == 0
    assert_served(corpus)


def test_a_damaged_segment_is_not_merged(corpus: Corpus) -> None:
    grown(corpus)
    damaged = next(corpus.folder.tier("hot").segments.glob("*/vectors.f16"))
    damaged.write_bytes(damaged.read_bytes()[:10])
    assert merge_aside(corpus.db, corpus.folder) == 0


def test_one_merge_at_a_time(corpus: Corpus) -> None:
    grown(corpus)
    with lease.writer_lease(corpus.db, name=side_merge._LEASE):
        assert merge_aside(corpus.db, corpus.folder) == 0
    assert merge_aside(corpus.db, corpus.folder) == 1


def merge_now() -> None:
    side_merge._LEAST_ROWS = 1
    merge_aside(get_database())


def test_a_merge_killed_at_any_step_loses_and_doubles_nothing(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "TTL_S", 0.3)
    names = grown(corpus, 3)
    step, finished = 0, False
    while not finished:
        step += 9
        assert step < 200
        before = corpus.folder.current_generation() or 0
        finished = run_until_killed(merge_now, step) == FINISHED
        assert not finished or (corpus.folder.current_generation() or 0) > before
        assert_served(corpus)
        time.sleep(0.3)  # until the leases of the killed have run out
        corpus.unindex(names.pop(0))  # also a publish, which collects what nothing names
        names += grown(corpus, 1)
        served = {s.name for s in corpus.reader().snapshot().hot.segments}
        on_disk = {path.name for path in corpus.folder.tier("hot").segments.iterdir()}
        assert served <= on_disk
    assert step > 30
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        writer.catch_up()
    merge_aside(corpus.db, corpus.folder)
    assert_served(corpus)
    assert not (corpus.folder.root / "merging").exists()


def _before_the_swap(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> None:
    written, once = side_merge._written, [meanwhile]

    def slow(*given, **named):
        made = written(*given, **named)
        if once:
            once.pop()()
        return made

    monkeypatch.setattr(side_merge, "_written", slow)


def _no_encoder(_texts):
    raise AssertionError("every passage has a vector")


def test_other_tiers_are_merged_the_same_way(corpus: Corpus) -> None:
    names = grown(corpus)
    for name in names:
        corpus.place(name, "warm")
    merge_aside(corpus.db, corpus.folder, Tier.WARM)
    assert_served(corpus)
