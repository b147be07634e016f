"""A new version goes live while a query is under way: the query sees the old one or the new one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.models import DocumentRow
from ingest.service import BlobStore, new_version, register_upload
from retrieval import recall
from retrieval.filters import Filters
from retrieval.ranking import rank
from retrieval.scratch import ScratchStack, scratch_stack
from retrieval.tiers import get_reader


@pytest.fixture
def stack(encoder_pack: Path) -> Iterator[ScratchStack]:
    with scratch_stack() as made:
        yield made


class SwitchedAfterFirstLook:
    """Gives the snapshot it was asked for, after something happened behind its back."""

    def __init__(self, happens: Callable[[], object]) -> None:
        self._happens, self._looked = happens, False

    def snapshot(self, *, wait: bool = False) -> Any:
        taken = get_reader().snapshot(wait=wait)
        if not self._looked:
            self._looked = True
            self._happens()
        return taken


def test_query_that_began_before_the_switch_sees_the_new_version(stack: ScratchStack) -> None:
    blob = BlobStore.of().stage([b"The harbour fee is 410 crowns per night."], 1 << 20)
    with stack.db.write() as session:
        upload = register_upload(
            session, stack.scope, collection=stack.collection_id, blob=blob, file_name="fee.txt"
        )
    stack.run_jobs()

    def switch() -> None:
        newer = BlobStore.of().stage([b"The harbour fee is 620 crowns per night."], 1 << 20)
        with stack.db.write() as session:
            new_version(session, stack.scope, document_id=upload.document.id, blob=newer)
        stack.run_jobs()

    ranking = rank(
        stack.db,
        SwitchedAfterFirstLook(switch),
        stack.scope,
        text="How much is the harbour fee?",
        filters=Filters(),
        wanted=5,
    )
    assert [r.stored.passage.text for r in ranking.ranked] == ["The harbour fee is 620 crowns per night."]


def test_query_during_a_delete_sees_nothing_and_ends(stack: ScratchStack) -> None:
    from ingest.service import delete_document

    blob = BlobStore.of().stage([b"The harbour fee is 410 crowns per night."], 1 << 20)
    with stack.db.write() as session:
        upload = register_upload(
            session, stack.scope, collection=stack.collection_id, blob=blob, file_name="fee.txt"
        )
    stack.run_jobs()

    def delete() -> None:
        with stack.db.write() as session:
            delete_document(session, stack.scope, document_id=upload.document.id)

    ranking = rank(
        stack.db, SwitchedAfterFirstLook(delete), stack.scope, text="harbour fee", filters=Filters(), wanted=5
    )
    assert ranking.ranked == ()


def test_switch_between_the_routes_and_the_load_shows_the_new_version(
    stack: ScratchStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both texts are in the snapshot; which one is live changes after the routes have looked."""
    ids = []
    for text in (b"The harbour fee is 410 crowns per night.", b"The harbour fee is 620 crowns per night."):
        blob = BlobStore.of().stage([text], 1 << 20)
        with stack.db.write() as session:
            upload = register_upload(
                session, stack.scope, collection=stack.collection_id, blob=blob, file_name="fee.txt"
            )
            ids.append(upload.document.id)
    stack.run_jobs()

    def make_live(shown: str, hidden: str) -> None:
        with stack.db.write() as session:
            session.get_one(DocumentRow, hidden).live_version = None
            session.get_one(DocumentRow, shown).live_version = 1

    make_live(ids[0], ids[1])
    load, loaded = recall.live_passages, []

    def load_after_the_switch(*args: Any) -> Any:
        if not loaded:
            make_live(ids[1], ids[0])
        loaded.append(1)
        return load(*args)

    monkeypatch.setattr(recall, "live_passages", load_after_the_switch)
    ranking = rank(
        stack.db, get_reader(), stack.scope, text="How much is the harbour fee?", filters=Filters(), wanted=5
    )
    assert [r.stored.passage.text for r in ranking.ranked] == ["The harbour fee is 620 crowns per night."]


def test_a_document_that_is_ready_is_found_while_its_generation_is_loaded(
    stack: ScratchStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = get_reader()
    assert reader.snapshot().generation == 0
    loading, may_load = threading.Event(), threading.Event()
    load = reader._load

    def slow() -> Any:
        loading.set()
        may_load.wait(10)
        return load()

    monkeypatch.setattr(reader, "_load", slow)
    blob = BlobStore.of().stage([b"The harbour fee is 410 crowns per night."], 1 << 20)
    with stack.db.write() as session:
        register_upload(session, stack.scope, collection=stack.collection_id, blob=blob, file_name="fee.txt")
    stack.run_jobs()
    beside = threading.Thread(target=reader.snapshot)
    beside.start()
    assert loading.wait(10)
    threading.Timer(0.5, may_load.set).start()
    ranking = rank(
        stack.db,
        reader,
        stack.scope,
        text="What is the harbour fee?",
        filters=Filters(),
        wanted=5,
    )
    beside.join()
    assert ranking.generation == 1
    assert "410" in ranking.ranked[0].stored.passage.text
