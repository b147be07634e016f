from __future__ import annotations

import zlib

import numpy as np
import pytest
from sqlalchemy import select

from core.db import Database
from core.errors import ConfigError, InvalidInput
from core.models import CollectionRow, DocumentRow, PassageRow, TenantRow
from core.settings import Settings
from core.types import Scope
from retrieval import bulk
from retrieval.bulk import BulkDocument, import_documents
from retrieval.check import check_index
from retrieval.manifest import IndexFolder
from retrieval.tiers import IndexReader
from retrieval.writer import IndexWriter, VectorSpace

SPACE = VectorSpace("test/encoder", 16)
ALL = Scope("t1", None, "test")


@pytest.fixture
def db(database: Database) -> Database:
    with database.write() as session:
        session.add(TenantRow(id="t1", name="t1"))
        session.flush()
        session.add(CollectionRow(id="c1", tenant_id="t1", name="c1"))
    return database


def document(name: str, *passages: str) -> BulkDocument:
    vectors = (
        np.random.default_rng(zlib.crc32(name.encode()))
        .standard_normal((len(passages), 16))
        .astype(np.float32)
    )
    return BulkDocument(name, passages, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), "en")


def ready(db: Database) -> set[str]:
    with db.read() as session:
        rows = select(DocumentRow.name).where(DocumentRow.status == "ready", DocumentRow.live_version == 1)
        return set(session.scalars(rows))


def assert_whole(db: Database, settings: Settings, passages: int) -> None:
    check = check_index(db, IndexFolder(settings.index_dir))
    assert (check.faults, check.pending) == ((), 0)
    assert IndexReader(IndexFolder(settings.index_dir)).snapshot().hot.live_count == passages


def test_imported_documents_are_found_by_both_routes(db: Database, settings: Settings) -> None:
    documents = [
        document(f"gate{n}", f"gate {n} opens at dawn", f"its keeper is number {n}") for n in range(7)
    ]
    done = import_documents(db, ALL, "c1", documents, SPACE)
    assert (done.added, done.known) == (7, 0)
    assert ready(db) == {f"gate{n}" for n in range(7)}
    assert_whole(db, settings, 14)
    index = IndexReader(IndexFolder(settings.index_dir)).snapshot()
    with db.read() as session:
        wanted = session.scalar(select(PassageRow.id).where(PassageRow.text == "its keeper is number 3"))
        passage = session.get_one(PassageRow, wanted)
        assert (passage.ordinal, passage.start, passage.end, passage.heading_path) == (1, 22, 44, [])
    assert index.lexical.search("keeper number 3", 1, ALL)[0][0] == wanted
    assert index.hot.search(documents[3].vectors[1], 1, ALL)[0][0] == wanted


def test_an_import_given_again_adds_nothing(db: Database, settings: Settings) -> None:
    documents = [document("a", "one"), document("b", "two")]
    import_documents(db, ALL, "c1", documents, SPACE)
    done = import_documents(db, ALL, "c1", [*documents, document("c", "three")], SPACE)
    assert (done.added, done.known) == (1, 2)
    assert_whole(db, settings, 3)


@pytest.mark.parametrize("where", ["publish", "_go_live"])
def test_an_interrupted_import_is_finished_by_the_next_one(
    db: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    documents = [document("a", "one"), document("b", "two")]
    with monkeypatch.context() as broken:
        broken.setattr(IndexWriter if where == "publish" else bulk, where, lambda *_a, **_k: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            import_documents(db, ALL, "c1", documents, SPACE)
    assert ready(db) == set()
    assert import_documents(db, ALL, "c1", documents, SPACE).known == 2
    assert ready(db) == {"a", "b"}
    assert_whole(db, settings, 2)


def test_wrong_vectors_are_refused_before_anything_is_stored(db: Database) -> None:
    good = document("a", "one")
    narrow = BulkDocument("b", ["two"], np.ones((1, 8), np.float32))
    blank = BulkDocument("c", [""], np.ones((1, 16), np.float32))
    unknown = BulkDocument("d", ["three"], np.full((1, 16), np.nan, np.float32))
    for bad in (narrow, blank, unknown):
        with pytest.raises(InvalidInput, match=f"^{bad.name}:"):
            import_documents(db, ALL, "c1", [good, bad], SPACE)
    assert ready(db) == set()
    import_documents(db, ALL, "c1", [good], SPACE)
    with pytest.raises(ConfigError):
        import_documents(db, ALL, "c1", [narrow], VectorSpace("test/other", 8))
    with db.read() as session:
        assert session.query(DocumentRow).count() == 1
