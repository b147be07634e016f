"""The installation's database, for commands that work on it without the service."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from core.db import Database
from core.errors import ConfigError
from core.settings import Settings


@contextmanager
def made_database(settings: Settings) -> Generator[Database]:
    """A database that holds this version's tables; nothing is made when there is none.

    Raises:
        ConfigError: there is none yet, or it stands at another revision; the detail names the command.
    """
    from migrations import run as migrations

    none = ConfigError(f"there is no data in {settings.root} yet; start it once with: geo up")
    if not settings.database.url and not (settings.root / "geo.sqlite3").exists():
        raise none
    db = Database(settings.database_url, settings=settings)
    try:
        revision = migrations.current(db)
        if revision is None:
            raise none
        if revision != migrations.head():
            raise ConfigError("the database is not at this version's revision; run: geo migrate")
        yield db
    finally:
        db.dispose()
