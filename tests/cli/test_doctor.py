"""What `geo doctor` finds of deleted documents and replaced versions, and removes with `--fix`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from sqlalchemy import func, select, text

from api.cli.data import doctor
from core import streams
from core.db import Database
from core.ids import new_id
from core.models import (
    Base,
    ClaimRow,
    DocumentRow,
    EvidenceRow,
    JobRow,
    MentionRow,
    NearDuplicateRow,
    PassageRow,
    PassageVectorRow,
    QueryRow,
    SignatureRow,
)
from core.redis_client import get_redis
from core.settings import Settings, get_settings
from ingest.blobs import BlobStore
from ingest.service import STALE_STAGING_S
from tests.cli.test_archive import fill


def checks(db: Database) -> dict[str, doctor.Finding]:
    return {f.check: f for f in doctor.examine(get_settings(), db)}


def without_keys(db: Database, *statements: str) -> None:
    """Change rows behind the back of the foreign keys, as a damaged database would."""
    with db.engine.connect() as connection:
        sqlite = connection.dialect.name == "sqlite"
        connection.exec_driver_sql("ROLLBACK") if sqlite else None
        off = "PRAGMA foreign_keys=OFF" if sqlite else "SET session_replication_role = replica"
        on = "PRAGMA foreign_keys=ON" if sqlite else "SET session_replication_role = DEFAULT"
        for statement in (off, *statements, on):
            connection.exec_driver_sql(statement)
        if not sqlite:
            connection.commit()
        else:
            connection.exec_driver_sql("BEGIN")


def test_every_table_that_names_a_document_is_looked_at_and_cleaned(
    database: Database, settings: Settings
) -> None:
    document = fill(database, settings)
    with database.write() as session:
        tenant = session.get_one(DocumentRow, document).tenant_id
        passage = session.scalars(select(PassageRow.id)).one()
        session.add(
            MentionRow(
                tenant_id=tenant, passage_id=passage, document_id=document, version=1, start=0, end=1,
                surface="x",
            )
        )  # fmt: skip
        session.add(SignatureRow(document_id=document, version=1, values=b"1"))
        query = session.scalars(select(QueryRow.id)).one()
        session.add(
            EvidenceRow(
                query_id=query, marker=1, passage_id=passage, document_id=document, version=1, score=1.0,
                sentences=[{"start": 0, "end": 1, "score": 0.5}],
            )
        )  # fmt: skip
    assert checks(database) == {}
    without_keys(database, f"DELETE FROM documents WHERE id = '{document}'")
    found = checks(database)["traces_of_deleted"]
    assert found.mend == "geo doctor --fix"
    for table in ("document_versions", "mentions", "passages", "signatures", "evidence", "claims"):
        assert f"1 {table}" in found.detail
    doctor.mend(get_settings(), database)
    left = set(checks(database))
    assert left <= {"blobs_unreferenced"}
    with database.read() as session:
        for table in (PassageRow, PassageVectorRow, MentionRow, SignatureRow):
            assert session.scalar(select(func.count()).select_from(table)) == 0
        claim, evidence = session.scalars(select(ClaimRow)).one(), session.scalars(select(EvidenceRow)).one()
        assert (claim.text, claim.erased, evidence.sentences) == ("", True, [])
    doctor.mend(get_settings(), database)
    assert checks(database) == {}
    assert BlobStore.of().digests() == set()


def test_rows_of_a_replaced_version_are_found_and_those_of_a_failed_one_stay(
    database: Database, settings: Settings
) -> None:
    document = fill(database, settings)
    with database.write() as session:
        session.execute(
            text(
                "INSERT INTO document_versions (document_id, version, blob_hash, size_bytes, file_name,"
                " declared_type, media_type, title, lang, outline, warnings, passage_count, created_at)"
                " SELECT document_id, 2, blob_hash, size_bytes, file_name, declared_type, media_type, title,"
                " lang, outline, warnings, passage_count, created_at FROM document_versions"
            )
        )
        row = session.get_one(DocumentRow, document)
        row.latest_version, row.status = 2, "failed"
        old = session.scalars(select(PassageRow)).one()
        session.add(
            PassageRow(
                tenant_id=row.tenant_id, collection_id=row.collection_id, document_id=document, version=2,
                ordinal=0, start=0, end=1, lang="en", text="x",
            )
        )  # fmt: skip
        session.add(SignatureRow(document_id=document, version=2, values=b"1"))
        kept = old.id
    assert checks(database) == {}  # version 1 is served, version 2 may be tried again
    with database.write() as session:
        session.get_one(DocumentRow, document).status = "ready"
        session.get_one(DocumentRow, document).latest_version = 3
    found = checks(database)["versions_left_over"]
    assert (found.count, found.mend) == (2, "geo doctor --fix")
    doctor.mend(get_settings(), database)
    assert checks(database) == {}
    with database.read() as session:
        assert session.scalars(select(PassageRow.id)).all() == [kept]


def test_files_that_nothing_names_are_removed_and_others_stay(
    sqlite_database: Database, settings: Settings
) -> None:
    fill(sqlite_database, settings)
    store = BlobStore.of(get_settings())
    (kept,) = store.digests()
    store.commit(store.stage([b"nobody names me"], 1 << 20))
    fresh, stale = store.stage([b"under way"], 1 << 20), store.stage([b"left"], 1 << 20)
    past = time.time() - STALE_STAGING_S - 60
    os.utime(stale.path, (past, past))
    found = checks(sqlite_database)
    assert set(found) == {"blobs_unreferenced", "staging_left_over"}
    doctor.mend(get_settings(), sqlite_database)
    assert checks(sqlite_database) == {}
    assert store.digests() == {kept}
    assert fresh.path.exists()
    assert not stale.path.exists()


def test_a_stream_that_tells_what_was_erased_is_found_and_dropped(
    sqlite_database: Database, settings: Settings
) -> None:
    fill(sqlite_database, settings)
    with sqlite_database.write() as session:
        claim = session.scalars(select(ClaimRow)).one()
        claim.erased, query = True, claim.query_id
    streams.publish(get_redis(), query, "claim", {"text": "secret"})
    assert "1 streams" in checks(sqlite_database)["traces_of_deleted"].detail
    doctor.mend(get_settings(), sqlite_database)
    assert checks(sqlite_database) == {}


def test_open_jobs_of_a_document_that_is_gone_are_told(sqlite_database: Database, settings: Settings) -> None:
    with sqlite_database.write() as session:
        session.add(
            JobRow(
                id=new_id("job"), tenant_id="t", task="ingest.normalize", queue="ingest",
                subject_kind="document", subject_id="doc_gone",
            )
        )  # fmt: skip
    assert set(checks(sqlite_database)) == {"jobs_of_deleted"}


def test_no_column_that_names_a_document_escapes_the_check() -> None:
    """A new table either has its document in a column that is looked at, or is history by decision."""
    from api.cli.data.traces import _HISTORY, _references

    looked_at = {(t.name, c.name) for t, c in _references()}
    for table in Base.metadata.sorted_tables:
        for key in table.foreign_keys:
            if (
                key.column.table.name in ("documents", "document_versions")
                and "version" not in key.parent.name
            ):
                assert (table.name, key.parent.name) in looked_at or table.name in _HISTORY
    assert ("near_duplicates", "other_id") in looked_at
    assert NearDuplicateRow.__tablename__ not in _HISTORY


@pytest.mark.parametrize("fix", [False, True])
def test_the_command_says_what_it_removed(
    sqlite_database: Database, settings: Settings, fix: bool, tmp_path: Path
) -> None:
    import json

    from typer.testing import CliRunner

    from api.cli import make_cli

    fill(sqlite_database, settings)
    store = BlobStore.of(get_settings())
    store.commit(store.stage([b"nobody names me"], 1 << 20))
    done = CliRunner().invoke(make_cli(), ["doctor", "--json", *(["--fix"] if fix else [])])
    told = json.loads(done.stdout)
    assert (done.exit_code, told["ok"]) == ((0, True) if fix else (1, False))
    assert [f["check"] for f in told["mended" if fix else "findings"]] == ["blobs_unreferenced"]
