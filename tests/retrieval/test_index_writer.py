from __future__ import annotations

import json
import time

import numpy as np
import pytest

from core.db import Database
from core.errors import ConfigError, LeaseLost, TransientError
from core.models import BuildRow, DocumentRow, LeaseRow
from core.settings import Settings
from core.types import Scope
from retrieval import going_live
from retrieval import index_repository as repository
from retrieval.files import DamagedIndex
from retrieval.lease import writer_lease
from retrieval.manifest import IndexFolder, Manifest
from retrieval.tier_status import tier_status
from retrieval.writer import VectorSpace, check_space, index_writer, verify_segments
from tests.retrieval.indexing import SPACE, Corpus

ALL = Scope("t1", None, "test")


@pytest.fixture
def corpus(sqlite_database: Database, settings: Settings) -> Corpus:
    return Corpus(sqlite_database, IndexFolder(settings.index_dir))


def ids(hits: list[tuple[int, float]]) -> list[int]:
    return [passage_id for passage_id, _ in hits]


def manifest(corpus: Corpus) -> Manifest:
    generation = corpus.folder.current_generation()
    assert generation is not None
    return corpus.folder.read_manifest(generation)


def assert_exact(corpus: Corpus, scope: Scope = ALL) -> None:
    reader = corpus.reader()
    for k in (1, 5, 1000):
        query = corpus.query()
        assert ids(reader.snapshot().hot.search(query, k, scope)) == corpus.expected(query, k, scope)


def test_search_equals_an_exact_scan_over_many_segments_and_merges(corpus: Corpus) -> None:
    for n in range(30):
        corpus.index(corpus.document(n % 4 + 1, collection=f"c{n % 3}"))
    assert len(manifest(corpus).tier("hot").segments) <= 9
    assert manifest(corpus).live_count == len(corpus.vectors)
    assert_exact(corpus)
    assert_exact(corpus, Scope("t1", ("c1",), "test"))
    assert_exact(corpus, Scope("t1", ("c0", "c2"), "test"))


def test_an_index_that_was_never_written_finds_nothing(corpus: Corpus) -> None:
    index = corpus.reader().snapshot()
    assert index.hot.search(corpus.query(), 5, ALL) == []
    assert index.lexical.search("lantern", 5, ALL) == []


def test_more_neighbours_than_vectors_gives_what_there_is(corpus: Corpus) -> None:
    corpus.index(corpus.document(3))
    hits = corpus.reader().snapshot().hot.search(corpus.query(), 50, ALL)
    assert len(hits) == 3
    assert min(ids(hits)) > 0


def test_a_scope_finds_its_own_vectors_only(corpus: Corpus) -> None:
    corpus.index(corpus.document(3, tenant="t1", collection="c1"))
    corpus.index(corpus.document(3, tenant="t2", collection="c2"))
    index = corpus.reader().snapshot()
    query = corpus.query()
    for scope in (ALL, Scope("t2", None, "test"), Scope("t2", ("c2",), "test")):
        assert ids(index.hot.search(query, 10, scope)) == corpus.expected(query, 10, scope)
    for scope in (Scope("", None, "x"), Scope("t1", (), "x"), Scope("t1", ("c2",), "x")):
        assert index.hot.search(query, 10, scope) == []
        assert index.lexical.search("lantern", 10, scope) == []


def test_search_can_be_limited_to_passages(corpus: Corpus) -> None:
    for _ in range(12):
        corpus.index(corpus.document(4))
    hot = corpus.reader().snapshot().hot
    query = corpus.query()
    for wanted in (sorted(corpus.vectors)[::2], sorted(corpus.vectors)[:1], [10**9], []):
        best = [i for i in corpus.expected(query, 100, ALL) if i in wanted]
        assert ids(hot.search(query, 5, ALL, passage_ids=wanted)) == best[:5]


def test_indexing_three_times_keeps_one_vector_per_passage(corpus: Corpus) -> None:
    document = corpus.document(4)
    for _ in range(3):
        corpus.index(document)
    assert manifest(corpus).live_count == 4
    assert corpus.reader().snapshot().lexical.search("lantern", 50, ALL) != []
    assert len(corpus.reader().snapshot().lexical.search("lantern", 50, ALL)) == 4
    assert_exact(corpus)


def test_a_deleted_document_is_gone_from_both_routes(corpus: Corpus) -> None:
    kept, deleted = corpus.document(2), corpus.document(3)
    corpus.index(kept)
    corpus.index(deleted)
    gone = [i for i, _ in corpus.reader().snapshot().lexical.search(deleted, 9, ALL)]
    assert len(gone) == 3
    corpus.unindex(deleted)
    index = corpus.reader().snapshot()
    assert index.lexical.search(deleted, 9, ALL) == []
    assert ids(index.hot.search(corpus.query(), 9, ALL)) != []
    assert_exact(corpus)
    assert manifest(corpus).live_count == 2


def test_a_new_version_replaces_the_old_one_in_one_step(corpus: Corpus) -> None:
    document = corpus.document(3)
    corpus.index(document)
    corpus.document(2, document=document)
    corpus.index(document)
    index = corpus.reader().snapshot()
    assert len(index.lexical.search("version2", 9, ALL)) == 2
    assert index.lexical.search("version1", 9, ALL) == []
    assert_exact(corpus)
    with corpus.db.read() as session:
        row = session.get_one(DocumentRow, document)
        assert (row.live_version, row.status) == (2, "ready")


def test_an_older_version_that_comes_late_does_not_go_live(corpus: Corpus) -> None:
    document = corpus.document(3)
    corpus.document(2, document=document)
    corpus.index(document)
    with corpus.db.write() as session:
        gone = going_live.make_live(session, document, 1, [])
        assert session.get_one(DocumentRow, document).live_version == 2
        assert gone == set()


def test_what_a_killed_writer_left_in_the_log_is_done_by_the_next(corpus: Corpus) -> None:
    document = corpus.document(3)
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer, corpus.db.write() as session:
        passages = repository.version_passages(session, document, 1)
        assert passages
        writer.append(session, "add", document, 1, passages)  # and no catch_up
    assert corpus.reader().snapshot().generation == 0
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        writer.catch_up()
    assert_exact(corpus)


def test_a_pointer_that_was_not_moved_is_moved_by_the_next_writer(corpus: Corpus) -> None:
    corpus.index(corpus.document(3))
    old = json.loads(corpus.folder.current.read_text())
    corpus.index(corpus.document(3))
    corpus.folder.current.write_text(json.dumps(old))
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        writer.catch_up()
    assert_exact(corpus)


def test_the_pointer_never_turns_back(corpus: Corpus) -> None:
    corpus.index(corpus.document(1))
    corpus.index(corpus.document(1))
    newest = corpus.folder.current_generation()
    corpus.folder.point_to(1)
    assert corpus.folder.current_generation() == newest


def test_a_writer_that_lost_its_lease_publishes_nothing(corpus: Corpus) -> None:
    corpus.index(corpus.document(1))
    before = corpus.folder.current_generation()
    document = corpus.document(2)
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        with corpus.db.write() as session:
            passages = repository.version_passages(session, document, 1)
            assert passages
            writer.append(session, "add", document, 1, passages)
        with corpus.db.write() as session:
            session.get_one(LeaseRow, "index_writer").fence += 1
        with pytest.raises(LeaseLost):
            writer.catch_up()
        with pytest.raises(LeaseLost), corpus.db.write() as session:
            writer.append(session, "add", document, 1, passages)
    assert corpus.folder.current_generation() == before


def test_a_second_writer_waits_for_a_bounded_time(corpus: Corpus) -> None:
    with writer_lease(corpus.db):
        start = time.monotonic()
        with pytest.raises(TransientError, match="being written by"), writer_lease(corpus.db, wait_s=0.2):
            pass
        assert time.monotonic() - start < 5


def test_fences_only_grow(corpus: Corpus) -> None:
    fences = []
    for _ in range(3):
        with writer_lease(corpus.db) as lease:
            fences.append(lease.fence)
    assert fences == sorted(set(fences))


def test_another_width_is_refused_with_both_numbers() -> None:
    served = Manifest(1, model="test/encoder", dimension=384)
    with pytest.raises(ConfigError, match=r"384-wide.*gives 512"):
        check_space(served, VectorSpace("other/encoder", 512))


def test_a_question_of_another_width_is_refused_with_both_numbers(corpus: Corpus) -> None:
    corpus.index(corpus.document(1))
    with pytest.raises(ConfigError, match=r"16-wide.*has 8"):
        corpus.reader().snapshot().hot.search(np.ones(8, np.float32), 3, ALL)


def test_a_question_without_a_finite_vector_is_an_outage_not_an_empty_result(corpus: Corpus) -> None:
    corpus.index(corpus.document(1))
    bad = np.full(16, np.nan, np.float32)
    with pytest.raises(TransientError, match="not finite"):
        corpus.reader().snapshot().hot.search(bad, 3, ALL)


def test_old_generations_are_collected(corpus: Corpus) -> None:
    for _ in range(12):
        corpus.index(corpus.document(2))
    assert len(list(corpus.folder.manifests.glob("*.json"))) <= 3
    named = {s.name for s in manifest(corpus).tier("hot").segments}
    stored = {p.name for p in corpus.folder.tier("hot").segments.iterdir()}
    assert named <= stored
    assert len(stored) < 20
    assert verify_segments(corpus.folder, manifest(corpus)) == len(corpus.vectors)


@pytest.mark.parametrize("what", ["vectors.f16", "ids.npy", "segment.json"])
def test_a_cut_segment_file_refuses_the_tier_and_tells(corpus: Corpus, what: str) -> None:
    corpus.index(corpus.document(3))
    path = next(corpus.folder.tier("hot").segments.iterdir()) / what
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    told: list[tuple[str, str]] = []
    reader = corpus.reader()
    reader._on_damage = lambda tier, reason: told.append((tier, reason))
    index = reader.snapshot()
    with pytest.raises(DamagedIndex):
        index.hot.search(corpus.query(), 3, ALL)
    assert [tier for tier, _ in told] == ["hot"]
    reader.snapshot()
    assert len(told) == 1


def test_a_lost_index_folder_is_damage_not_emptiness(corpus: Corpus) -> None:
    corpus.index(corpus.document(3))
    corpus.folder.current.unlink()
    reader = corpus.reader()
    reader._expected = lambda: True
    with pytest.raises(DamagedIndex):
        reader.snapshot().hot.search(corpus.query(), 3, ALL)


def test_a_missing_lexical_index_is_refused_alone(corpus: Corpus) -> None:
    import shutil

    corpus.index(corpus.document(3))
    shutil.rmtree(corpus.folder.lexical / manifest(corpus).lexical)
    index = corpus.reader().snapshot()
    assert len(index.hot.search(corpus.query(), 3, ALL)) == 3
    with pytest.raises(DamagedIndex):
        index.lexical.search("lantern", 3, ALL)
    corpus.index(corpus.document(1))  # the vectors go on
    index = corpus.reader().snapshot()
    assert len(index.hot.search(corpus.query(), 9, ALL)) == 4
    with corpus.db.read() as session:
        tiers = {t.tier: t for t in tier_status(session)}
        assert tiers["hot"].refused is None
        assert "missing" in (tiers["lexical"].refused or "")
        build = session.query(BuildRow).one()
        assert (build.tier, build.open_key) == ("lexical", "lexical")
