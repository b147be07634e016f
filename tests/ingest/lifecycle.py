"""Steps that the life-cycle tests share: a tenant, uploads, running the stages that wait."""

from __future__ import annotations

from sqlalchemy import select

from core.db import Database, utcnow
from core.models import DocumentRow, IndexLogRow, JobRow, TenantRow
from core.types import DocumentStatus, JobStatus, Role, Scope
from core.worker import Task
from ingest import service, tasks

TENANT = "ten_a"
SCOPE = Scope(TENANT, None, "key_writer", Role.ADMIN)
STRANGER = Scope("ten_b", None, "key_stranger", Role.ADMIN)
RUN = {Task.NORMALIZE: tasks.normalize, Task.DISAMBIGUATE: tasks.disambiguate, Task.PURGE: tasks.purge}


def make_tenants(db: Database) -> str:
    """Two tenants, and a collection `Handbook` of the first; returns the collection's id."""
    with db.write() as session:
        session.add_all([TenantRow(id=TENANT, name="a"), TenantRow(id="ten_b", name="b")])
        session.flush()
        return service.create_collection(session, SCOPE, name="Handbook").id


def stage(content: bytes | str) -> service.StagedBlob:
    raw = content.encode() if isinstance(content, str) else content
    return service.BlobStore.of().stage([raw], 64 << 20)


def upload(db: Database, content: bytes | str, name: str = "note.md", **more: object) -> service.Upload:
    with db.write() as session:
        return service.register_upload(
            session, SCOPE, collection="Handbook", blob=stage(content), file_name=name, **more
        )


def jobs(db: Database, document_id: str, task: Task | None = None) -> list[JobRow]:
    with db.read() as session:
        query = select(JobRow).where(JobRow.subject_id == document_id).order_by(JobRow.created_at)
        return [j for j in session.scalars(query) if task is None or j.task == task.value]


def run_waiting(db: Database, document_id: str, *only: Task) -> list[str]:
    """Run the document's waiting jobs of this stage until none is left; returns the names of those run."""
    ran: list[str] = []
    while True:
        waiting = [
            j
            for j in jobs(db, document_id)
            if j.status == JobStatus.WAITING.value
            and Task(j.task) in RUN
            and (not only or Task(j.task) in only)
        ]
        if not waiting:
            return ran
        ran.append(waiting[0].task)
        RUN[Task(waiting[0].task)](waiting[0].id)


def make_live(db: Database, document_id: str, version: int = 1) -> None:
    """What the index stage does at its end, without an index."""
    with db.write() as session:
        row = session.get_one(DocumentRow, document_id)
        row.live_version, row.status = version, DocumentStatus.READY.value
        session.add(IndexLogRow(op="add", document_id=document_id, version=version))
        for job in session.scalars(
            select(JobRow).where(JobRow.subject_id == document_id, JobRow.task == Task.INDEX.value)
        ):
            job.status, job.finished_at = JobStatus.DONE.value, utcnow()


def get(db: Database, document_id: str) -> service.Document:
    with db.read() as session:
        return service.get_document(session, SCOPE, document_id=document_id)
