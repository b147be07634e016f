from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import event, select, update

from core.db import Database, utcnow
from core.errors import NotFound
from core.models import DocumentRow, DocumentVersionRow, JobRow
from core.types import DocumentStatus, JobStatus, Role, Scope
from core.worker import Task
from ingest import repository, service
from tests.ingest.lifecycle import (
    SCOPE,
    TENANT,
    get,
    jobs,
    make_live,
    make_tenants,
    run_waiting,
    stage,
    upload,
)


def test_scopes_filter_by_tenant_and_by_collection(database: Database) -> None:
    collection_id = make_tenants(database)
    document = upload(database, "x").document
    cases = {
        Scope(TENANT, None, "k"): True,
        Scope(TENANT, (collection_id, "col_x"), "k"): True,
        Scope(TENANT, ("col_x",), "k"): False,
        Scope(TENANT, (), "k"): False,
        Scope("ten_b", None, "k", Role.OPERATOR): False,
        Scope("ten_b", (collection_id,), "k"): False,
        Scope("", None, "k"): False,
    }
    with database.read() as session:
        for scope, visible in cases.items():
            if visible:
                assert repository.find_document(session, scope, document.id).id == document.id
            else:
                with pytest.raises(NotFound):
                    repository.find_document(session, scope, document.id)


def test_a_collection_named_like_another_ones_id_does_not_hide_it(database: Database) -> None:
    collection_id = make_tenants(database)
    with database.write() as session:
        service.create_collection(session, SCOPE, name=collection_id)
        assert repository.find_collection(session, SCOPE, collection_id).name == "Handbook"


def test_stage_and_progress_are_those_of_the_newest_versions_open_job(database: Database) -> None:
    make_tenants(database)
    document = upload(database, "Pump seven runs.").document
    run_waiting(database, document.id)
    with database.write() as session:
        session.execute(
            update(JobRow)
            .where(JobRow.task == Task.INDEX.value)
            .values(status=JobStatus.RUNNING.value, progress_done=3, progress_total=8)
        )
        # A clock that went back must not let a finished stage hide the one that runs.
        session.execute(
            update(JobRow)
            .where(JobRow.task == Task.NORMALIZE.value)
            .values(created_at=utcnow() + timedelta(hours=1))
        )
    seen = get(database, document.id)
    assert (seen.stage, seen.progress.done, seen.progress.total) == ("index", 3, 8)
    make_live(database, document.id)
    seen = get(database, document.id)
    assert (seen.stage, seen.progress.done, seen.progress.total) == (None, 1, 1)
    with database.write() as session:
        service.new_version(session, SCOPE, document_id=document.id, blob=stage("Pump eight stands still."))
    seen = get(database, document.id)
    assert (seen.stage, seen.progress.total, seen.counts.passages) == ("normalize", 0, 0)


def test_a_failed_new_version_says_so_while_the_old_one_serves(database: Database) -> None:
    make_tenants(database)
    document = upload(database, "Pump seven runs.").document
    run_waiting(database, document.id)
    make_live(database, document.id)
    with database.write() as session:
        service.new_version(session, SCOPE, document_id=document.id, blob=stage(" \n"), file_name="blank.txt")
    run_waiting(database, document.id)
    seen = get(database, document.id)
    assert (seen.status, seen.live_version, seen.version) == (DocumentStatus.FAILED, 1, 2)
    assert seen.error is not None
    assert seen.error.code == "empty"
    with database.read() as session:
        assert "seven" in service.document_content(session, SCOPE, document_id=document.id).text
        assert service.document_content(session, SCOPE, document_id=document.id, version=1).version == 1
        for version in (2, 3):
            with pytest.raises(NotFound):
                service.document_content(session, SCOPE, document_id=document.id, version=version)


def test_a_list_reads_no_text_and_needs_the_same_statements_for_one_and_for_many(
    sqlite_database: Database,
) -> None:
    make_tenants(sqlite_database)
    for n in range(6):
        run_waiting(sqlite_database, upload(sqlite_database, f"Pump {n} runs.").document.id)
    seen: list[str] = []
    event.listen(sqlite_database.engine, "before_cursor_execute", lambda *a: seen.append(a[2]))
    sizes: list[int] = []
    for limit in (1, 6):
        seen.clear()
        with sqlite_database.read() as session:
            service.list_documents(session, SCOPE, limit=limit)
        sizes.append(len(seen))
    assert sizes[0] == sizes[1]
    assert not any("document_versions.text" in statement for statement in seen)


def test_the_insert_that_loses_returns_nothing_and_changes_nothing(database: Database) -> None:
    collection_id = make_tenants(database)
    document = upload(database, "x").document
    with database.write() as session:
        digest = session.get_one(DocumentRow, document.id).content_hash
        again = repository.insert_document(
            session,
            id="doc_again",
            tenant_id=TENANT,
            collection_id=collection_id,
            name="n",
            content_hash=digest,
        )
        assert again is None
        assert session.scalars(select(DocumentVersionRow.document_id)).all() == [document.id]


def test_waiting_jobs_are_taken_back_and_running_ones_asked_to_stop(database: Database) -> None:
    make_tenants(database)
    document = upload(database, "x").document
    with database.write() as session:
        session.execute(update(JobRow).values(status=JobStatus.RUNNING.value))
        repository.cancel_jobs(session, document.id)
    (job,) = jobs(database, document.id)
    assert (job.status, job.cancel_requested) == (JobStatus.RUNNING.value, True)
