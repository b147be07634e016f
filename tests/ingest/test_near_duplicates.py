from __future__ import annotations

import random
import threading

from sqlalchemy import func, select

from core.db import Database
from core.models import Base, NearDuplicateRow, SignatureBandRow, SignatureRow
from ingest import service
from tests.e2e.test_chaos import WORDS
from tests.ingest.lifecycle import SCOPE, get, make_live, make_tenants, run_waiting, stage, upload


def words_of(seed: int, size: int = 300) -> list[str]:
    chance = random.Random(seed)
    return [chance.choice(WORDS) for _ in range(size)]


def text_of(seed: int, changed: int = 0) -> str:
    tokens = words_of(seed)
    tokens[100 : 100 + changed] = [f"new{n}" for n in range(changed)]
    return " ".join(tokens)


def ready(db: Database, text: str, collection: str = "Handbook") -> str:
    with db.write() as session:
        document_id = service.register_upload(
            session, SCOPE, collection=collection, blob=stage(text), file_name="note.txt"
        ).document.id
    run_waiting(db, document_id)
    make_live(db, document_id)
    return document_id


def alike(db: Database, document_id: str) -> dict[str, float]:
    return {n.document_id: n.similarity for n in get(db, document_id).near_duplicates}


def filtered(db: Database, wanted: bool) -> set[str]:
    with db.read() as session:
        return {d.id for d in service.list_documents(session, SCOPE, near_duplicates=wanted).items}


def test_near_duplicates_are_shown_at_both_documents_and_others_are_not(database: Database) -> None:
    make_tenants(database)
    first = ready(database, text_of(1))
    copy = ready(database, text_of(1, changed=3))
    cousin = ready(database, text_of(1, changed=60))
    other = ready(database, text_of(2))
    assert alike(database, first).keys() == {copy, cousin}
    assert alike(database, first)[copy] > 0.95
    assert 0.5 <= alike(database, first)[cousin] < 0.8
    assert alike(database, copy)[first] == alike(database, first)[copy]
    assert get(database, first).near_duplicates[0].name == "note.txt"
    assert alike(database, other) == {}
    assert filtered(database, True) == {first, copy, cousin}
    assert filtered(database, False) == {other}


def test_the_same_text_in_another_collection_is_not_told(database: Database) -> None:
    make_tenants(database)
    with database.write() as session:
        service.create_collection(session, SCOPE, name="Other")
    first, second = ready(database, text_of(1)), ready(database, text_of(1), "Other")
    assert alike(database, first) == alike(database, second) == {}


def test_a_new_version_of_either_side_is_compared_anew(database: Database) -> None:
    make_tenants(database)
    first, second = ready(database, text_of(1)), ready(database, text_of(1, changed=3))

    def change(text: str) -> None:
        with database.write() as session:
            service.new_version(session, SCOPE, document_id=second, blob=stage(text))
        run_waiting(database, second)

    change(text_of(2))
    assert alike(database, first).keys() == {second}  # version 1 is still served
    make_live(database, second, 2)
    assert alike(database, first) == alike(database, second) == {}
    change(text_of(1, changed=6))
    make_live(database, second, 3)
    assert alike(database, first)[second] > 0.9


def test_documents_that_come_in_together_find_each_other(database: Database) -> None:
    make_tenants(database)
    ids = [upload(database, text_of(1, changed=n), f"{n}.txt").document.id for n in (0, 3)]
    threads = [threading.Thread(target=run_waiting, args=(database, i)) for i in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for document_id in ids:
        run_waiting(database, document_id)
        make_live(database, document_id)
    assert alike(database, ids[0]).keys() == {ids[1]}
    assert alike(database, ids[1]).keys() == {ids[0]}


def test_a_stage_run_again_keeps_one_pair(database: Database) -> None:
    make_tenants(database)
    first = ready(database, text_of(1))
    ready(database, text_of(1, changed=3))
    with database.write() as session:
        service.reprocess(session, SCOPE, document_id=first)
    run_waiting(database, first)
    with database.read() as session:
        rows = session.execute(
            select(NearDuplicateRow.document_id, NearDuplicateRow.version).order_by(NearDuplicateRow.version)
        ).all()
    assert rows == [(first, 1), (first, 2)]
    make_live(database, first, 2)
    assert len(alike(database, first)) == 1


def test_nothing_of_a_deleted_document_stays_in_any_table(database: Database) -> None:
    make_tenants(database)
    first, second = ready(database, text_of(1)), ready(database, text_of(1, changed=3))
    with database.write() as session:
        service.delete_document(session, SCOPE, document_id=second)
    assert alike(database, first) == {}  # at once
    run_waiting_all(database, second)
    with database.read() as session:
        counts = {
            table.__tablename__: session.scalar(select(func.count()).select_from(table))
            for table in (SignatureRow, SignatureBandRow, NearDuplicateRow)
        }
        assert counts["near_duplicates"] == 0
        assert counts["signatures"] == 1
        for table in Base.metadata.sorted_tables:
            if table.name in ("jobs", "index_log", "audit"):  # what was done, not what it held
                continue
            for row in session.execute(select(table)):
                assert second not in str(row), table.name


def run_waiting_all(db: Database, document_id: str) -> None:
    """The purge, as the index worker asks for it once it has forgotten the document."""
    from core.jobs import add_job
    from core.worker import Task

    with db.write() as session:
        add_job(
            session, Task.PURGE, tenant_id=SCOPE.tenant_id, subject_kind="document", subject_id=document_id,
            attempt_key="delete",
        )  # fmt: skip
    run_waiting(db, document_id, Task.PURGE)


def test_a_short_text_has_no_near_duplicates(database: Database) -> None:
    make_tenants(database)
    first = ready(database, "The fee is 410 crowns.")
    ready(database, "The fee is 411 crowns.")
    assert alike(database, first) == {}
