"""Rows for the generation tests: a tenant, a collection, documents with passages, and evidence of a query."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import update
from sqlalchemy.orm import Session

from core.db import Database
from core.ids import new_id
from core.jobs import add_job
from core.models import (
    CollectionRow,
    DocumentRow,
    DocumentVersionRow,
    EvidenceRow,
    JobRow,
    PassageRow,
    QueryRow,
    TenantRow,
)
from core.types import JobStatus, Role, Scope
from core.worker import Task
from generation import service

TOWER = "The tower is 330 metres tall. Workers finished it in 1889."
MUSEUM = "The museum had 8.9 million visitors in 2023. It stands by the river."


class Library:
    """One tenant with one collection; `passages` are (id, offset) of its texts."""

    def __init__(self, db: Database, texts: Sequence[str] = (TOWER, MUSEUM)) -> None:
        self.db, self.texts = db, tuple(texts)
        self.tenant, self.collection = new_id("ten"), new_id("col")
        self.scope = Scope(self.tenant, None, "key_1", Role.ADMIN)
        self.documents: list[str] = []
        self.passages: list[tuple[int, int]] = []
        with db.write() as session:
            session.add(TenantRow(id=self.tenant, name=self.tenant))
            session.flush()
            session.add(CollectionRow(id=self.collection, tenant_id=self.tenant, name="papers"))
            session.flush()
            for text in self.texts:
                self._document(session, text)

    def _document(self, session: Session, text: str) -> None:
        document_id = new_id("doc")
        session.add(
            DocumentRow(
                id=document_id,
                tenant_id=self.tenant,
                collection_id=self.collection,
                name=f"{len(self.documents) + 1}.txt",
                content_hash=document_id,
                status="ready",
                live_version=1,
            )
        )
        session.flush()
        session.add(
            DocumentVersionRow(
                document_id=document_id, version=1, blob_hash="0" * 64, size_bytes=1, file_name="x.txt"
            )
        )
        session.flush()
        row = PassageRow(
            tenant_id=self.tenant,
            collection_id=self.collection,
            document_id=document_id,
            version=1,
            ordinal=0,
            start=10,
            end=10 + len(text),
            page=3,
            heading_path=["Facts"],
            lang="en",
            text=text,
        )
        session.add(row)
        session.flush()
        self.documents.append(document_id)
        self.passages.append((row.id, 10))

    def ask(
        self, question: str = "How tall is the tower?", *, score: float = 0.9, **policy: object
    ) -> tuple[str, str]:
        """Submit, and stand where rerank leaves off: evidence stored, an answer job waiting.

        Returns:
            Ids of the query and of its answer job.
        """
        with self.db.write() as session:
            query_id = service.submit(
                session, self.scope, question=question, collection_ids=[self.collection], policy=policy
            )
        with self.db.write() as session:
            session.execute(
                update(JobRow).where(JobRow.subject_id == query_id).values(status=JobStatus.DONE.value)
            )
            for marker, (passage_id, start) in enumerate(self.passages, 1):
                session.add(self._evidence(query_id, marker, passage_id, start, score))
            job_id = add_job(
                session, Task.ANSWER, tenant_id=self.tenant, subject_kind="query", subject_id=query_id
            )
        return query_id, job_id

    def _evidence(self, query_id: str, marker: int, passage_id: int, start: int, score: float) -> EvidenceRow:
        text = self.texts[marker - 1]
        first = text.index(". ") + 1
        return EvidenceRow(
            query_id=query_id,
            marker=marker,
            passage_id=passage_id,
            document_id=self.documents[marker - 1],
            version=1,
            score=score - marker / 100,
            routes=[{"route": "dense", "rank": marker, "score": 0.8}],
            sentences=[
                {"start": start, "end": start + first, "score": score - marker / 100},
                {"start": start + first + 1, "end": start + len(text), "score": 0.2},
            ],
        )

    def row(self, query_id: str) -> QueryRow:
        with self.db.read() as session:
            return session.get_one(QueryRow, query_id)
