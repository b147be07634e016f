"""A changed catalogue links anew the documents that have the name, and leaves the others alone."""

from __future__ import annotations

import json

from sqlalchemy import select

from core.db import Database
from core.models import JobRow, MentionRow
from core.types import JobStatus
from core.worker import Task
from ingest import service, tasks
from tests.ingest.lifecycle import SCOPE, TENANT, make_tenants, run_waiting, upload


def ingest(db: Database, name: str, text: str) -> str:
    document_id = upload(db, text, f"{name}.md").document.id
    run_waiting(db, document_id)
    return document_id


def load(db: Database, *rows: dict[str, object]) -> list[str]:
    with db.write() as session:
        done = service.import_entities(session, SCOPE, lines=[json.dumps(r) for r in rows], form="jsonl")
    return [done.ids[str(r["name"])] for r in rows]


def relink(db: Database) -> list[JobRow]:
    """Run every re-link that waits."""
    with db.read() as session:
        waiting = list(
            session.scalars(
                select(JobRow).where(
                    JobRow.task == Task.RELINK.value, JobRow.status == JobStatus.WAITING.value
                )
            )
        )
    for job in waiting:
        tasks.relink(job.id)
    with db.read() as session:
        return [session.get_one(JobRow, job.id) for job in waiting]


def links(db: Database, document_id: str) -> dict[str, str | None]:
    with db.read() as session:
        rows = session.scalars(select(MentionRow).where(MentionRow.document_id == document_id))
        return {r.surface: r.entity_id for r in rows}


def row_ids(db: Database, document_id: str) -> set[int]:
    with db.read() as session:
        return set(session.scalars(select(MentionRow.id).where(MentionRow.document_id == document_id)))


def test_an_import_reaches_the_documents_that_have_the_name_and_no_others(database: Database) -> None:
    make_tenants(database)
    named = ingest(database, "a", "The quarbix valve is serviced in Lyon.\n")
    wide = ingest(database, "b", "规程：ＱＵＡＲＢＩＸ 阀门每年检修，由李伟负责。\n")
    other = ingest(database, "c", "Maria Novak works for Siemens in Lyon.\n")
    before = row_ids(database, other)
    (entity,) = load(database, {"name": "quarbix", "type": "PRODUCT"})
    (job,) = relink(database)
    assert job.status == JobStatus.DONE.value
    assert (job.progress_done, job.progress_total) == (2, 2)
    assert links(database, named)["quarbix"] == entity
    assert links(database, wide)["ＱＵＡＲＢＩＸ"] == entity
    assert row_ids(database, other) == before


def test_a_catalogue_takes_over_a_name_that_documents_brought(database: Database) -> None:
    make_tenants(database)
    document = ingest(database, "a", "云河物流有限公司成立于 2001 年。\n")
    grown = links(database, document)["云河物流有限公司"]
    (entity,) = load(database, {"name": "云河物流有限公司", "type": "ORG"})
    relink(database)
    assert links(database, document)["云河物流有限公司"] == entity != grown


def test_an_undone_pin_and_a_block_are_linked_anew(database: Database) -> None:
    make_tenants(database)
    document = ingest(database, "a", "The zorbit is oiled twice a year.\n")
    (entity,) = load(database, {"name": "Quarbix Ltd", "type": "ORG"})
    with database.write() as session:
        service.patch_entity(session, SCOPE, entity_id=entity, pin_aliases=["zorbit"])
    relink(database)
    assert links(database, document)["zorbit"] == entity
    with database.write() as session:
        service.undo_entity(session, SCOPE, entity_id=entity)
    relink(database)
    assert "zorbit" not in links(database, document)


def test_a_second_attempt_gives_the_same_links(database: Database) -> None:
    make_tenants(database)
    document = ingest(database, "a", "Quarbix Ltd sells valves in Lyon. Quarbix grew.\n")
    load(database, {"name": "Quarbix Ltd", "type": "ORG"})
    (job,) = relink(database)
    before = links(database, document)
    with database.write() as session:
        session.get_one(JobRow, job.id).status = JobStatus.WAITING.value
    relink(database)
    assert links(database, document) == before
    assert before["Quarbix"] == before["Quarbix Ltd"]


def test_changes_of_one_tenant_leave_another_alone(database: Database) -> None:
    make_tenants(database)
    load(database, {"name": "Lyon", "type": "GPE"})
    with database.read() as session:
        assert {j.tenant_id for j in session.scalars(select(JobRow))} == {TENANT}
