"""What people decide about entities that documents brought: it holds through every way of linking anew."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from sqlalchemy import select

from core.db import Database
from core.jobs import add_job
from core.models import EntityRow, JobRow, MentionRow
from core.types import JobStatus
from core.worker import Task
from ingest import service, tasks
from tests.ingest.lifecycle import SCOPE, make_live, make_tenants, run_waiting, stage, upload

TEXTS = {
    "hill.md": "# 远山股份董监高\n\n李伟，男，远山股份财务负责人，2019 年入职。\n",
    "sea.md": "# 海石科技董监高\n\n李伟，女，海石科技独立董事，材料学教授。\n",
    "board.md": "# Board\n\nMaria Novak is the head of Quarbix Ltd.\n",
}


def prepare(db: Database) -> dict[str, str]:
    make_tenants(db)
    documents: dict[str, str] = {}
    for name, text in TEXTS.items():
        documents[name] = upload(db, text, name).document.id
        run_waiting(db, documents[name])
        make_live(db, documents[name])
    return documents


def links(db: Database, document_id: str) -> dict[str, str | None]:
    """Surface → entity in the live version, merges aside."""
    with db.read() as session:
        found = service.get_document(session, SCOPE, document_id=document_id)
        rows = session.scalars(
            select(MentionRow).where(
                MentionRow.document_id == document_id, MentionRow.version == found.live_version
            )
        )
        return {r.surface: r.entity_id for r in rows}


def relink_all(db: Database, _documents: dict[str, str]) -> None:
    """A catalogue that has every name of the texts in passing; then the queued re-link."""
    with db.write() as session:
        row = {"name": "unrelated", "type": "ORG", "aliases": ["董监高", "Board"]}
        service.import_entities(session, SCOPE, lines=[json.dumps(row)], form="jsonl")
    run_relinks(db)


def run_relinks(db: Database) -> None:
    with db.read() as session:
        waiting = list(
            session.scalars(
                select(JobRow.id).where(
                    JobRow.task == Task.RELINK.value, JobRow.status == JobStatus.WAITING.value
                )
            )
        )
    for job_id in waiting:
        tasks.relink(job_id)


def reprocess_all(db: Database, documents: dict[str, str]) -> None:
    for document_id in documents.values():
        with db.write() as session:
            version = service.reprocess(session, SCOPE, document_id=document_id).version
        run_waiting(db, document_id)
        make_live(db, document_id, version)


def new_versions(db: Database, documents: dict[str, str]) -> None:
    for name, document_id in documents.items():
        with db.write() as session:
            version = service.new_version(
                session,
                SCOPE,
                document_id=document_id,
                blob=stage(TEXTS[name] + "\nAnd more.\n"),
                file_name=name,
                declared_type="",
            ).document.version
        run_waiting(db, document_id)
        make_live(db, document_id, version)


@pytest.mark.parametrize("again", [relink_all, reprocess_all, new_versions])
def test_every_decision_holds_when_documents_are_linked_anew(
    sqlite_database: Database, again: Callable[[Database, dict[str, str]], None]
) -> None:
    db = sqlite_database
    documents = prepare(db)
    hill, sea = links(db, documents["hill.md"])["李伟"], links(db, documents["sea.md"])["李伟"]
    board = links(db, documents["board.md"])
    novak, quarbix = board["Maria Novak"], board["Quarbix Ltd"]
    assert None not in (hill, sea, novak, quarbix)
    with db.write() as session:
        service.merge_entities(session, SCOPE, entity_id=str(hill), others=[str(sea)])
        service.patch_entity(session, SCOPE, entity_id=str(novak), name="Dr Novak", pin_aliases=["Novak"])
        service.patch_entity(session, SCOPE, entity_id=str(quarbix), blocked=True)
    run_relinks(db)
    again(db, documents)
    assert links(db, documents["hill.md"])["李伟"] == links(db, documents["sea.md"])["李伟"] == hill
    assert links(db, documents["board.md"])["Maria Novak"] == novak
    assert links(db, documents["board.md"]).get("Quarbix Ltd") is None
    with db.read() as session:
        assert session.get_one(EntityRow, novak).name == "Dr Novak"
    with db.write() as session:
        service.undo_entity(session, SCOPE, entity_id=str(hill))
        service.undo_entity(session, SCOPE, entity_id=str(quarbix))
    run_relinks(db)
    again(db, documents)
    assert links(db, documents["hill.md"])["李伟"] == hill
    assert links(db, documents["sea.md"])["李伟"] == sea
    assert links(db, documents["board.md"])["Quarbix Ltd"] == quarbix


def test_a_deleted_document_takes_its_mentions_and_what_nobody_else_names(sqlite_database: Database) -> None:
    db = sqlite_database
    documents = prepare(db)
    quarbix = links(db, documents["board.md"])["Quarbix Ltd"]
    with db.write() as session:
        service.delete_document(session, SCOPE, document_id=documents["sea.md"])
        service.delete_document(session, SCOPE, document_id=documents["board.md"])
        for job in session.scalars(select(JobRow).where(JobRow.task == Task.UNINDEX.value)):
            job.status = JobStatus.DONE.value
    for name in ("sea.md", "board.md"):
        with db.write() as session:
            add_job(
                session,
                Task.PURGE,
                tenant_id=SCOPE.tenant_id,
                subject_kind="document",
                subject_id=documents[name],
            )
        run_waiting(db, documents[name], Task.PURGE)
    with db.read() as session:
        assert session.get(EntityRow, quarbix) is None
        left = {r.name for r in session.scalars(select(EntityRow))}
        named = {r.document_id for r in session.scalars(select(MentionRow))}
    assert left == {"李伟", "远山股份"}
    assert named == {documents["hill.md"]}
