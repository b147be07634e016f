"""One changed alias in a large corpus: documents that have the name are linked anew, no other is touched."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from core.db import Database
from core.models import DocumentRow, DocumentVersionRow, JobRow, MentionRow, PassageRow
from core.types import JobStatus
from core.worker import Task
from ingest import service, tasks
from tests.ingest.lifecycle import SCOPE, TENANT, make_tenants

MENTION = "Siemens"
NAMED = {"mention": "The Quarbix pump of {n} hums.", "text": "规程{n}：ＱＵＡＲＢＩＸ 阀门每年检修。"}
FEW = 40  # documents that have the name


def fill(session: Session, collection_id: str, count: int) -> dict[str, str]:
    """Documents with one passage and one mention each; returns those that have the name, by id."""
    named: dict[str, str] = {}
    documents, versions, passages, mentions = [], [], [], []
    for n in range(count):
        document_id = f"doc_{n:06}"
        how = ("mention", "text")[n % 2] if n % (count // FEW) == 7 else ""
        text = (NAMED[how] if how else "{n}: Siemens repairs pumps in Lyon. 李伟负责检修。").format(n=n)
        if how:
            named[document_id] = how
        surface = "Quarbix" if how == "mention" else MENTION
        at = max(0, text.find(surface))
        owner = {"tenant_id": TENANT, "collection_id": collection_id}
        documents.append(
            {"id": document_id, **owner, "name": f"{n}.txt", "content_hash": f"{n:064}",
             "status": "ready", "live_version": 1, "version": 1}
        )  # fmt: skip
        versions.append(
            {"document_id": document_id, "version": 1, "blob_hash": "0" * 64, "size_bytes": 1,
             "file_name": f"{n}.txt", "text": text}
        )  # fmt: skip
        passages.append(
            {"id": n + 1, **owner, "document_id": document_id, "version": 1, "ordinal": 0, "start": 0,
             "end": len(text), "lang": "en", "text": text}
        )  # fmt: skip
        if how != "text":
            mentions.append(
                {"tenant_id": TENANT, "passage_id": n + 1, "document_id": document_id, "version": 1,
                 "start": at, "end": at + len(surface), "surface": surface, "type": "ORG",
                 "key": surface.lower()}
            )  # fmt: skip
    for table, rows in (
        (DocumentRow, documents),
        (DocumentVersionRow, versions),
        (PassageRow, passages),
        (MentionRow, mentions),
    ):
        session.execute(insert(table), rows)
    return named


def mention_rows(db: Database) -> dict[str, set[tuple[int, str | None]]]:
    found: dict[str, set[tuple[int, str | None]]] = {}
    with db.read() as session:
        for row_id, document_id, entity_id in session.execute(
            select(MentionRow.id, MentionRow.document_id, MentionRow.entity_id)
        ):
            found.setdefault(document_id, set()).add((row_id, entity_id))
    return found


def run_relink(db: Database) -> tuple[JobRow, float]:
    with db.read() as session:
        job_id = session.scalar(
            select(JobRow.id).where(
                JobRow.task == Task.RELINK.value, JobRow.status == JobStatus.WAITING.value
            )
        )
    begun = time.perf_counter()
    tasks.relink(job_id)
    seconds = time.perf_counter() - begun
    with db.read() as session:
        return session.get_one(JobRow, job_id), seconds


def change_one_alias(db: Database, count: int) -> float:
    """The whole walk; returns the seconds of the re-link after one alias of an entity was added."""
    collection_id = make_tenants(db)
    with db.write() as session:
        named = fill(session, collection_id, count)
        rows = [{"id": "q", "name": "Zorbit Works", "type": "ORG"}]
        service.import_entities(session, SCOPE, lines=map(json.dumps, rows), form="jsonl")
    job, _ = run_relink(db)
    assert job.progress_total == 0, "no document has the first name"
    before = mention_rows(db)
    with db.write() as session:
        rows = [{"id": "q", "name": "Zorbit Works", "type": "ORG", "aliases": ["Quarbix"]}]
        done = service.import_entities(session, SCOPE, lines=map(json.dumps, rows), form="jsonl")
    job, seconds = run_relink(db)
    assert job.status == JobStatus.DONE.value
    after = mention_rows(db)
    touched = {i for i in before.keys() | after.keys() if before.get(i) != after.get(i)}
    assert touched == set(named)
    assert job.progress_total == len(named)
    assert all(done.ids["q"] in {entity for _, entity in after[i]} for i in named)
    with db.read() as session:
        assert session.scalar(select(func.count()).select_from(DocumentRow)) == count
    return seconds


@pytest.mark.timeout(60)
def test_one_alias_touches_only_the_documents_that_have_it(sqlite_database: Database) -> None:
    change_one_alias(sqlite_database, 1000)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_one_alias_among_twenty_thousand_documents(
    database: Database, record_testsuite_property: Callable[[str, object], None]
) -> None:
    seconds = change_one_alias(database, 20_000)
    record_testsuite_property(f"relink_seconds_{database.engine.dialect.name}", round(seconds, 2))
