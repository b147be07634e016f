"""Documents with made-up vectors, put through the real writer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.db import Database
from core.models import (
    CollectionRow,
    DocumentRow,
    DocumentVersionRow,
    PassageRow,
    PassageVectorRow,
    TenantRow,
)
from core.types import Scope, Tier
from retrieval import going_live, placing, placing_job
from retrieval import index_repository as repository
from retrieval.manifest import IndexFolder
from retrieval.tiers import IndexReader
from retrieval.writer import VectorSpace, index_writer

DIMENSION = 16
SPACE = VectorSpace("test/encoder", DIMENSION)


@dataclass
class Corpus:
    """Writes documents of a database and index folder, and knows by numpy what a search must find."""

    db: Database
    folder: IndexFolder

    def __post_init__(self) -> None:
        self.vectors: dict[int, np.ndarray] = {}
        self.owner: dict[int, tuple[str, str]] = {}
        self._documents: dict[int, str] = {}
        self.random = np.random.default_rng(7)
        self._number = 0

    def document(
        self, passages: int = 3, *, tenant: str = "t1", collection: str = "c1", document: str = ""
    ) -> str:
        """Rows of a document that is not indexed yet."""
        self._number += 1
        document = document or f"doc{self._number:04d}"
        with self.db.write() as session:
            if session.get(TenantRow, tenant) is None:
                session.add(TenantRow(id=tenant, name=tenant))
                session.flush()
            if session.get(CollectionRow, collection) is None:
                session.add(CollectionRow(id=collection, tenant_id=tenant, name=collection))
                session.flush()
            if session.get(DocumentRow, document) is None:
                session.add(
                    DocumentRow(
                        id=document, tenant_id=tenant, collection_id=collection, name=f"{document}.txt",
                        content_hash=document, status="processing", latest_version=0,
                    )
                )  # fmt: skip
                session.flush()
            row = session.get_one(DocumentRow, document)
            row.latest_version += 1
            version = row.latest_version
            session.add(
                DocumentVersionRow(
                    document_id=document, version=version, blob_hash="0", size_bytes=1, file_name="a.txt"
                )
            )
            session.flush()
            for ordinal in range(passages):
                self._passage(session, tenant, collection, document, version, ordinal)
        return document

    def _passage(self, session, tenant, collection, document, version, ordinal) -> None:
        passage = PassageRow(
            tenant_id=tenant, collection_id=collection, document_id=document, version=version,
            ordinal=ordinal, start=0, end=1, lang="en",
            text=f"lantern {document} version{version} passage{ordinal}",
        )  # fmt: skip
        session.add(passage)
        session.flush()
        vector = self.random.standard_normal(DIMENSION).astype(np.float32)
        vector = (vector / np.linalg.norm(vector)).astype(np.float16)
        session.add(PassageVectorRow(passage_id=passage.id, model=SPACE.model, vector=vector.tobytes()))
        self.vectors[passage.id] = vector.astype(np.float32)
        self.owner[passage.id] = (tenant, collection)
        self._documents[passage.id] = document

    def index(self, document: str) -> None:
        """What the index task does once the vectors are stored."""
        with self.db.read() as session:
            version = session.get_one(DocumentRow, document).latest_version
            ids = repository.version_passages(session, document, version)
        assert ids is not None
        with index_writer(self.db, SPACE, folder=self.folder) as writer:
            with self.db.write() as session:
                writer.append(session, "add", document, version, ids)
            writer.catch_up()
            with self.db.write() as session:
                gone = going_live.make_live(session, document, version, [])
                if gone:
                    writer.append(session, "delete", document, version, sorted(gone))
            writer.catch_up()
        for passage_id in gone:
            self.forget(passage_id)

    def unindex(self, document: str) -> None:
        """What the unindex task does."""
        with index_writer(self.db, SPACE, folder=self.folder) as writer:
            with self.db.write() as session:
                ids = repository.document_passages(session, document)
                session.get_one(DocumentRow, document).live_version = None
                session.get_one(DocumentRow, document).status = "deleting"
                writer.append(session, "delete", document, 1, sorted(ids))
            writer.catch_up()
        for passage_id in ids:
            self.forget(passage_id)

    def place(self, document: str, tier: str) -> None:
        """What the placing task does."""
        with self.db.write() as session:
            placing.want(session, [document], Tier(tier))
        with index_writer(self.db, SPACE, folder=self.folder) as writer:
            while placing_job.move_wanted(writer):
                pass

    def document_of(self, passage_id: int) -> str:
        return self._documents[passage_id]

    def forget(self, passage_id: int) -> None:
        self.vectors.pop(passage_id, None)
        self.owner.pop(passage_id, None)

    def reader(self) -> IndexReader:
        return IndexReader(self.folder)

    def expected(self, query: np.ndarray, k: int, scope: Scope) -> list[int]:
        """Exact answer by numpy."""
        allowed = [
            i
            for i, (tenant, collection) in self.owner.items()
            if tenant == scope.tenant_id and scope.allows_collection(collection)
        ]
        return sorted(allowed, key=lambda i: (-float(self.vectors[i] @ query), i))[:k]

    def query(self) -> np.ndarray:
        vector = self.random.standard_normal(DIMENSION).astype(np.float32)
        return vector / np.linalg.norm(vector)
