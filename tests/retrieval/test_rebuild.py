from __future__ import annotations

import threading

import numpy as np
import pytest

from core.db import Database
from core.errors import Conflict, InvalidInput, NotFound
from core.models import BuildRow, JobRow, PassageVectorRow
from core.settings import Settings
from core.types import BuildStatus, Role, Scope
from retrieval import builds
from retrieval import index_repository as repository
from retrieval.manifest import IndexFolder
from retrieval.rebuild import BuildCancelled, Builder, BuildRejected, rebuild, repair, roll_back
from retrieval.writer import index_writer
from tests.retrieval.indexing import DIMENSION, SPACE, Corpus

ALL = Scope("t1", None, "test")
OPERATOR = Scope("t1", None, "key_1", Role.OPERATOR)


@pytest.fixture
def corpus(sqlite_database: Database, settings: Settings) -> Corpus:
    return Corpus(sqlite_database, IndexFolder(settings.index_dir))


def no_encoder(texts):
    raise AssertionError("every passage has a vector")


def builder(corpus: Corpus, **options) -> Builder:
    return Builder(corpus.db, corpus.folder, SPACE, "bld_test", options.pop("encode", no_encoder), **options)


def ids(hits: list[tuple[int, float]]) -> list[int]:
    return [passage_id for passage_id, _ in hits]


def assert_exact(corpus: Corpus, scope: Scope = ALL) -> None:
    index = corpus.reader().snapshot()
    query = corpus.query()
    for k in (3, 1000):
        assert ids(index.hot.search(query, k, scope)) == corpus.expected(query, k, scope)
    found = ids(index.lexical.search("lantern", 1000, scope))
    assert sorted(found) == sorted(corpus.expected(query, 1000, scope))


@pytest.mark.parametrize("passages", [0, 1, 30])
def test_rebuild_of_few_vectors_serves_the_same(corpus: Corpus, passages: int) -> None:
    if passages:
        corpus.index(corpus.document(passages))
    before = corpus.folder.current_generation() or 0
    published = rebuild(builder(corpus))
    assert published.generation > before
    assert published.live_count == passages
    assert_exact(corpus)
    assert not list(corpus.folder.building.iterdir())


def test_rebuild_leaves_tombstones_and_orphans_behind(corpus: Corpus) -> None:
    kept, deleted = corpus.document(5), corpus.document(5)
    corpus.index(kept)
    corpus.index(deleted)
    corpus.unindex(deleted)
    published = rebuild(builder(corpus))
    assert sum(s.count for s in published.tier("hot").segments) == published.live_count == 5
    assert published.tier("hot").dead is None
    assert_exact(corpus)


def test_pages_and_segments_are_cut_by_the_settings(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    from core.settings import get_settings

    monkeypatch.setenv("GEO_RETRIEVAL__PAGE_VECTORS", "16")
    get_settings.cache_clear()
    for n in range(3):
        corpus.index(corpus.document(100, collection=f"c{n}"))
    published = rebuild(builder(corpus))
    assert [s.count for s in published.tier("hot").segments] == [256, 44]
    pages = list(
        (corpus.folder.tier("hot").segments / published.tier("hot").segments[0].name).glob("page-*.npy")
    )
    assert len(pages) == 16
    assert_exact(corpus)
    assert_exact(corpus, Scope("t1", ("c2",), "test"))


def test_what_is_added_and_deleted_during_a_build_is_in_the_new_generation(corpus: Corpus) -> None:
    first, second = corpus.document(3), corpus.document(3)
    corpus.index(first)
    corpus.index(second)
    build = builder(corpus)
    manifest = build.build()
    corpus.unindex(first)
    corpus.index(corpus.document(4))
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        published = build.swap(writer, manifest)
    build.discard()
    assert published.live_count == 7
    assert_exact(corpus)


def test_a_build_that_lacks_live_vectors_is_rejected_and_changes_nothing(corpus: Corpus) -> None:
    corpus.index(corpus.document(3))
    before = corpus.folder.current_generation()
    build = builder(corpus)
    manifest = build.build()
    hidden = corpus.document(2)  # becomes live, and no log entry tells of it
    with corpus.db.write() as session:
        repository.make_live(session, hidden, 1, [])
    with (
        index_writer(corpus.db, SPACE, folder=corpus.folder) as writer,
        pytest.raises(BuildRejected, match="holds 3 vectors, the database 5"),
    ):
        build.swap(writer, manifest)
    assert corpus.folder.current_generation() == before


def test_a_damaged_build_is_rejected_before_the_swap(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus.index(corpus.document(3))
    before = corpus.folder.current_generation()
    verify = Builder._verify

    def cut_then_verify(self: Builder, aside, manifest) -> None:
        for page in aside.root.rglob("page-*.npy"):
            page.write_bytes(page.read_bytes()[:-1])
        verify(self, aside, manifest)

    monkeypatch.setattr(Builder, "_verify", cut_then_verify)
    with pytest.raises(BuildRejected, match="checksum"):
        rebuild(builder(corpus))
    assert corpus.folder.current_generation() == before
    assert not list(corpus.folder.building.iterdir())
    assert_exact(corpus)


def test_a_cancelled_build_changes_nothing(corpus: Corpus) -> None:
    corpus.index(corpus.document(3))
    before = corpus.folder.current_generation()
    with pytest.raises(BuildCancelled):
        rebuild(builder(corpus, cancelled=lambda: True))
    assert corpus.folder.current_generation() == before
    assert not list(corpus.folder.building.iterdir())


def test_rollback_serves_the_kept_generation_with_what_came_since(corpus: Corpus) -> None:
    first = corpus.document(3)
    corpus.index(first)
    corpus.index(corpus.document(3))
    rebuild(builder(corpus))
    corpus.unindex(first)
    corpus.index(corpus.document(2))
    before = corpus.folder.current_generation()
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        published = roll_back(writer)
    assert published.generation == (before or 0) + 1
    assert_exact(corpus)
    corpus.index(corpus.document(1))
    assert_exact(corpus)


def test_damage_is_repaired_on_the_spot(corpus: Corpus) -> None:
    for _ in range(3):
        corpus.index(corpus.document(3))
    for page in corpus.folder.tier("hot").segments.rglob("*.npy"):
        page.write_bytes(b"broken")
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        repair(writer, no_encoder)
    assert_exact(corpus)


def test_a_lost_index_folder_is_rebuilt_from_the_database(corpus: Corpus) -> None:
    import shutil

    corpus.index(corpus.document(3))
    shutil.rmtree(corpus.folder.root)
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        repair(writer, no_encoder)
    assert_exact(corpus)


def test_passages_without_a_vector_are_encoded_by_the_build(corpus: Corpus) -> None:
    corpus.index(corpus.document(3))
    with corpus.db.write() as session:
        session.query(PassageVectorRow).delete()
    vectors = np.eye(DIMENSION, dtype=np.float32)
    published = rebuild(builder(corpus, encode=lambda texts: vectors[: len(texts)]))
    assert published.live_count == 3


def test_queries_during_a_rebuild_find_everything(corpus: Corpus) -> None:
    for _ in range(10):
        corpus.index(corpus.document(5))
    reader = corpus.reader()
    stop, wrong, asked = threading.Event(), [], []

    def keep_asking() -> None:
        rng = np.random.default_rng(threading.get_ident() % 1000)
        while not stop.is_set():
            vector = rng.standard_normal(DIMENSION).astype(np.float32)
            vector /= np.linalg.norm(vector)
            found = ids(reader.snapshot().hot.search(vector, 5, ALL))
            asked.append(1)
            if found != corpus.expected(vector, 5, ALL):
                wrong.append(found)

    threads = [threading.Thread(target=keep_asking) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        rebuild(builder(corpus))
    stop.set()
    for thread in threads:
        thread.join()
    assert asked
    assert wrong == []


# -- doors -------------------------------------------------------------------------------------


def test_a_second_build_of_a_tier_is_a_conflict(database: Database) -> None:
    with database.write() as session:
        first = builds.request_rebuild(session, OPERATOR, tier="hot")
        assert session.query(JobRow).filter_by(subject_id=first.id).one().queue == "rebuild"
    with pytest.raises(Conflict) as error, database.write() as session:
        builds.request_rebuild(session, OPERATOR, tier="all")
    assert error.value.ids == {"build_id": first.id}
    with database.write() as session:
        builds.end_build(session, first.id, BuildStatus.PUBLISHED, to_generation=1, stats={})
        second = builds.request_rebuild(session, OPERATOR, tier="hot", mode="compact")
    with database.read() as session:
        assert [b.id for b in builds.list_builds(session, OPERATOR)] == [second.id, first.id]
        assert builds.tier_status(session)[0].open_build == second.id


def test_unknown_tiers_modes_and_builds_are_named(database: Database) -> None:
    with database.write() as session:
        with pytest.raises(NotFound):
            builds.request_rebuild(session, OPERATOR, tier="tepid")
        with pytest.raises(Conflict, match="not configured"):
            builds.request_rebuild(session, OPERATOR, tier="cold")
        with pytest.raises(InvalidInput):
            builds.request_rebuild(session, OPERATOR, tier="hot", mode="quick")
        with pytest.raises(InvalidInput):
            builds.request_rebuild(session, OPERATOR, tier="hot", model="another/encoder")
        with pytest.raises(NotFound):
            builds.get_build(session, OPERATOR, build_id="bld_none")
        with pytest.raises(Conflict, match="no earlier generation"):
            builds.request_rollback(session, OPERATOR, tier="hot")


def test_a_build_that_has_not_begun_is_cancelled_at_once(database: Database) -> None:
    with database.write() as session:
        build = builds.request_rebuild(session, OPERATOR, tier="hot")
        assert builds.cancel_build(session, OPERATOR, build_id=build.id).status == "cancelled"
        with pytest.raises(Conflict):
            builds.cancel_build(session, OPERATOR, build_id=build.id)
        assert session.get_one(BuildRow, build.id).open_key is None


def test_tiers_tell_what_they_serve(corpus: Corpus) -> None:
    with corpus.db.read() as session:
        assert [(t.tier, t.status) for t in builds.tier_status(session)] == [
            ("hot", "empty"), ("warm", "not_configured"), ("cold", "not_configured"),
        ]  # fmt: skip
    corpus.index(corpus.document(3))
    with corpus.db.read() as session:
        hot = builds.tier_status(session)[0]
    assert (hot.status, hot.vectors, hot.generation, hot.pending) == ("ready", 3, 1, 0)
    builds.report_damage(corpus.db, "hot", "a page is cut")
    builds.report_damage(corpus.db, "hot", "a page is cut")
    with corpus.db.read() as session:
        hot = builds.tier_status(session)[0]
    assert hot.status == "refused"
    assert hot.open_build is not None
    rebuild(builder(corpus))
    with corpus.db.read() as session:
        assert builds.tier_status(session)[0].status == "ready"
