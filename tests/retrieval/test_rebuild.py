"""Builds of one part and of all, on made-up vectors."""

from __future__ import annotations

import shutil
import threading

import numpy as np
import pytest

from core.db import Database
from core.models import PassageVectorRow
from core.settings import Settings, get_settings
from core.types import Scope, Tier
from retrieval import going_live
from retrieval.build_files import BuildState
from retrieval.build_gate import BuildRejected
from retrieval.builds import COMPACT, FULL, ROLLBACK
from retrieval.manifest import PARTS, IndexFolder, Manifest
from retrieval.rebuild import Builder, BuildPlan, run
from retrieval.writer import index_writer
from tests.retrieval.indexing import DIMENSION, SPACE, Corpus

ALL = Scope("t1", None, "test")


@pytest.fixture
def corpus(sqlite_database: Database, settings: Settings) -> Corpus:
    return Corpus(sqlite_database, IndexFolder(settings.index_dir))


def no_encoder(texts):
    raise AssertionError("every passage has a vector")


def builder(corpus: Corpus, *parts: str, mode: str = FULL, generation: int = 0, **options) -> Builder:
    plan = BuildPlan("bld_test", parts or PARTS, mode, SPACE, generation)
    return Builder(corpus.db, corpus.folder, plan, options.pop("encode", no_encoder), **options)


def served(corpus: Corpus) -> Manifest:
    return corpus.folder.read_manifest(corpus.folder.current_generation() or 0)


def swap(corpus: Corpus, build: Builder, state: BuildState) -> Manifest:
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        return build.swap(writer, state)


def ids(hits: list[tuple[int, float]]) -> list[int]:
    return [passage_id for passage_id, _ in hits]


def assert_exact(corpus: Corpus, scope: Scope = ALL) -> None:
    index = corpus.reader().snapshot()
    assert not index.dense.refused
    query = corpus.query()
    for k in (3, 1000):
        assert ids(index.dense.search(query, k, scope)) == corpus.expected(query, k, scope)
    found = ids(index.lexical.search("lantern", 1000, scope))
    assert sorted(found) == sorted(corpus.expected(query, 1000, scope))


def fill(corpus: Corpus, passages: int, tier: str) -> str:
    document = corpus.document(passages)
    corpus.index(document)
    corpus.place(document, tier)
    return document


@pytest.mark.parametrize("tier", list(Tier))
@pytest.mark.parametrize("passages", [0, 1, 30, 300])
@pytest.mark.parametrize("mode", [FULL, COMPACT])
def test_a_tier_of_any_size_is_rebuilt_and_serves_the_same(
    corpus: Corpus, tier: Tier, passages: int, mode: str
) -> None:
    fill(corpus, 3, "warm" if tier is Tier.HOT else "hot")
    if passages:
        fill(corpus, passages, tier.value)
    before = served(corpus)
    published = run(builder(corpus, tier.value, mode=mode))
    assert published.generation == before.generation + 1
    assert published.tier(tier.value).live_count == passages
    assert {t: published.tier(t) for t in Tier if t is not tier} == {
        t: before.tier(t) for t in Tier if t is not tier
    }
    assert published.lexical == before.lexical
    assert_exact(corpus)
    assert not list(corpus.folder.building.iterdir())


def test_the_lexical_index_is_rebuilt_alone(corpus: Corpus) -> None:
    fill(corpus, 5, "hot")
    before = served(corpus)
    published = run(builder(corpus, "lexical"))
    assert published.tiers == before.tiers
    assert published.lexical != before.lexical
    assert_exact(corpus)


def test_an_empty_index_can_be_rebuilt(corpus: Corpus) -> None:
    assert run(builder(corpus)).live_count == 0
    assert_exact(corpus)
    corpus.index(corpus.document(2))
    assert_exact(corpus)


@pytest.mark.parametrize("mode", [FULL, COMPACT])
def test_rebuild_leaves_tombstones_behind(corpus: Corpus, mode: str) -> None:
    for tier in Tier:
        fill(corpus, 5, tier.value)
        corpus.unindex(fill(corpus, 5, tier.value))
    parts = tuple(tier.value for tier in Tier) if mode == COMPACT else PARTS
    published = run(builder(corpus, *parts, mode=mode))
    for tier in Tier:
        assert published.tier(tier).row_count == published.tier(tier).live_count == 5
        assert published.tier(tier).dead is None
    assert_exact(corpus)


def test_a_compaction_reads_no_vector_of_the_database(corpus: Corpus) -> None:
    fill(corpus, 20, "warm")
    corpus.unindex(fill(corpus, 5, "warm"))
    with corpus.db.write() as session:
        session.query(PassageVectorRow).delete()
    published = run(builder(corpus, "warm", mode=COMPACT))
    assert published.tier("warm").row_count == 20
    assert_exact(corpus)


def test_a_compaction_of_damaged_files_says_what_to_do_instead(corpus: Corpus) -> None:
    fill(corpus, 5, "warm")
    before = served(corpus)
    for page in corpus.folder.tier("warm").segments.rglob("vectors.f16"):
        page.write_bytes(page.read_bytes()[:-1])
    with pytest.raises(BuildRejected, match="Rebuild in full"):
        run(builder(corpus, "warm", mode=COMPACT))
    assert served(corpus) == before


def test_segments_are_cut_by_the_settings(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEO_RETRIEVAL__SEGMENT_ROWS", "256")
    get_settings.cache_clear()
    for n in range(3):
        corpus.index(corpus.document(100, collection=f"c{n}"))
    published = run(builder(corpus))
    assert [s.count for s in published.tier("hot").segments] == [256, 44]
    assert_exact(corpus)
    assert_exact(corpus, Scope("t1", ("c2",), "test"))


@pytest.mark.parametrize("parts", [PARTS, ("hot",), ("warm",), ("lexical",)])
def test_what_comes_goes_and_moves_during_a_build_is_in_the_new_generation(
    corpus: Corpus, parts: tuple[str, ...]
) -> None:
    first, second, third = (fill(corpus, 3, tier) for tier in ("hot", "warm", "hot"))
    build = builder(corpus, *parts)
    state = build.build()
    corpus.unindex(first)
    corpus.index(corpus.document(4))
    corpus.place(second, "hot")
    corpus.place(third, "warm")
    swap(corpus, build, state)
    build.files.discard()
    assert [served(corpus).tier(tier).live_count for tier in Tier] == [7, 3, 0]
    assert_exact(corpus)


def test_a_build_that_lacks_live_vectors_is_rejected_and_changes_nothing(corpus: Corpus) -> None:
    corpus.index(corpus.document(3))
    before = corpus.folder.current_generation()
    build = builder(corpus)
    state = build.build()
    hidden = corpus.document(2)  # becomes live, and no log entry tells of it
    with corpus.db.write() as session:
        going_live.make_live(session, hidden, 1, [])
    with pytest.raises(BuildRejected, match="holds 3 vectors of the hot tier, the database 5"):
        swap(corpus, build, state)
    assert corpus.folder.current_generation() == before


def test_a_damaged_build_is_rejected_before_the_swap(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus.index(corpus.document(3))
    before = corpus.folder.current_generation()
    verify = Builder._verified

    def cut_then_verify(self: Builder, state: BuildState) -> Manifest:
        for page in self.files.index.root.rglob("vectors.f16"):
            page.write_bytes(page.read_bytes()[:-1])
        return verify(self, state)

    monkeypatch.setattr(Builder, "_verified", cut_then_verify)
    with pytest.raises(BuildRejected, match="checksum"):
        run(builder(corpus))
    assert corpus.folder.current_generation() == before
    assert_exact(corpus)


def test_rollback_serves_the_kept_generation_with_what_came_since(corpus: Corpus) -> None:
    first, second = fill(corpus, 3, "hot"), fill(corpus, 3, "warm")
    old = served(corpus)
    run(builder(corpus))
    corpus.unindex(first)
    corpus.place(second, "cold")
    corpus.index(corpus.document(2))
    before = served(corpus)
    published = run(builder(corpus, mode=ROLLBACK, generation=old.generation))
    assert published.generation == before.generation + 1
    assert {s.name for s in old.tier("warm").segments} <= {s.name for s in published.tier("warm").segments}
    assert [published.tier(tier).live_count for tier in Tier] == [2, 0, 3]
    assert_exact(corpus)
    corpus.index(corpus.document(1))
    assert_exact(corpus)


def test_one_tier_alone_can_go_back(corpus: Corpus) -> None:
    fill(corpus, 3, "hot")
    fill(corpus, 4, "warm")
    old = served(corpus)
    run(builder(corpus, "warm"))
    corpus.index(corpus.document(2))
    before = served(corpus)
    published = run(builder(corpus, "warm", mode=ROLLBACK, generation=old.generation))
    assert published.tier("warm").segments == old.tier("warm").segments
    assert published.tier("hot") == before.tier("hot")
    assert_exact(corpus)


def test_a_lost_index_folder_is_rebuilt_from_the_database(corpus: Corpus) -> None:
    fill(corpus, 3, "hot")
    fill(corpus, 2, "cold")
    shutil.rmtree(corpus.folder.root)
    corpus.index(corpus.document(1))  # the writer goes on with what comes from now on
    assert served(corpus).refused.keys() == set(PARTS)
    assert served(corpus).live_count == 1
    run(builder(corpus))
    assert not served(corpus).refused
    assert_exact(corpus)


@pytest.mark.parametrize("tier", list(Tier))
def test_a_damaged_tier_is_refused_alone_and_rebuilt_while_the_others_serve(
    corpus: Corpus, tier: Tier
) -> None:
    documents = {one: fill(corpus, 3, one.value) for one in Tier}
    damaged = {i for i in corpus.vectors if corpus.document_of(i) == documents[tier]}
    for page in corpus.folder.tier(tier.value).segments.rglob("*"):
        if page.is_file():
            page.write_bytes(page.read_bytes()[: page.stat().st_size // 2])
    told = []
    reader = corpus.reader()
    reader._on_damage = lambda part, reason: told.append(part)
    index = reader.snapshot()
    assert told == [tier.value]
    assert index.dense.refused.keys() == {tier.value}
    query = corpus.query()
    expected = [i for i in corpus.expected(query, 9, ALL) if i not in damaged]
    assert ids(index.dense.search(query, 9, ALL)) == expected
    assert len(index.lexical.search("lantern", 9, ALL)) == 9
    run(builder(corpus, tier.value))
    assert_exact(corpus)


def test_passages_without_a_vector_are_encoded_by_the_build(corpus: Corpus) -> None:
    corpus.index(corpus.document(3))
    with corpus.db.write() as session:
        session.query(PassageVectorRow).delete()
    vectors = np.eye(DIMENSION, dtype=np.float32)
    published = run(builder(corpus, encode=lambda texts: vectors[: len(texts)]))
    assert published.live_count == 3


def test_queries_during_rebuilds_and_one_that_fails_find_everything(corpus: Corpus) -> None:
    for n in range(9):
        fill(corpus, 5, list(Tier)[n % 3].value)
    reader = corpus.reader()
    stop, wrong, asked = threading.Event(), [], []

    def keep_asking() -> None:
        rng = np.random.default_rng(threading.get_ident() % 1000)
        while not stop.is_set():
            vector = rng.standard_normal(DIMENSION).astype(np.float32)
            vector /= np.linalg.norm(vector)
            found = ids(reader.snapshot().dense.search(vector, 5, ALL))
            asked.append(1)
            if found != corpus.expected(vector, 5, ALL):
                wrong.append(found)

    def fails(_state: BuildState, done: int, _total: int) -> None:
        if done:
            raise BuildRejected("made to fail")

    threads = [threading.Thread(target=keep_asking) for _ in range(2)]
    for thread in threads:
        thread.start()
    for part in ("hot", "warm", "cold", *PARTS):
        run(builder(corpus, part))
    before = corpus.folder.current_generation()
    with pytest.raises(BuildRejected):
        run(builder(corpus, step=fails))
    assert corpus.folder.current_generation() == before
    stop.set()
    for thread in threads:
        thread.join()
    assert asked
    assert wrong == []
