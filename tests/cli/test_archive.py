"""Backup and restore on both databases, and from one to the other."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from api.cli.data import archive, doctor
from core.db import Database, get_database, utcnow
from core.errors import ConfigError, Conflict, GeoError
from core.ids import new_id
from core.models import (
    Base,
    ClaimRow,
    CollectionRow,
    DocumentRow,
    DocumentVersionRow,
    JobRow,
    PassageRow,
    PassageVectorRow,
    QueryRow,
    TenantRow,
    TierRow,
)
from core.settings import Settings, get_settings
from ingest.blobs import BlobStore
from tests.conftest import clear_process_caches
from tests.support.servers import PostgresServer

TEXT = "汽笛每天鸣响三次。 The whistle sounds \u2028 thrice."


def fill(db: Database, settings: Settings) -> str:
    """One ready document with a vector, an answered query, and a passage id that was given and deleted."""
    store = BlobStore.of(settings)
    staged = store.stage([TEXT.encode()], 1 << 20)
    store.commit(staged)
    tenant, collection, document, query = (new_id(p) for p in ("ten", "col", "doc", "qry"))
    with db.write() as session:
        session.add(TenantRow(id=tenant, name="default"))
        session.flush()
        session.add(CollectionRow(id=collection, tenant_id=tenant, name="signals"))
        session.flush()
        session.add(
            DocumentRow(
                id=document,
                tenant_id=tenant,
                collection_id=collection,
                name="汽笛.txt",
                content_hash=staged.digest,
                status="ready",
                live_version=1,
                tags=["a"],
                meta={"k": None},
            )
        )
        session.flush()
        session.add(
            DocumentVersionRow(
                document_id=document,
                version=1,
                blob_hash=staged.digest,
                size_bytes=staged.size_bytes,
                file_name="汽笛.txt",
                text=TEXT,
                offset_map=b"\x00\xff",
            )
        )
        session.flush()
        passages = [
            PassageRow(
                tenant_id=tenant,
                collection_id=collection,
                document_id=document,
                version=1,
                ordinal=n,
                start=0,
                end=5,
                lang="zh",
                text=TEXT[:5],
            )
            for n in range(2)
        ]
        session.add_all(passages)
        session.flush()
        session.add(PassageVectorRow(passage_id=passages[0].id, model="m", vector=b"\x01\x02\x00"))
        session.delete(passages[1])
        session.add(
            QueryRow(
                id=query,
                tenant_id=tenant,
                principal="k",
                collection_ids=[collection],
                question="?",
                status="answered",
                finished_at=utcnow(),
            )
        )
        session.flush()
        cited = [{"document_id": document, "marker": 1}]
        session.add(ClaimRow(query_id=query, ordinal=0, text="x", verdict="supported", citations=cited))
    return document


def contents(db: Database) -> dict[str, list[tuple[Any, ...]]]:
    with db.read() as session:
        return {
            table.name: [tuple(row) for row in session.execute(select(table).order_by(*table.primary_key))]
            for table in Base.metadata.sorted_tables
        }


def next_passage_id(db: Database) -> int:
    with db.write() as session:
        known = session.scalars(select(PassageRow)).one()
        fresh = PassageRow(
            tenant_id=known.tenant_id,
            collection_id=known.collection_id,
            document_id=known.document_id,
            version=1,
            ordinal=9,
            start=0,
            end=1,
            lang="en",
            text="x",
        )
        session.add(fresh)
        session.flush()
        return fresh.id


def elsewhere(monkeypatch: pytest.MonkeyPatch, folder: Path, url: str = "") -> Settings:
    monkeypatch.setenv("GEO_DATA_DIR", str(folder))
    monkeypatch.setenv("GEO_DATABASE__URL", url)
    clear_process_caches()
    return get_settings()


@pytest.mark.parametrize("suffix", [".tar.gz", ".tar.zst", ".tar"])
def test_restored_installation_equals_the_first(
    database: Database, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    if suffix == ".tar.zst" and shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    fill(database, settings)
    before = contents(database)
    path = tmp_path / f"copy{suffix}"
    archive.backup(get_settings(), database, path)
    target = elsewhere(monkeypatch, tmp_path / "other")
    done = archive.restore(target, path, force=False)
    assert done["safety_copy"] is None
    assert contents(get_database()) == before
    assert BlobStore.of(target).digests() == BlobStore.of(settings).digests()
    with get_database().read() as session:
        assert session.scalar(select(DocumentRow.meta)) == {"k": None}
    assert doctor.examine(target, get_database()) == []
    assert next_passage_id(get_database()) == next_passage_id(database) == 3


def test_sqlite_backup_moves_to_postgres(
    sqlite_database: Database,
    postgres_server: PostgresServer,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(sqlite_database, settings)
    before = contents(sqlite_database)
    archive.backup(settings, sqlite_database, tmp_path / "copy.tar")
    name = postgres_server.new_database()
    target = elsewhere(monkeypatch, tmp_path / "other", postgres_server.url_of(name))
    archive.restore(target, tmp_path / "copy.tar", force=False)
    assert contents(get_database()) == before
    assert next_passage_id(get_database()) == 3
    archive.restore(target, tmp_path / "copy.tar", force=True)  # over what is there: a safety copy first
    assert contents(get_database()) == before
    get_database().dispose()
    postgres_server.drop(name)


def test_existing_data_is_replaced_only_by_force_and_kept_aside(
    sqlite_database: Database, settings: Settings, tmp_path: Path
) -> None:
    document = fill(sqlite_database, settings)
    archive.backup(settings, sqlite_database, tmp_path / "copy.tar.gz")
    with pytest.raises(Conflict, match="--force"):
        archive.restore(settings, tmp_path / "copy.tar.gz", force=False)
    sqlite_database.dispose()
    done = archive.restore(settings, tmp_path / "copy.tar.gz", force=True)
    assert (Path(done["safety_copy"]) / "geo.sqlite3").is_file()
    clear_process_caches()
    with get_database().read() as session:
        assert session.scalar(select(DocumentRow.id)) == document


def test_damaged_archive_changes_nothing(
    sqlite_database: Database, settings: Settings, tmp_path: Path
) -> None:
    fill(sqlite_database, settings)
    archive.backup(settings, sqlite_database, tmp_path / "copy.tar")
    before = contents(sqlite_database)
    folder = tmp_path / "unpacked"
    with tarfile.open(tmp_path / "copy.tar") as source:
        source.extractall(folder, filter="data")
    rows = folder / "database" / "documents.jsonl"
    rows.write_text(rows.read_text().replace("ready", "fresh"))
    with tarfile.open(tmp_path / "forged.tar", "w") as target:
        target.add(folder, ".")
    with pytest.raises(GeoError, match=r"damaged at database/documents\.jsonl"):
        archive.restore(settings, tmp_path / "forged.tar", force=True)
    (tmp_path / "cut.tar").write_bytes((tmp_path / "copy.tar").read_bytes()[:3000])
    with pytest.raises(GeoError, match="no whole backup"):
        archive.restore(settings, tmp_path / "cut.tar", force=True)
    assert contents(sqlite_database) == before
    assert not list(tmp_path.glob(".geo-restore-*"))


def test_unknown_suffix_is_refused(sqlite_database: Database, settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must end in"):
        archive.backup(settings, sqlite_database, tmp_path / "copy.zip")


def test_doctor_names_each_contradiction(database: Database, settings: Settings) -> None:
    document = fill(database, settings)
    store = BlobStore.of(get_settings())
    assert doctor.examine(get_settings(), database) == []
    store.commit(store.stage([b"nobody names me"], 1 << 20))
    with database.write() as session:
        session.query(PassageVectorRow).delete()
        digest = session.scalar(select(DocumentVersionRow.blob_hash))
        session.add(
            DocumentRow(
                id="doc_stuck",
                tenant_id=session.scalar(select(TenantRow.id)) or "",
                name="s",
                content_hash="h",
                collection_id=session.scalar(select(CollectionRow.id)) or "",
                status="processing",
            )
        )
        claim = session.scalars(select(ClaimRow)).one()
        claim.citations = [{"document_id": "doc_gone", "marker": 1}]
    store.delete(digest or "")
    found = {f.check: f for f in doctor.examine(get_settings(), database)}
    assert set(found) == {
        "passages_without_vector",
        "documents_without_job",
        "traces_of_deleted",
        "blobs_unreferenced",
        "blobs_missing",
    }
    assert document in found["passages_without_vector"].detail
    assert all(json.dumps(f.as_dict()) and f.mend for f in found.values())


def test_doctor_says_that_the_next_start_builds_a_restored_index(
    sqlite_database: Database, settings: Settings
) -> None:
    with sqlite_database.write() as session:
        session.merge(TierRow(tier="hot", generation=12))
    (finding,) = doctor.examine(get_settings(), sqlite_database)
    assert (finding.check, finding.mend) == ("index_not_built", "geo up")


def test_doctor_sees_jobs_that_nobody_takes(database: Database, settings: Settings) -> None:
    from datetime import timedelta

    with database.write() as session:
        late = utcnow() - timedelta(hours=1)
        for n, state in enumerate(("waiting", "running")):
            session.add(
                JobRow(
                    id=new_id("job"),
                    tenant_id="t",
                    task="ingest.normalize",
                    queue="ingest",
                    subject_kind="document",
                    subject_id=f"doc_{n}",
                    status=state,
                    next_send_at=late,
                    lease_expires_at=late,
                )
            )
    counts = {f.check: f.count for f in doctor.examine(get_settings(), database)}
    assert counts == {"jobs_stuck": 2, "jobs_of_deleted": 2}  # and their documents are not there
    with database.read() as session:
        assert session.scalar(select(func.count()).select_from(JobRow)) == 2
