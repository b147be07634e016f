"""Generations are loaded beside the questions."""

from __future__ import annotations

import gc
import threading

import pytest

from core.db import Database
from core.settings import Settings
from retrieval import tiers
from retrieval.follow import follow
from retrieval.manifest import IndexFolder
from tests.retrieval.indexing import Corpus
from tests.support.waiting import until


@pytest.fixture
def corpus(sqlite_database: Database, settings: Settings) -> Corpus:
    return Corpus(sqlite_database, IndexFolder(settings.index_dir))


def test_a_new_generation_is_loaded_without_a_question(corpus: Corpus) -> None:
    corpus.index(corpus.document(2))
    reader = corpus.reader()
    assert reader.snapshot().dense.live_count == 2
    stop = follow(reader)
    corpus.index(corpus.document(3))
    until(lambda: reader._snapshot.dense.live_count == 5)
    stop.set()


def test_a_question_waits_for_no_generation_that_is_being_loaded(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus.index(corpus.document(2))
    reader = corpus.reader()
    reader.snapshot()
    loading, loaded = threading.Event(), threading.Event()
    load_tier = tiers.load_tier

    def slow(*args, **kwargs):
        loading.set()
        loaded.wait(10)
        return load_tier(*args, **kwargs)

    monkeypatch.setattr(tiers, "load_tier", slow)
    stop = follow(reader)
    corpus.index(corpus.document(3))
    assert loading.wait(10)
    assert reader.snapshot().dense.live_count == 2
    loaded.set()
    assert reader.snapshot(wait=True).dense.live_count == 5
    stop.set()


def test_the_thread_ends_with_its_reader(corpus: Corpus) -> None:
    follow(corpus.reader())

    def ended() -> bool:
        gc.collect()  # a reader and its snapshot know each other
        return not any(thread.name == "follow" for thread in threading.enumerate())

    until(ended)


def test_what_cannot_be_loaded_is_told_once_and_tried_again(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reader = corpus.reader()
    tries: list[int] = []

    def failing() -> None:
        tries.append(1)
        raise OSError("the disk is away")

    monkeypatch.setattr(reader, "snapshot", failing)
    stop = follow(reader)
    until(lambda: len(tries) >= 3)
    stop.set()
    assert [record.message for record in caplog.records].count("generation_not_loaded") == 1
