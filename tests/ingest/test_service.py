from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from core import streams
from core.db import Database
from core.errors import Conflict, Forbidden, InvalidInput, NotFound
from core.job_failures import fail_job
from core.models import ClaimRow, DocumentRow, DocumentVersionRow, EvidenceRow, JobRow, QueryRow
from core.redis_client import get_redis
from core.types import DocumentStatus, JobStatus, Role, Scope, Span
from core.worker import Task
from ingest import service
from ingest.values import Trust
from tests.ingest.lifecycle import (
    SCOPE,
    STRANGER,
    TENANT,
    get,
    jobs,
    make_live,
    make_tenants,
    run_waiting,
    stage,
    upload,
)

NOBODY = Scope(TENANT, (), "key_none", Role.ADMIN)


# -- upload ------------------------------------------------------------------------------------


def test_parallel_uploads_of_the_same_bytes_make_one_document_and_one_job(database: Database) -> None:
    make_tenants(database)
    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(lambda n: upload(database, "same bytes", f"{n}.md"), range(20)))
    assert len({r.document.id for r in results}) == 1
    assert sum(r.created for r in results) == 1
    with database.read() as session:
        counts = [
            session.scalar(select(func.count()).select_from(t))
            for t in (DocumentRow, DocumentVersionRow, JobRow)
        ]
    assert counts == [1, 1, 1]
    assert len(service.BlobStore.of().digests()) == 1
    assert list(service.BlobStore.of().staging.iterdir()) == []


def test_parallel_uploads_of_different_files_lose_none(database: Database) -> None:
    make_tenants(database)
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda n: upload(database, f"bytes {n}"), range(60)))
    assert all(r.created for r in results)
    with database.read() as session:
        assert session.scalar(select(func.count()).select_from(JobRow)) == 60


def test_a_job_rings_only_after_the_commit(database: Database) -> None:
    make_tenants(database)
    rang: list[tuple[str, bool]] = []

    def look(task: str, job_id: str) -> None:
        with database.read() as session:
            rang.append((task, session.get(JobRow, job_id) is not None))

    database._send = look
    with database.write() as session:
        service.register_upload(session, SCOPE, collection="Handbook", blob=stage("x"), file_name="x.md")
        time.sleep(0.05)
        assert rang == []
    assert rang == [("ingest.normalize", True)]


def test_a_request_that_fails_leaves_no_document_and_rings_nothing(database: Database) -> None:
    make_tenants(database)
    rang: list[str] = []
    database._send = lambda task, _: rang.append(task)
    with pytest.raises(RuntimeError), database.write() as session:
        service.register_upload(session, SCOPE, collection="Handbook", blob=stage("x"), file_name="x.md")
        raise RuntimeError
    assert rang == []
    with database.read() as session:
        assert service.list_documents(session, SCOPE).items == ()
    assert upload(database, "x").created


def test_the_same_bytes_in_another_collection_are_another_document(database: Database) -> None:
    make_tenants(database)
    first = upload(database, "x").document
    with database.write() as session:
        service.create_collection(session, SCOPE, name="Other")
        second = service.register_upload(
            session, SCOPE, collection="Other", blob=stage("x"), file_name="x.md"
        )
    assert second.created
    assert second.document.id != first.id


def test_an_empty_file_is_refused_at_the_door(sqlite_database: Database) -> None:
    make_tenants(sqlite_database)
    with pytest.raises(InvalidInput, match="empty"):
        upload(sqlite_database, b"")


HOSTILE_NAMES = (
    "../up.txt",
    "..\\..\\up.txt",
    "/etc/up.txt",
    "a/../../up.txt",
    "%2e%2e%2fup.txt",
    "ok\u202etxt.exe",
    "nul.txt",
    ".",
    "..",
    "",
    "evil\r\nX-Header: 1.txt",
    "zero\0byte.txt",
    "~/.ssh/x.txt",
    "C:\\x.txt",
    "长" * 500 + ".md",
)


def test_client_names_are_display_text_and_never_paths(sqlite_database: Database) -> None:
    make_tenants(sqlite_database)
    root = service.BlobStore.of().root
    outside = {p for p in root.parent.parent.rglob("*") if root not in p.parents}
    for number, name in enumerate(HOSTILE_NAMES):
        shown = upload(sqlite_database, f"text {number}", name).document.name
        assert shown
        assert not set(shown) & set("/\\\r\n\0\u202e"), shown
        assert shown not in (".", "..")
    now = {p for p in root.parent.parent.rglob("*") if root not in p.parents}
    assert {p for p in now - outside if "sqlite" not in p.name} <= {root}
    assert {len(p.name) for p in root.glob("??/*")} == {64}


def test_controls_are_dropped_from_metadata_and_tags(database: Database) -> None:
    make_tenants(database)
    document = upload(
        database,
        "x",
        "a\x00b.md",
        metadata={"k\x00": "v\x00\x07", "n": [1, {"deep": "a\x00"}]},
        tags=["t\x00", " t"],
    ).document
    seen = get(database, document.id)
    assert seen.name == "ab.md"
    assert seen.metadata == {"k": "v", "n": [1, {"deep": "a"}]}
    assert seen.tags == ("t",)


# -- versions ----------------------------------------------------------------------------------


def test_a_new_version_with_another_documents_bytes_conflicts(database: Database) -> None:
    make_tenants(database)
    first, second = upload(database, "one").document, upload(database, "two").document
    with pytest.raises(Conflict) as error, database.write() as session:
        service.new_version(session, SCOPE, document_id=second.id, blob=stage("one"))
    assert error.value.ids["document_id"] == first.id


def test_a_new_version_with_its_own_bytes_changes_nothing(database: Database) -> None:
    make_tenants(database)
    document = upload(database, "one").document
    with database.write() as session:
        outcome = service.new_version(session, SCOPE, document_id=document.id, blob=stage("one"))
    assert not outcome.created
    assert outcome.document.version == 1


def test_reprocess_walks_the_stored_original_as_a_new_version(database: Database) -> None:
    make_tenants(database)
    document = upload(database, "Pump seven runs well.").document
    with pytest.raises(Conflict, match="still"), database.write() as session:
        service.reprocess(session, SCOPE, document_id=document.id)
    run_waiting(database, document.id)
    make_live(database, document.id)
    with database.write() as session:
        again = service.reprocess(session, SCOPE, document_id=document.id)
    assert (again.version, again.live_version, again.status) == (2, 1, DocumentStatus.QUEUED)
    assert run_waiting(database, document.id) == ["ingest.normalize", "ingest.disambiguate"]
    assert not upload(database, "Pump seven runs well.").created


def test_parallel_new_versions_get_numbers_of_their_own(database: Database) -> None:
    make_tenants(database)
    document = upload(database, "v1").document

    def put(n: int) -> int:
        with database.write() as session:
            return service.new_version(
                session, SCOPE, document_id=document.id, blob=stage(f"v{n}")
            ).document.version

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(put, range(2, 10))) == list(range(2, 10))


# -- change, list, read ------------------------------------------------------------------------


def test_patch_merges_metadata_and_replaces_tags(database: Database) -> None:
    make_tenants(database)
    document = upload(database, "x", metadata={"a": 1, "b": 2}, tags=["old"]).document
    with database.write() as session:
        service.patch_document(
            session,
            SCOPE,
            document_id=document.id,
            metadata={"a": None, "c": 3},
            tags=["new"],
            trust=Trust.HIGH,
        )
    seen = get(database, document.id)
    assert (seen.metadata, seen.tags, seen.trust) == ({"b": 2, "c": 3}, ("new",), Trust.HIGH)


@pytest.mark.parametrize(
    "bad",
    [
        {"tags": ["x"] * 1 + [str(n) for n in range(80)]},
        {"metadata": {"k": "x" * 20_000}},
        {"name": " \u200b"},
    ],
)
def test_patch_refuses_what_is_too_large_or_blank(sqlite_database: Database, bad: dict) -> None:
    make_tenants(sqlite_database)
    document = upload(sqlite_database, "x").document
    with pytest.raises(InvalidInput), sqlite_database.write() as session:
        service.patch_document(session, SCOPE, document_id=document.id, **bad)


def test_pages_of_the_list_hold_every_document_once(database: Database) -> None:
    make_tenants(database)
    ids = [upload(database, f"d{n}").document.id for n in range(7)]
    make_live(database, ids[3])
    seen: list[str] = []
    cursor = None
    with database.read() as session:
        while True:
            page = service.list_documents(session, SCOPE, collection="Handbook", cursor=cursor, limit=3)
            seen += [d.id for d in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        ready = service.list_documents(session, SCOPE, status=DocumentStatus.READY).items
    assert sorted(seen) == sorted(ids)
    assert len(seen) == len(ids)
    assert [d.id for d in ready] == [ids[3]]


def test_source_content_passages_and_places_of_a_live_document(database: Database) -> None:
    make_tenants(database)
    text = "# Rules\n\nFirst rule.\n\n# Limits\n\nSpeed is 620.\n"
    document = upload(database, text, "规则 手册.md").document
    with database.read() as session:
        with pytest.raises(NotFound):
            service.document_content(session, SCOPE, document_id=document.id)
        source = service.document_source(session, SCOPE, document_id=document.id)  # readable from the start
    assert (source.path.read_text(), source.name) == (text, "规则 手册.md")
    run_waiting(database, document.id)
    make_live(database, document.id)
    with database.read() as session:
        content = service.document_content(session, SCOPE, document_id=document.id)
        first = service.document_passages(session, SCOPE, document_id=document.id, limit=1)
        rest = service.document_passages(session, SCOPE, document_id=document.id, cursor=first.next_cursor)
        at = content.text.index("620")
        (place,) = service.locate(session, SCOPE, document_id=document.id, span=Span(at, at + 3))
        with pytest.raises(InvalidInput):
            service.locate(session, SCOPE, document_id=document.id, span=Span(0, 10_000))
    assert [h["text"] for h in content.outline] == ["Rules", "Limits"]
    passages = [*first.items, *rest.items]
    assert [p.passage.ordinal for p in passages] == list(range(len(passages)))
    assert all(content.text[p.passage.span.start : p.passage.span.end] == p.passage.text for p in passages)
    assert all(p.places for p in passages)
    assert place.line == 7


def test_annotation_names_linked_entities_with_their_external_ids(database: Database) -> None:
    make_tenants(database)
    row = {
        "id": "Q64",
        "name": "Berlin",
        "type": "GPE",
        "description": "capital of Germany",
        "aliases": ["柏林"],
    }
    with database.write() as session:
        service.import_entities(session, SCOPE, lines=[json.dumps(row)], form="jsonl")
    document = upload(database, "Acme opened an office in Berlin.\n\n公司在柏林设立了办公室。").document
    run_waiting(database, document.id)
    make_live(database, document.id)
    with database.read() as session:
        graph = service.document_annotation(session, SCOPE, document_id=document.id)
    (berlin,) = graph["about"]
    assert berlin["@type"] == "Place"
    assert berlin["sameAs"] == ["http://www.wikidata.org/entity/Q64"]
    assert berlin["alternateName"] == ["柏林"]


# -- delete ------------------------------------------------------------------------------------


def answer_citing(db: Database, document_id: str, other_id: str) -> None:
    with db.write() as session:
        session.add(
            QueryRow(
                id="qry_1",
                tenant_id=TENANT,
                principal="k",
                collection_ids=[],
                question="?",
                status="answered",
            )
        )
        session.flush()
        for marker, cited in ((1, document_id), (2, other_id)):
            session.add(
                EvidenceRow(
                    query_id="qry_1",
                    marker=marker,
                    passage_id=marker,
                    document_id=cited,
                    version=1,
                    score=0.9,
                )
            )
        for ordinal, markers in enumerate(([1], [2], [1, 2])):
            citations = [
                {
                    "marker": m,
                    "passage_id": m,
                    "document_id": document_id if m == 1 else other_id,
                    "version": 1,
                    "page": 3,
                    "quote": {"start": 0, "end": 6, "text": f"secret {m}"},
                }
                for m in markers
            ]
            session.add(
                ClaimRow(
                    query_id="qry_1",
                    ordinal=ordinal,
                    text=f"claim {ordinal}",
                    verdict="supported",
                    reason="exact",
                    citations=citations,
                )
            )
    streams.publish(get_redis(), "qry_1", "claim", {"text": "claim 0"})


def test_delete_hides_at_once_and_erases_quotes_from_answers(database: Database) -> None:
    make_tenants(database)
    document, other = upload(database, "The secret word is plum.").document, upload(database, "x").document
    run_waiting(database, document.id)
    make_live(database, document.id)
    answer_citing(database, document.id, other.id)
    with database.write() as session:
        service.delete_document(session, SCOPE, document_id=document.id)
        assert get_redis().exists(streams.stream_key("qry_1"))  # not before the commit
    assert not get_redis().exists(streams.stream_key("qry_1"))
    with database.read() as session:
        for read in (service.document_content, service.document_passages, service.document_source):
            with pytest.raises(NotFound):
                read(session, SCOPE, document_id=document.id)
        claims = session.scalars(select(ClaimRow).order_by(ClaimRow.ordinal)).all()
        query = session.get_one(QueryRow, "qry_1")
        row = session.get_one(DocumentRow, document.id)
    assert [(c.text, c.erased, c.reason) for c in claims] == [
        ("", True, "exact"),
        ("claim 1", False, "exact"),
        ("", True, "exact"),
    ]
    assert "secret 1" not in json.dumps([c.citations for c in claims])
    assert claims[2].citations[1]["quote"]["text"] == "secret 2"
    assert claims[0].citations[0] == {
        "marker": 1, "passage_id": 1, "document_id": document.id, "version": 1, "page": 3, "quote": None
    }  # fmt: skip
    assert query.stale_since is not None
    assert (row.live_version, row.content_hash) == (None, f"deleting:{row.id}")
    assert [j.status for j in jobs(database, document.id, Task.UNINDEX)] == [JobStatus.WAITING.value]
    assert get(database, document.id).stage == "unindex"


def test_an_answer_written_after_the_delete_says_nothing_of_the_document(database: Database) -> None:
    make_tenants(database)
    document, other = upload(database, "a").document, upload(database, "b").document
    with database.write() as session:
        service.delete_document(session, SCOPE, document_id=document.id)
    answer_citing(database, document.id, other.id)
    for _ in range(2):
        with database.write() as session:
            service.erase_deleted_sources(session, "qry_1")
    with database.read() as session:
        claims = session.scalars(select(ClaimRow).order_by(ClaimRow.ordinal)).all()
        assert session.get_one(QueryRow, "qry_1").stale_since is not None
    assert [c.text for c in claims] == ["", "claim 1", ""]


def test_a_failed_delete_leaves_the_stream_and_the_document(database: Database) -> None:
    make_tenants(database)
    document, other = upload(database, "a").document, upload(database, "b").document
    answer_citing(database, document.id, other.id)
    with pytest.raises(RuntimeError), database.write() as session:
        service.delete_document(session, SCOPE, document_id=document.id)
        raise RuntimeError
    assert get_redis().exists(streams.stream_key("qry_1"))
    assert get(database, document.id).status is DocumentStatus.QUEUED


def test_delete_takes_waiting_work_back_and_may_be_asked_twice(database: Database) -> None:
    make_tenants(database)
    document = upload(database, "x").document
    for _ in range(2):
        with database.write() as session:
            service.delete_document(session, SCOPE, document_id=document.id)
    assert [j.status for j in jobs(database, document.id, Task.NORMALIZE)] == [JobStatus.CANCELLED.value]
    assert len(jobs(database, document.id, Task.UNINDEX)) == 1


def test_the_same_bytes_may_come_again_while_the_old_document_is_deleted(database: Database) -> None:
    make_tenants(database)
    document = upload(database, "x").document
    with database.write() as session:
        service.delete_document(session, SCOPE, document_id=document.id)
    again = upload(database, "x")
    assert again.created
    assert again.document.id != document.id


def test_a_document_being_deleted_cannot_be_changed(database: Database) -> None:
    make_tenants(database)
    document = upload(database, "x").document
    with database.write() as session:
        service.delete_document(session, SCOPE, document_id=document.id)
    with database.write() as session:
        for change in (
            lambda: service.patch_document(session, SCOPE, document_id=document.id, tags=["t"]),
            lambda: service.reprocess(session, SCOPE, document_id=document.id),
            lambda: service.new_version(session, SCOPE, document_id=document.id, blob=stage("y")),
        ):
            with pytest.raises(NotFound):
                change()


# -- scope -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scope", [STRANGER, NOBODY, Scope(TENANT, ("col_other",), "k", Role.ADMIN), Scope("", None, "k")]
)
def test_a_foreign_scope_sees_and_changes_nothing(sqlite_database: Database, scope: Scope) -> None:
    collection_id = make_tenants(sqlite_database)
    document = upload(sqlite_database, "QUARTZ-LANTERN").document
    run_waiting(sqlite_database, document.id)
    make_live(sqlite_database, document.id)
    with sqlite_database.write() as session:
        assert service.list_documents(session, scope).items == ()
        assert service.list_collections(session, scope).items == ()
        by_document = {"document_id": document.id}
        for call, extra in (
            (service.get_document, by_document),
            (service.document_source, by_document),
            (service.document_content, by_document),
            (service.document_passages, by_document),
            (service.document_annotation, by_document),
            (service.locate, by_document | {"span": Span(0, 1)}),
            (service.patch_document, by_document | {"tags": []}),
            (service.delete_document, by_document),
            (service.reprocess, by_document),
            (service.new_version, by_document | {"blob": stage("new")}),
            (service.get_collection, {"collection": collection_id}),
            (service.get_collection, {"collection": "Handbook"}),
            (service.patch_collection, {"collection": collection_id, "name": "x"}),
            (service.start_reprocess, {"collection": collection_id, "only": service.Only.ALL}),
            (service.list_reprocesses, {"collection": collection_id}),
            (service.delete_collection, {"collection": collection_id}),
            (service.register_upload, {"collection": collection_id, "blob": stage("z"), "file_name": "z"}),
        ):
            with pytest.raises(NotFound):
                call(session, scope, **extra)
    assert get(sqlite_database, document.id).status is DocumentStatus.READY


# -- collections -------------------------------------------------------------------------------


def test_collection_names_are_unique_in_a_tenant_only(database: Database) -> None:
    make_tenants(database)
    with database.write() as session:
        with pytest.raises(Conflict):
            service.create_collection(session, SCOPE, name=" Handbook ")
        service.create_collection(session, STRANGER, name="Handbook")
        other = service.create_collection(session, SCOPE, name="手册")
        with pytest.raises(Conflict):
            service.patch_collection(session, SCOPE, collection=other.id, name="Handbook")
        assert service.patch_collection(session, SCOPE, collection="手册", name="指南").name == "指南"
        with pytest.raises(Forbidden):
            service.create_collection(session, SCOPE.narrowed((other.id,)), name="third")


def test_an_upload_beside_the_deletion_of_its_collection_ends_deleted_or_refused(database: Database) -> None:
    make_tenants(database)
    outcome: list[object] = []

    def put() -> None:
        try:
            outcome.append(upload(database, "x").document.id)
        except NotFound:
            outcome.append(None)

    def drop() -> None:
        with database.write() as session:
            service.delete_collection(session, SCOPE, collection="Handbook")

    threads = [threading.Thread(target=put), threading.Thread(target=drop)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcome) == 1
    if outcome[0] is not None:
        assert get(database, str(outcome[0])).status is DocumentStatus.DELETING


def test_the_door_loads_no_model_and_no_array_library() -> None:
    heavy = (
        "numpy",
        "torch",
        "openvino",
        "faiss",
        "spacy",
        "sentence_transformers",
        "tantivy",
        "vllm",
        "pypdfium2",
    )
    code = f"import sys, ingest.service; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_delete_whose_clean_up_failed_is_tried_again_when_asked_again(database: Database) -> None:
    make_tenants(database)
    document = upload(database, "secret", "a.txt").document
    with database.write() as session:
        service.delete_document(session, SCOPE, document_id=document.id)
    job = jobs(database, document.id, Task.UNINDEX)[0]
    with database.write() as session:
        fail_job(session, job.id, "worker_died", "The worker died 4 times.")
    with database.write() as session:
        service.delete_document(session, SCOPE, document_id=document.id)
    (again,) = jobs(database, document.id, Task.UNINDEX)
    assert (again.id, again.status, again.attempts) == (job.id, JobStatus.WAITING, 0)
    assert get_redis().llen("index") == 2
