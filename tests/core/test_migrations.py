from sqlalchemy import inspect, text

from core.db import Database
from core.models import CollectionRow, DocumentRow, DocumentVersionRow
from migrations import run


def test_tables_and_migrations_agree(database: Database) -> None:
    assert run.differences(database) == []
    assert run.current(database) == run.head()


def test_migrations_go_down_and_up_again(database: Database) -> None:
    run.downgrade(database)
    assert set(inspect(database.engine).get_table_names()) <= {"alembic_version"}
    run.upgrade(database)
    assert run.differences(database) == []


def test_deleted_passage_ids_are_never_given_again(sqlite_database: Database) -> None:
    with sqlite_database.engine.connect() as connection:
        for table in ("passages", "index_log"):
            sql = connection.exec_driver_sql(
                f"SELECT sql FROM sqlite_master WHERE name='{table}'"
            ).scalar_one()
            assert "AUTOINCREMENT" in sql


def test_rows_of_the_first_revision_live_on_in_the_newest(database: Database) -> None:
    run.downgrade(database, "0001")
    now = "2026-01-02 03:04:05"
    with database.engine.begin() as connection:
        for statement in (
            "INSERT INTO tenants (id, name, created_at) VALUES ('t', 't', :now)",
            "INSERT INTO collections (id, tenant_id, name, created_at) VALUES ('c', 't', 'c', :now)",
            "INSERT INTO documents (id, tenant_id, collection_id, name, content_hash, status, latest_version,"
            " live_version, trust, tags, meta, created_at, updated_at)"
            " VALUES ('d', 't', 'c', 'd', 'h', 'ready', 1, 1, 'normal', '[]', '{}', :now, :now)",
            "INSERT INTO document_versions (document_id, version, blob_hash, size_bytes, file_name,"
            " declared_type, media_type, title, lang, outline, warnings, passage_count, created_at)"
            " VALUES ('d', 1, 'h', 1, 'd', '', '', '', 'und', '[]', '[]', 0, :now)",
        ):
            connection.execute(text(statement), {"now": now})
    run.upgrade(database)
    with database.read() as session:
        row = session.get_one(DocumentRow, "d")
        version = session.get_one(DocumentVersionRow, ("d", 1))
        assert (row.parse, version.parse, version.properties, version.recipe) == ("", {}, {}, "")
        assert session.get_one(CollectionRow, "c").parse == {}
    run.downgrade(database, "0001")
    with database.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM document_versions")).scalar() == 1
