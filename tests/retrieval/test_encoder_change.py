"""The index changes its encoder while questions are asked and documents come and go."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

import ingest.encode
from core.db import Database
from core.errors import ConfigError
from core.jobs import run_job
from core.models import (
    CollectionRow,
    DocumentRow,
    JobRow,
    PassageRow,
    PassageTokensRow,
    PassageVectorRow,
    TenantRow,
)
from core.settings import Settings, get_settings
from core.types import Role, Scope
from core.worker import Task
from retrieval import build_repository, builds, rebuild, served, writer
from retrieval.build_task import run_build
from retrieval.filters import Filters
from retrieval.lease import WriterLease
from retrieval.manifest import IndexFolder, Manifest
from retrieval.ranking import rank, token_cache
from retrieval.tasks import index_jobs, unindex_document
from retrieval.tiers import IndexReader, _load_encoder
from tests.retrieval.test_index_tasks import do, put, waiting
from tests.support.tiny_encoder import write_tiny_encoder

OPERATOR = Scope("t1", None, "key_1", Role.OPERATOR)
ALL = Scope("t1", ("c1",), "test")
FIRST, SECOND = "tests/first", "tests/second"
WIDTHS = {FIRST: 32, SECOND: 48}


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packs")
    for name, width in WIDTHS.items():
        write_tiny_encoder(folder / name.replace("/", "__"), dimension=width)
    return folder


@pytest.fixture
def db(sqlite_database: Database, packs: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("GEO_PACKS__FOLDER", str(packs))
    monkeypatch.setenv("GEO_PACKS__ENCODER", FIRST)
    monkeypatch.setenv("GEO_RETRIEVAL__ROUTE_DEADLINE_MS", "30000")  # the machine may be busy
    get_settings.cache_clear()
    token_cache.cache_clear()
    with sqlite_database.write() as session:
        session.add(TenantRow(id="t1", name="t1"))
        session.flush()
        session.add(CollectionRow(id="c1", tenant_id="t1", name="c1"))
    return sqlite_database


@pytest.fixture
def reader(settings: Settings, db: Database) -> IndexReader:
    return IndexReader(IndexFolder(settings.index_dir), prepare=_load_encoder)


def add(db: Database, document: str, passages: int = 3) -> None:
    put(db, document, [f"Lantern {document} number {n} is lit at dusk." for n in range(passages)])
    index_jobs(db, waiting(db, document))


def remove(db: Database, document: str) -> None:
    with db.write() as session:
        row = session.get_one(DocumentRow, document)
        row.status, row.live_version = "deleting", None
    do(db, Task.UNINDEX, unindex_document, document, key="delete")


def change(db: Database, model: str) -> builds.Build:
    with db.write() as session:
        build = builds.request_rebuild(session, OPERATOR, tier="all", model=model, accept_moved=True)
    return work(db, build.id)


def work(db: Database, build_id: str) -> builds.Build:
    with db.read() as session:
        job = builds.job_of(session, build_id)
        assert job is not None
    run_job(job.id, run_build, db=db)
    with db.read() as session:
        return builds.get_build(session, OPERATOR, build_id=build_id)


def manifest(settings: Settings) -> Manifest:
    folder = IndexFolder(settings.index_dir)
    return folder.read_manifest(folder.current_generation() or 0)


def test_questions_are_answered_throughout_a_change_of_the_encoder_and_back(
    db: Database, reader: IndexReader, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(12):
        add(db, f"d{n}")
    stop, faults, seen = threading.Event(), [], set()

    def ask() -> None:
        while not stop.is_set():
            try:
                found = rank(db, reader, ALL, text="Which lantern is lit?", filters=Filters(), wanted=3)
            except Exception as error:  # noqa: BLE001 - whatever a question meets is the finding
                faults.append(repr(error))
                return
            states = {r.value: report.error for r, report in found.recalled.reports.items() if report.error}
            if states or len(found.ranked) < 3:
                faults.append(states or found)
            if found.question.vector.shape[0] != WIDTHS[found.model]:
                faults.append((found.model, found.question.vector.shape))
            seen.add(found.model)

    def come_and_go() -> None:
        number = 100
        while not stop.is_set():
            try:
                add(db, f"d{number}", 2)
                if number % 3 == 2 and number > 101:
                    remove(db, f"d{number - 2}")
            except Exception as error:  # noqa: BLE001 - see above
                faults.append(repr(error))
                return
            number += 1

    threads = [
        threading.Thread(target=ask),
        threading.Thread(target=ask),
        threading.Thread(target=come_and_go),
    ]
    for thread in threads:
        thread.start()
    try:
        done = change(db, SECOND)
        assert done.status == "published", done
        assert (manifest(settings).model, manifest(settings).dimension) == (SECOND, 48)
        assert served.served_space(db).model == SECOND
        with db.write() as session:
            build = builds.request_rollback(session, OPERATOR, tier="all")
        back = work(db, build.id)
        assert back.status == "rolled_back", back
        assert (manifest(settings).model, manifest(settings).dimension) == (FIRST, 32)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert faults == []
    assert FIRST in seen
    live = {row.id for row in _live(db)}
    served_now = reader.snapshot()
    assert served_now.model == FIRST
    assert served_now.dense.live_count == len(live)
    found = rank(db, reader, ALL, text="Lantern d3 number 1 is lit at dusk.", filters=Filters(), wanted=3)
    assert found.ranked[0].stored.passage.text == "Lantern d3 number 1 is lit at dusk."


def _live(db: Database) -> list:
    with db.read() as session:
        return (
            session.query(PassageRow)
            .join(DocumentRow, DocumentRow.id == PassageRow.document_id)
            .filter(DocumentRow.live_version == PassageRow.version)
            .all()
        )


def test_new_documents_get_vectors_of_the_served_encoder_alone(db: Database, settings: Settings) -> None:
    add(db, "d1")
    assert change(db, SECOND).status == "published"
    add(db, "d2")
    with db.read() as session:
        models = {
            (row.model, len(row.vector) // 2) for row in session.query(PassageVectorRow) if row.passage_id > 3
        }
    assert models == {(SECOND, 48)}
    assert manifest(settings).tier("hot").live_count == 6


def test_a_delete_that_waits_while_the_encoder_changes_is_done(
    db: Database, reader: IndexReader, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletes wait for the writer's lease; whoever held it may have changed the encoder."""
    add(db, "d1")
    add(db, "d2")
    lease, waiting_for_it = writer.writer_lease, [True]

    @contextmanager
    def taken_after_the_change(*args: Any, **more: Any) -> Iterator[WriterLease]:
        if waiting_for_it:
            waiting_for_it.clear()
            assert change(db, SECOND).status == "published"
        with lease(*args, **more) as mine:
            yield mine

    monkeypatch.setattr(writer, "writer_lease", taken_after_the_change)
    with db.write() as session:
        row = session.get_one(DocumentRow, "d1")
        row.status, row.live_version = "deleting", None
    assert do(db, Task.UNINDEX, unindex_document, "d1", key="delete").status == "done"
    assert not waiting_for_it
    assert manifest(settings).model == SECOND
    assert manifest(settings).tier("hot").live_count == 3
    with db.read() as session:
        assert session.query(JobRow).filter_by(task=Task.PURGE.value, subject_id="d1").count() == 1
    found = rank(db, reader, ALL, text="Which lantern is lit?", filters=Filters(), wanted=9)
    assert {one.stored.passage.document_id for one in found.ranked} == {"d2"}


def test_vectors_of_an_encoder_that_nothing_needs_are_forgotten(db: Database, reader: IndexReader) -> None:
    add(db, "d1")
    for model in (SECOND, FIRST, SECOND):
        assert change(db, model).status == "published"
    with db.read() as session:  # the generation before is kept for rollback, so both are still needed
        assert {row.model for row in session.query(PassageVectorRow)} == {FIRST, SECOND}
    with db.write() as session:
        builds.request_rebuild(session, OPERATOR, tier="all")
    with db.read() as session:
        build = builds.list_builds(session, OPERATOR)[0]
    assert work(db, build.id).status == "published"
    assert change(db, SECOND).status == "published"
    rebuild.forget_old_vectors(db, IndexFolder(get_settings().index_dir))
    with db.read() as session:
        assert {row.model for row in session.query(PassageVectorRow)} == {SECOND}
        assert {row.model for row in session.query(PassageTokensRow)} <= {SECOND}
    assert rank(db, reader, ALL, text="lantern d1?", filters=Filters(), wanted=2).ranked


def test_vectors_of_a_change_that_begins_meanwhile_are_kept(
    db: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(db, "d1")

    def store(session: Session, model: str) -> None:
        for i in session.scalars(select(PassageRow.id)).all():
            session.add(PassageVectorRow(passage_id=i, model=model, vector=bytes(2 * 48)))

    with db.write() as session:
        store(session, "tests/gone")
    real, rounds = build_repository.forget_vectors, [0]

    def then_a_change_begins(session: Session, kept: set[str]) -> int:
        gone = real(session, kept)
        rounds[0] += 1
        if rounds[0] == 1:
            builds.request_rebuild(session, OPERATOR, tier="all", model=SECOND)
            store(session, SECOND)
        return gone

    monkeypatch.setattr(build_repository, "forget_vectors", then_a_change_begins)
    assert rebuild.forget_old_vectors(db, IndexFolder(settings.index_dir)) == 3
    with db.read() as session:
        assert set(session.scalars(select(PassageVectorRow.model))) == {FIRST, SECOND}


def test_one_encoder_is_let_go_when_another_has_been_in_use_for_a_while(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest.encode, "_loaded", {})
    first = ingest.encode.get_encoder(FIRST)
    assert ingest.encode.get_encoder("") is first
    ingest.encode.get_encoder(SECOND)
    assert set(ingest.encode._loaded) == {FIRST, SECOND}
    monkeypatch.setattr(ingest.encode, "_IDLE_S", 0.0)
    ingest.encode.get_encoder(SECOND)
    assert set(ingest.encode._loaded) == {SECOND}
    ingest.encode.release_encoders()
    assert not ingest.encode._loaded
    assert ingest.encode.get_encoder(FIRST).dimension == 32


def test_a_pack_that_gives_another_width_than_the_index_is_named(db: Database) -> None:
    from retrieval.tier_repository import TierState, set_tier_state

    with db.write() as session:
        set_tier_state(session, "hot", TierState(1, 1, SECOND, 64))
    with pytest.raises(ConfigError, match=r"64-wide vectors of tests/second.*gives 48"):
        served.check_encoder(db)
