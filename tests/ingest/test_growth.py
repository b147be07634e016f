"""Entities that documents bring: through the real stages, on both databases."""

from __future__ import annotations

import threading
from itertools import permutations

import pytest
from sqlalchemy import select

from core.db import Database
from core.models import EntityRow, JobRow, MentionRow, TenantRow
from core.types import LinkedMention, Role, Scope, Span
from core.worker import Task
from ingest import service, tasks, writing
from ingest.catalogue_repository import catalogue_stamp, load_catalogue
from tests.ingest.lifecycle import SCOPE, TENANT, make_tenants, run_waiting, upload

ZH = {
    "a": "# 远山股份董监高\n\n李伟，男，远山股份财务负责人，2019 年入职，此前任职于会计师事务所。\n",
    "b": "# 海石科技董监高\n\n李伟，女，海石科技独立董事，材料学教授，2021 年当选。\n",
    "c": "# 公告\n\n李伟于三月辞去职务，生效日期为三月三十一日。\n",
}
EN = {
    "a": "# Staff\n\nJohn Carter works for Northgate Stores as an accountant since 2019.\n",
    "b": "# Board\n\nJohn Carter, professor, joined the board of Kestrel Industries in 2021.\n",
    "c": "# Notice\n\nJohn Carter resigned on 31 March.\n",
}


def ingest(db: Database, name: str, text: str) -> str:
    document_id = upload(db, text, f"{name}.md").document.id
    run_waiting(db, document_id)
    return document_id


def linked(db: Database, document_id: str, surface: str) -> str | None:
    with db.read() as session:
        return session.scalars(
            select(MentionRow.entity_id)
            .where(MentionRow.document_id == document_id, MentionRow.surface == surface)
            .order_by(MentionRow.start)
        ).first()


@pytest.mark.parametrize(("texts", "name"), [(ZH, "李伟"), (EN, "John Carter")], ids=["zh", "en"])
@pytest.mark.parametrize("order", list(permutations("abc")), ids="".join)
def test_two_people_of_one_name_stay_two_whatever_comes_first(
    sqlite_database: Database, texts: dict[str, str], name: str, order: tuple[str, ...]
) -> None:
    make_tenants(sqlite_database)
    ids = {letter: ingest(sqlite_database, letter, texts[letter]) for letter in order}
    people = {letter: linked(sqlite_database, document_id, name) for letter, document_id in ids.items()}
    assert people["a"] is not None
    assert people["b"] is not None
    assert people["a"] != people["b"]
    assert people["c"] is None


def test_an_organisation_is_one_entity_in_all_documents_and_goes_with_the_last(database: Database) -> None:
    make_tenants(database)
    first = ingest(database, "x", "星澜天文台由云河物流有限公司供货。\n")
    second = ingest(database, "y", "云河物流有限公司成立于 2001 年。\n")
    entity_id = linked(database, first, "云河物流有限公司")
    assert entity_id is not None
    assert linked(database, second, "云河物流有限公司") == entity_id
    for gone, left in ((first, 1), (second, 0)):
        with database.write() as session:
            service.delete_document(session, SCOPE, document_id=gone)
        purge(database, gone)
        with database.read() as session:
            assert len(session.scalars(select(EntityRow).where(EntityRow.id == entity_id)).all()) == left
    with database.read() as session:
        assert session.scalars(select(EntityRow)).all() == []


def purge(db: Database, document_id: str) -> None:
    with db.write() as session:
        writing.purge_document(session, document_id, [])


def test_people_fall_apart_when_the_document_that_tied_them_goes(database: Database) -> None:
    make_tenants(database)
    one = ingest(database, "1", "John Carter works for Northgate Stores in Leeds.\n")
    two = ingest(database, "2", "John Carter works for Kestrel Industries in York.\n")
    both = ingest(
        database, "3", "John Carter, once of Northgate Stores Ltd, now leads Kestrel Industries Ltd.\n"
    )
    assert linked(database, one, "John Carter") == linked(database, two, "John Carter")
    with database.write() as session:
        service.delete_document(session, SCOPE, document_id=both)
    purge(database, both)
    assert linked(database, one, "John Carter") != linked(database, two, "John Carter")


def test_a_reprocess_changes_nothing(database: Database) -> None:
    make_tenants(database)
    document = ingest(database, "b", ZH["b"])
    before = linked(database, document, "李伟")
    with database.write() as session:
        job = session.scalars(
            select(JobRow).where(JobRow.subject_id == document, JobRow.task == Task.DISAMBIGUATE.value)
        ).one()
        job.status = "waiting"
        job_id = job.id
    tasks.disambiguate(job_id)
    assert linked(database, document, "李伟") == before
    with database.read() as session:
        assert len(session.scalars(select(EntityRow).where(EntityRow.name == "李伟")).all()) == 1


def test_a_key_for_one_collection_sees_no_names_of_another(database: Database) -> None:
    make_tenants(database)
    ingest(database, "x", "云河物流有限公司成立于 2001 年。\n")
    with database.write() as session:
        other = service.create_collection(session, SCOPE, name="Other").id
    narrow = Scope(TENANT, (other,), "key_narrow", Role.READER)
    with database.read() as session:
        assert service.search_entities(session, SCOPE, text="云河").items
        assert service.search_entities(session, narrow, text="云河").items == ()


def test_untouched_names_of_documents_stay_out_of_the_catalogue_in_memory(database: Database) -> None:
    make_tenants(database)
    with database.read() as session:
        before = catalogue_stamp(session, TENANT)
    document = ingest(database, "x", "云河物流有限公司成立于 2001 年。\n")
    entity_id = linked(database, document, "云河物流有限公司")
    assert entity_id is not None
    with database.read() as session:
        assert catalogue_stamp(session, TENANT) == before
        assert len(load_catalogue(session, TENANT)) == 0
    with database.write() as session:
        service.patch_entity(session, SCOPE, entity_id=entity_id, name="云河")
    with database.read() as session:
        assert catalogue_stamp(session, TENANT) != before
        assert load_catalogue(session, TENANT).knows("云河物流有限公司")


def test_tenants_share_no_entity(database: Database) -> None:
    make_tenants(database)
    ingest(database, "x", "云河物流有限公司成立于 2001 年。\n")
    with database.read() as session:
        assert session.get(TenantRow, "ten_b") is not None
        stranger = Scope("ten_b", None, "key_b", Role.ADMIN)
        assert service.search_entities(session, stranger, text="云河").items == ()


def test_two_workers_that_rewrite_documents_of_the_same_people_never_wait_for_each_other(
    postgres_database: Database,
) -> None:
    """Each rewrite changes people of the other's document; without one order of locks that deadlocks."""
    make_tenants(postgres_database)
    ids = [
        ingest(
            postgres_database, str(n), f"John Carter of Northgate Stores Ltd met Mary Field of Acme{n} Ltd.\n"
        )
        for n in range(2)
    ]
    failures: list[BaseException] = []

    def rewrite(document_id: str, firms: tuple[str, str]) -> None:
        with postgres_database.read() as session:
            rows = session.scalars(select(MentionRow).where(MentionRow.document_id == document_id)).all()
            people = [
                LinkedMention(
                    r.passage_id, Span(r.start, r.end), r.surface, None, 0.0, "nil=unknown_name", "PERSON"
                )
                for r in rows
                if r.type == "PERSON"
            ]
        try:
            for turn in range(40):
                with postgres_database.write() as session:
                    writing.write_links(
                        session, document_id, 1, people, [frozenset({firms[turn % 2]})] * len(people)
                    )
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    threads = [
        threading.Thread(target=rewrite, args=(ids[0], ("shared", "one"))),
        threading.Thread(target=rewrite, args=(ids[1], ("shared", "two"))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert not any(thread.is_alive() for thread in threads)
