"""Bring a database to a revision. `geo migrate` and the start-up of `geo up` call this."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from core.db import Database

_LOCK = 0x67656F  # "geo": PostgreSQL advisory lock, so that two starters migrate one after the other


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def upgrade(db: Database, revision: str = "head") -> None:
    """Apply the missing migrations, in one transaction where the database can."""
    _run(db, lambda config: command.upgrade(config, revision))


def downgrade(db: Database, revision: str = "base") -> None:
    """Take migrations back down to `revision`."""
    _run(db, lambda config: command.downgrade(config, revision))


def make_revision(db: Database, message: str) -> None:
    """Write a new migration from the difference between tables and database."""
    _run(db, lambda config: command.revision(config, message=message, autogenerate=True, rev_id="0001"))


def differences(db: Database) -> list[object]:
    """What the tables in the code have and the database lacks, or the reverse; empty when they agree."""
    from alembic.autogenerate import compare_metadata

    from core.models import Base

    with db.engine.connect() as connection:
        return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))


def current(db: Database) -> str | None:
    """The revision the database stands at, or None before the first."""
    with db.engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def head() -> str | None:
    """The newest revision in this version of the code."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def _run(db: Database, act: Callable[[Config], object]) -> None:
    config = _config()
    with db.engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _LOCK})
        config.attributes["connection"] = connection
        act(config)
