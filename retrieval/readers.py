"""The open indexes of this process, in the form that the routes use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.db import Database, get_database
from core.types import Scope
from retrieval import index_repository as repository
from retrieval.recall import Readers
from retrieval.tiers import IndexReader, get_reader


@dataclass(frozen=True, slots=True)
class PublishedVectors:
    """The dense route's view of the published tiers."""

    db: Database
    reader: IndexReader

    def search(
        self,
        vector: npt.NDArray[np.float32],
        k: int,
        *,
        scope: Scope,
        document_ids: Sequence[str] | None,
    ) -> tuple[list[tuple[int, float]], int]:
        """The best k `(passage id, cosine)` and the generation they come from; see `HotReader.search`."""
        index = self.reader.snapshot()
        passage_ids: Sequence[int] | None = None
        if document_ids is not None:
            with self.db.read() as session:
                passage_ids = repository.passages_of(session, scope, document_ids)
        return index.hot.search(vector, k, scope, passage_ids=passage_ids), index.generation


@dataclass(frozen=True, slots=True)
class PublishedText:
    """The lexical route's view of the published index."""

    reader: IndexReader

    def search(
        self,
        question: str,
        k: int,
        *,
        tenant_id: str,
        collection_ids: Sequence[str] | None,
        document_ids: Sequence[str] | None = None,
    ) -> list[tuple[int, float]]:
        """The best k `(passage id, BM25)`; see `LexicalReader.search`."""
        scope = Scope(tenant_id, None if collection_ids is None else tuple(collection_ids), "reader")
        return self.reader.snapshot().lexical.search(question, k, scope, document_ids=document_ids)


def open_readers() -> Readers:
    """Load what is published, so that the first question does not wait for it."""
    reader = get_reader()
    reader.snapshot()
    return Readers(PublishedVectors(get_database(), reader), PublishedText(reader))
