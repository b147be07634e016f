from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from core import jobs as core_jobs
from core.db import Database, utcnow
from core.errors import NotFound, TransientError
from core.models import (
    CollectionRow,
    DocumentRow,
    DocumentVersionRow,
    JobRow,
    MentionRow,
    PassageRow,
    PassageVectorRow,
)
from core.reaper import reap
from core.settings import get_settings
from core.types import DocumentStatus, JobStatus
from core.worker import Task
from ingest import service, tasks
from ingest.parse import ocr
from ingest.values import Progress
from tests.ingest.lifecycle import (
    SCOPE,
    get,
    jobs,
    make_live,
    make_tenants,
    run_waiting,
    stage,
    upload,
)
from tests.ingest.parsing import pdf
from tests.ingest.pictures import encoded, written

TEXT = (
    "# Pumps\n\nPump 7 runs at 620 rpm. Acme Corp. built it in Berlin.\n\n"
    "# 班车\n\n早班车 07:20 从北京发车。\n"
)


def rows_of(db: Database, document_id: str) -> tuple[list[tuple], list[tuple]]:
    with db.read() as session:
        passages = session.execute(
            select(PassageRow.version, PassageRow.ordinal, PassageRow.start, PassageRow.end, PassageRow.text)
            .where(PassageRow.document_id == document_id)
            .order_by(PassageRow.version, PassageRow.ordinal)
        ).all()
        mentions = session.execute(
            select(MentionRow.version, MentionRow.start, MentionRow.surface, MentionRow.entity_id)
            .where(MentionRow.document_id == document_id)
            .order_by(MentionRow.version, MentionRow.start)
        ).all()
    return [tuple(p) for p in passages], [tuple(m) for m in mentions]


def test_a_document_walks_from_bytes_to_passages_and_mentions(database: Database) -> None:
    make_tenants(database)
    document = upload(database, TEXT).document
    assert (document.status, document.stage) == (DocumentStatus.QUEUED, "normalize")

    assert run_waiting(database, document.id) == ["ingest.normalize", "ingest.disambiguate"]

    seen = get(database, document.id)
    assert (seen.status, seen.stage) == (
        DocumentStatus.PROCESSING,
        "index",
    )  # never ready before it is indexed
    assert seen.counts.passages >= 2
    assert seen.counts.mentions >= 2
    assert seen.media_type == "text/markdown"
    assert seen.encoding is not None
    passages, mentions = rows_of(database, document.id)
    with database.read() as session:
        text = session.get_one(DocumentVersionRow, (document.id, 1)).text or ""
    assert all(text[start:end] == body for _, _, start, end, body in passages)
    assert all(text[start:].startswith(surface) for _, start, surface, _ in mentions)
    assert {"Berlin", "北京"} <= {surface for _, _, surface, _ in mentions}


def test_each_stage_run_twice_leaves_the_same_rows(database: Database) -> None:
    make_tenants(database)
    document = upload(database, TEXT).document
    run_waiting(database, document.id)
    before = rows_of(database, document.id)
    for job in jobs(database, document.id):
        if job.task != Task.INDEX.value:
            tasks.normalize(job.id)  # done already: not even claimed
    assert rows_of(database, document.id) == before

    with database.write() as session:  # as if the commit of a finish had been lost
        session.execute(
            update(JobRow).where(JobRow.task.like("ingest.%")).values(status=JobStatus.WAITING.value)
        )
    assert run_waiting(database, document.id) == ["ingest.normalize", "ingest.disambiguate"]
    assert rows_of(database, document.id) == before
    assert len(jobs(database, document.id, Task.INDEX)) == 1


def test_a_job_whose_worker_died_is_taken_over_and_done_once(database: Database) -> None:
    make_tenants(database)
    document = upload(database, TEXT).document
    job = jobs(database, document.id)[0]
    (claimed,) = core_jobs.claim(database, (job.id,))
    core_jobs.LEASES.release(claimed.token)  # the worker dies here
    assert get(database, document.id).status is DocumentStatus.PROCESSING
    tasks.normalize(job.id)  # the message comes again while the lease lives
    assert rows_of(database, document.id) == ([], [])

    with database.write() as session:
        session.execute(update(JobRow).values(lease_expires_at=utcnow() - timedelta(seconds=1)))
    assert reap(database, {})["expired"] == 1
    run_waiting(database, document.id)

    passages, _ = rows_of(database, document.id)
    assert len(passages) == get(database, document.id).counts.passages
    assert jobs(database, document.id)[0].attempts == 2


def test_a_worker_that_lost_its_lease_writes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenants(database)
    document = upload(database, TEXT).document
    job = jobs(database, document.id)[0]
    progress = core_jobs.JobRun.progress

    def lose_it(run: core_jobs.JobRun, done: int, total: int) -> None:
        progress(run, done, total)
        with database.write() as session:
            session.execute(update(JobRow).where(JobRow.id == run.id).values(lease_token="another"))

    monkeypatch.setattr(core_jobs.JobRun, "progress", lose_it)
    tasks.normalize(job.id)
    assert rows_of(database, document.id) == ([], [])
    assert len(jobs(database, document.id)) == 1


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("blank.txt", " \n\u3000\u200b\n", "empty"),
        ("broken.pdf", b"%PDF-1.7\nthis is not a page tree", "corrupt"),
        ("picture.bin", bytes(range(256)) * 8, "unsupported_format"),
    ],
)
def test_a_bad_file_fails_at_its_first_attempt_with_a_reason(
    sqlite_database: Database, name: str, content: bytes | str, reason: str
) -> None:
    make_tenants(sqlite_database)
    document = upload(sqlite_database, content, name).document
    run_waiting(sqlite_database, document.id)
    seen = get(sqlite_database, document.id)
    assert (seen.status, seen.stage) == (DocumentStatus.FAILED, "normalize")
    assert seen.error is not None
    assert seen.error.code == reason
    assert seen.error.detail
    assert [j.attempts for j in jobs(sqlite_database, document.id)] == [1]


def test_an_outage_is_tried_again_and_shown_while_it_waits(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenants(sqlite_database)
    document = upload(sqlite_database, TEXT).document

    def unplugged(*_: object, **__: object) -> None:
        raise TransientError("The volume is not mounted.")

    with monkeypatch.context() as patch:
        patch.setattr("ingest.sandbox.parse_in_sandbox", unplugged)
        job = jobs(sqlite_database, document.id)[0]
        tasks.normalize(job.id)
    seen = get(sqlite_database, document.id)
    assert seen.status is DocumentStatus.PROCESSING
    assert seen.error is not None
    assert "not mounted" in seen.error.detail
    run_waiting(sqlite_database, document.id)
    assert get(sqlite_database, document.id).error is None


def test_known_bytes_of_a_failed_document_start_a_new_attempt(database: Database) -> None:
    make_tenants(database)
    document = upload(database, " \n", "blank.txt").document
    run_waiting(database, document.id)
    again = upload(database, " \n", "blank.txt")
    assert again.created
    assert again.document.id == document.id
    assert again.document.status is DocumentStatus.QUEUED
    assert again.document.error is None
    assert run_waiting(database, document.id) == ["ingest.normalize"]
    assert get(database, document.id).status is DocumentStatus.FAILED


def test_a_new_version_keeps_the_old_one_readable_until_it_is_live(database: Database) -> None:
    make_tenants(database)
    document = upload(database, "Speed limit is 500 rpm.", "policy.md").document
    run_waiting(database, document.id)
    make_live(database, document.id)
    with database.write() as session:
        service.new_version(
            session,
            SCOPE,
            document_id=document.id,
            blob=stage("Speed limit is 620 rpm."),
            file_name="policy.md",
        )
    run_waiting(database, document.id)
    with database.read() as session:
        content = service.document_content(session, SCOPE, document_id=document.id)
    seen = get(database, document.id)
    assert (content.version, seen.version, seen.live_version) == (1, 2, 1)
    assert "500" in content.text
    make_live(database, document.id, 2)
    with database.read() as session:
        assert "620" in service.document_content(session, SCOPE, document_id=document.id).text


def purge(db: Database, document_id: str) -> None:
    """What unindex does at its end, then the purge."""
    with db.write() as session:
        core_jobs.add_job(
            session,
            Task.PURGE,
            tenant_id="ten_a",
            subject_kind="document",
            subject_id=document_id,
            subject_version=1,
        )
    run_waiting(db, document_id, Task.PURGE)


def count(db: Database, *tables: type) -> list[int]:
    with db.read() as session:
        return [session.scalar(select(func.count()).select_from(t)) or 0 for t in tables]


def test_purge_leaves_no_row_and_no_blob(database: Database) -> None:
    make_tenants(database)
    document = upload(database, TEXT).document
    run_waiting(database, document.id)
    make_live(database, document.id)
    with database.write() as session:
        passage_id = session.scalars(select(PassageRow.id)).first()
        session.add(PassageVectorRow(passage_id=passage_id, model="m", vector=b"\0\0"))
    blobs = service.BlobStore.of()
    assert len(blobs.digests()) == 1
    with database.write() as session:
        service.delete_document(session, SCOPE, document_id=document.id)
    purge(database, document.id)
    tables = (DocumentRow, DocumentVersionRow, PassageRow, PassageVectorRow, MentionRow)
    assert count(database, *tables) == [0] * 5
    assert blobs.digests() == set()
    with database.read() as session, pytest.raises(NotFound):
        service.get_document(session, SCOPE, document_id=document.id)
    purge(database, document.id)  # twice is fine


def test_a_blob_that_another_document_needs_survives_the_purge(database: Database) -> None:
    make_tenants(database)
    first = upload(database, TEXT).document
    with database.write() as session:
        service.create_collection(session, SCOPE, name="Other")
    with database.write() as session:
        second = service.register_upload(
            session, SCOPE, collection="Other", blob=stage(TEXT), file_name="same.md"
        ).document
    with database.write() as session:
        service.delete_document(session, SCOPE, document_id=first.id)
    purge(database, first.id)
    assert run_waiting(database, second.id) == ["ingest.normalize", "ingest.disambiguate"]


def test_the_blob_of_a_rolled_back_upload_is_found_and_removed(database: Database) -> None:
    make_tenants(database)
    kept = upload(database, "kept").document
    with pytest.raises(RuntimeError), database.write() as session:
        service.register_upload(session, SCOPE, collection="Handbook", blob=stage("lost"), file_name="l.md")
        raise RuntimeError
    store = service.BlobStore.of()
    assert len(store.digests()) == 2
    for removed in (1, 0):
        with database.write() as session:
            assert len(service.delete_unreferenced_blobs(session, store)) == removed
    with database.read() as session:
        assert service.document_source(session, SCOPE, document_id=kept.id).path.read_text() == "kept"


def test_a_purge_beside_uploads_of_the_same_bytes_loses_no_blob(database: Database) -> None:
    make_tenants(database)
    for _ in range(4):
        document = upload(database, TEXT).document
        with database.write() as session:
            service.delete_document(session, SCOPE, document_id=document.id)
        results: list[service.Upload] = []
        both = [
            threading.Thread(target=purge, args=(database, document.id)),
            threading.Thread(target=lambda found=results: found.append(upload(database, TEXT))),
        ]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        with database.read() as session:
            source = service.document_source(session, SCOPE, document_id=results[0].document.id)
        assert Path(source.path).read_text() == TEXT
        with database.write() as session:
            service.delete_document(session, SCOPE, document_id=results[0].document.id)
        purge(database, results[0].document.id)


def test_a_stage_that_ends_after_the_delete_brings_nothing_back(database: Database) -> None:
    make_tenants(database)
    document = upload(database, TEXT).document
    job = jobs(database, document.id)[0]

    def work(run: core_jobs.JobRun) -> None:
        with database.write() as session:
            service.delete_document(session, SCOPE, document_id=document.id)
        purge(database, document.id)
        tasks._normalize(run)

    core_jobs.run_job(job.id, work, db=database)
    assert count(database, DocumentRow, PassageRow) == [0, 0]
    assert not jobs(database, document.id, Task.DISAMBIGUATE)


def test_deleting_a_collection_takes_its_documents_and_then_itself(database: Database) -> None:
    collection_id = make_tenants(database)
    document = upload(database, TEXT).document
    with database.write() as session:
        service.delete_collection(session, SCOPE, collection="Handbook")
    with database.write() as session:
        assert service.list_collections(session, SCOPE).items == ()
        service.create_collection(session, SCOPE, name="Handbook")  # the name is free at once
    assert get(database, document.id).status is DocumentStatus.DELETING
    purge(database, document.id)
    with database.read() as session:
        assert session.get(CollectionRow, collection_id) is None


def test_link_threshold_of_one_links_nothing_to_the_catalogue(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenants(sqlite_database)
    with sqlite_database.write() as session:
        service.import_entities(session, SCOPE, lines=['{"name": "Acme Corp", "type": "ORG"}'], form="jsonl")
    monkeypatch.setenv("GEO_INGEST__LINK_THRESHOLD", "1.0")
    get_settings.cache_clear()
    document = upload(sqlite_database, TEXT).document
    run_waiting(sqlite_database, document.id)
    with sqlite_database.read() as session:
        (acme,) = service.search_entities(session, SCOPE, text="Acme Corp").items
        linked = set(session.scalars(select(MentionRow.entity_id)))
    assert acme.provenance == "import"
    assert acme.id not in linked


def test_a_long_document_shows_the_pages_read_while_it_is_read(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.sandbox._WATCH_S", 0.1)
    make_tenants(sqlite_database)
    document = upload(sqlite_database, many_pages(), "long.pdf").document
    seen: list[Progress] = []
    with running(sqlite_database, document.id) as job:
        while job.is_alive():
            now = get(sqlite_database, document.id)
            if now.stage == "normalize":
                seen.append(now.progress)
            time.sleep(0.05)
    shares = [(p.done, p.total) for p in seen if p.total]
    assert shares == sorted(shares)
    assert [done for done, total in shares if 0 < done < total == 150], "no progress was shown on the way"


def test_a_document_deleted_while_it_is_read_stops_being_read(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.sandbox._WATCH_S", 0.1)
    make_tenants(sqlite_database)
    document = upload(sqlite_database, many_pages(), "long.pdf").document
    with running(sqlite_database, document.id) as job:
        while not get(sqlite_database, document.id).progress.total:
            time.sleep(0.02)
        with sqlite_database.write() as session:
            service.delete_document(session, SCOPE, document_id=document.id)
        started = time.monotonic()
        job.join(20)
        assert time.monotonic() - started < 4
    assert jobs(sqlite_database, document.id, Task.NORMALIZE)[0].status == JobStatus.CANCELLED.value
    assert count(sqlite_database, PassageRow) == [0]


@pytest.mark.skipif(not ocr.available(), reason="the extra `ocr` is not installed")
def test_a_page_that_takes_too_long_fails_its_document_with_the_reason(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tenants(sqlite_database)
    monkeypatch.setenv("GEO_INGEST__OCR_PAGE_TIMEOUT_S", "1")
    get_settings.cache_clear()
    dense = written("\n".join("Every line of this page holds a good many words." for _ in range(70)), size=14)
    document = upload(sqlite_database, encoded(dense), "dense.png").document
    assert run_waiting(sqlite_database, document.id) == ["ingest.normalize"]
    seen = get(sqlite_database, document.id)
    assert seen.status is DocumentStatus.FAILED
    assert seen.error is not None
    assert (seen.error.code, "page 1" in seen.error.detail) == ("timeout", True)


def many_pages() -> bytes:
    line = "The pumps of hall seven run at six hundred and twenty turns. "
    page = [(60.0, 60 + 12.0 * n, f"{n} {line}") for n in range(60)]
    return pdf(*[page] * 150, size=9)


@contextmanager
def running(db: Database, document_id: str) -> Iterator[threading.Thread]:
    """The normalize job of a document, on a thread beside the test."""
    job = threading.Thread(target=tasks.normalize, args=(jobs(db, document_id, Task.NORMALIZE)[0].id,))
    job.start()
    yield job
    job.join(60)
