"""Documents that move between tiers, and what a search finds meanwhile."""

from __future__ import annotations

import numpy as np
import pytest

from core.db import Database
from core.models import DocumentRow, JobRow
from core.settings import Settings
from core.types import Scope, Tier
from retrieval import placing, placing_job
from retrieval.manifest import IndexFolder, Manifest
from retrieval.writer import index_writer
from tests.retrieval.indexing import SPACE, Corpus

ALL = Scope("t1", None, "test")


@pytest.fixture
def corpus(database: Database, settings: Settings) -> Corpus:
    return Corpus(database, IndexFolder(settings.index_dir))


def served(corpus: Corpus) -> Manifest:
    return corpus.folder.read_manifest(corpus.folder.current_generation() or 0)


def counts(corpus: Corpus) -> list[int]:
    return [served(corpus).tier(tier.value).live_count for tier in Tier]


def assert_exact(corpus: Corpus) -> None:
    index = corpus.reader().snapshot()
    for k in (1, 3, 1000):
        query = corpus.query()
        found = [i for i, _ in index.dense.search(query, k, ALL)]
        assert found == corpus.expected(query, k, ALL)
    words = sorted(i for i, _ in index.lexical.search("lantern", 1000, ALL))
    assert words == sorted(corpus.expected(query, 1000, ALL))


def test_a_document_is_found_from_whatever_tier_it_is_in(corpus: Corpus) -> None:
    documents = [corpus.document(n + 1) for n in range(3)]
    for document in documents:
        corpus.index(document)
    for document, tier in zip(documents, Tier, strict=True):
        corpus.place(document, tier.value)
    assert counts(corpus) == [1, 2, 3]
    assert_exact(corpus)
    corpus.place(documents[2], "warm")
    assert counts(corpus) == [1, 5, 0]
    corpus.place(documents[2], "hot")
    assert counts(corpus) == [4, 2, 0]
    assert_exact(corpus)


def test_a_document_in_any_tier_is_deleted(corpus: Corpus) -> None:
    documents = [corpus.document(2) for _ in Tier]
    for document, tier in zip(documents, Tier, strict=True):
        corpus.index(document)
        corpus.place(document, tier.value)
    for document in documents:
        corpus.unindex(document)
        assert_exact(corpus)
    assert counts(corpus) == [0, 0, 0]


def test_a_new_version_enters_hot_and_an_index_job_again_moves_nothing(corpus: Corpus) -> None:
    document = corpus.document(3)
    corpus.index(document)
    corpus.place(document, "cold")
    corpus.index(document)
    assert counts(corpus) == [0, 0, 3]
    corpus.document(2, document=document)
    corpus.index(document)
    assert counts(corpus) == [2, 0, 0]
    with corpus.db.read() as session:
        assert session.get_one(DocumentRow, document).tier == "hot"
    assert_exact(corpus)


def test_the_best_passage_of_a_large_cold_tier_comes_before_weak_ones_of_a_small_hot_one(
    corpus: Corpus,
) -> None:
    large = [corpus.document(40) for _ in range(5)]
    for document in large:
        corpus.index(document)
        corpus.place(document, "cold")
    corpus.index(corpus.document(2))
    best = sorted(corpus.vectors)[77]
    query = corpus.vectors[best] + 0.05 * corpus.query()
    query = (query / np.linalg.norm(query)).astype(np.float32)
    hits = corpus.reader().snapshot().dense.search(query, 5, ALL)
    assert hits[0][0] == best
    assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)


def test_asking_twice_rings_once_and_a_move_back_before_it_is_made_is_none(corpus: Corpus) -> None:
    document = corpus.document(2)
    corpus.index(document)
    with corpus.db.write() as session:
        before = session.get_one(DocumentRow, document).updated_at
        assert placing.want(session, [document], Tier.COLD) == 1
        assert placing.want(session, [document], Tier.COLD) == 1
        assert session.query(JobRow).filter_by(task="retrieval.place").count() == 1
        assert placing.want(session, [document], Tier.HOT) == 0
        assert session.get_one(DocumentRow, document, populate_existing=True).wanted_tier is None
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        assert placing_job.move_wanted(writer) is False
    assert counts(corpus) == [2, 0, 0]
    corpus.place(document, "warm")
    with corpus.db.read() as session:
        assert session.get_one(DocumentRow, document).updated_at == before


def test_documents_without_a_live_version_are_passed_over(corpus: Corpus) -> None:
    waiting, leaving = corpus.document(2), corpus.document(2)
    corpus.index(leaving)
    with corpus.db.write() as session:
        assert placing.want(session, [waiting, leaving, "doc_unknown"], Tier.WARM) == 1
        session.get_one(DocumentRow, leaving).status = "deleting"
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        placing_job.move_wanted(writer)
    assert counts(corpus) == [2, 0, 0]


def test_many_documents_move_in_batches(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing_job, "BATCH_PASSAGES", 10)
    documents = [corpus.document(4) for _ in range(7)]
    for document in documents:
        corpus.index(document)
    with corpus.db.write() as session:
        placing.want(session, documents, Tier.WARM)
    moved = []
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        while placing_job.move_wanted(writer):
            moved.append(counts(corpus)[1])
    assert moved == [8, 16, 24]
    assert counts(corpus) == [0, 28, 0]
    assert_exact(corpus)


def test_a_move_whose_writer_was_killed_is_made_by_the_next(corpus: Corpus) -> None:
    document = corpus.document(3)
    corpus.index(document)
    with corpus.db.write() as session:
        placing.want(session, [document], Tier.COLD)
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer, corpus.db.write() as session:
        placing_job._move(session, writer, placing_job._Wanted(document, Tier.COLD))  # and no publish
    assert counts(corpus) == [3, 0, 0]
    assert_exact(corpus)
    with index_writer(corpus.db, SPACE, folder=corpus.folder) as writer:
        writer.catch_up()
    assert counts(corpus) == [0, 0, 3]
    assert_exact(corpus)
