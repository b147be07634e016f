from sqlalchemy import inspect

from core.db import Database
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
