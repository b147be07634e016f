"""Database access: SQLite and PostgreSQL behind the same sessions.

A unit of work that may write opens `Database.write()`, which on SQLite begins IMMEDIATE so that two
writers queue instead of failing on an upgraded read; the threads of a process do so one after another
(`core/write_turns.py`), and the first in line looks for the lock often enough to get it between two writes of
another process. Messages put in the session's outbox are sent after the commit; a rolled-back session sends
nothing.
"""

from __future__ import annotations

import logging
import random
import sqlite3
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from sqlalchemy import CursorResult, DateTime, Engine, Executable, Result, create_engine, event
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.orm import Session
from sqlalchemy.types import TypeDecorator

from core.errors import DiskFull, TransientError
from core.settings import Settings, get_settings
from core.write_turns import WriteTurns

log = logging.getLogger(__name__)

_OUTBOX = "outbox"
_LOOK_AGAIN_S = (0.0005, 0.004)  # pauses between two looks for SQLite's lock
Sender = Callable[..., None]


def utcnow() -> datetime:
    """Aware current time."""
    return datetime.now(UTC)


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC datetimes on every backend (SQLite stores no zone)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse naive values; store UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("naive datetime given to the database")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return aware UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Database:
    """Engine and sessions of one process. Make one per process, after the fork.

    Args:
        url: SQLAlchemy URL (`sqlite:///…` or `postgresql+psycopg://…`).
        send: called as `send(task_name, job_id)` for each outbox entry after commit, with
            `gives_way=True` where that was asked for; its failure is logged and the request still
            succeeds, because the reaper re-sends unclaimed jobs.
    """

    def __init__(self, url: str, *, settings: Settings | None = None, send: Sender | None = None) -> None:
        s = (settings or get_settings()).database
        if url.startswith("postgresql://"):
            url = "postgresql+psycopg://" + url.removeprefix("postgresql://")
        self.is_sqlite = url.startswith("sqlite")
        options: dict[str, Any] = {"pool_pre_ping": not self.is_sqlite}
        if self.is_sqlite:
            path = Path(url.removeprefix("sqlite:///"))
            path.parent.mkdir(parents=True, exist_ok=True)
            options["connect_args"] = {"timeout": s.busy_timeout_ms / 1000, "check_same_thread": False}
        options.update(pool_size=s.pool_size, max_overflow=s.max_overflow, pool_timeout=s.pool_timeout_s)
        self.engine: Engine = create_engine(url, **options)
        if self.is_sqlite:
            _prepare_sqlite(self.engine, s.busy_timeout_ms)
        self._turns = WriteTurns(s.busy_timeout_ms / 1000) if self.is_sqlite else None
        self._send = send

    @contextmanager
    def read(self) -> Generator[Session]:
        """A session that only reads; closing it ends the transaction and leaves loaded rows usable."""
        with self._translated(), Session(self.engine, expire_on_commit=False) as session:
            if self.is_sqlite:
                session.connection(execution_options={"geo_begin": "BEGIN"})
            yield session

    def quick(self) -> QuickRead:
        """Reads for which a session is too much; see there."""
        return QuickRead(self.engine, self._translated, is_sqlite=self.is_sqlite)

    @contextmanager
    def write(self) -> Generator[Session]:
        """A session that may write: commits at the end, rolls back on any exception.

        Outbox entries are sent after the commit.
        """
        # The turn comes before the connection, so that those who wait for it keep none from the readers.
        with self._translated(), self._turn(), Session(self.engine, expire_on_commit=False) as session:
            if self.is_sqlite:
                session.connection(execution_options={"geo_begin": "BEGIN IMMEDIATE"})
            session.info[_OUTBOX] = []
            try:
                yield session
                session.commit()
            except BaseException:
                session.rollback()
                raise
            outbox = session.info.pop(_OUTBOX)
        for task_name, job_id, options in outbox:
            self._deliver(task_name, job_id, options)

    def _turn(self) -> AbstractContextManager[None]:
        return self._turns.turn() if self._turns is not None else nullcontext()

    def _deliver(self, task_name: str, job_id: str, options: dict[str, bool]) -> None:
        if self._send is None:
            return
        try:
            self._send(task_name, job_id, **options)
        except Exception:
            log.warning("broker_send_failed", extra={"task_name": task_name, "job_id": job_id}, exc_info=True)

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except (OperationalError, InterfaceError) as error:
            text = str(error.orig).lower()
            if "disk is full" in text or "disk i/o" in text or "no space left" in text:
                raise DiskFull("The database's disk is full; free space and try again.") from error
            if "database is locked" in text:
                raise TransientError("The database was busy with other writes for too long.") from error
            raise TransientError(f"The database did not answer: {error.orig}") from error

    def dispose(self) -> None:
        """Close all pooled connections."""
        self.engine.dispose()


class QuickRead:
    """Single SELECTs without session and transaction, each a snapshot of its own.

    Session, transaction, result and their events take longer than what a question reads does: of a hundred
    passages .6 of 1.2 ms. On SQLite the driver's own cursor is asked, so columns come as it gives them: whole
    numbers, text, and numbers with a fraction. Made by `Database.quick`; any thread may ask.
    """

    def __init__(
        self, engine: Engine, translated: Callable[[], AbstractContextManager[None]], *, is_sqlite: bool
    ) -> None:
        self._engine, self._translated, self._is_sqlite = engine, translated, is_sqlite

    def get_bind(self) -> Engine:
        """As of a session."""
        return self._engine

    def rows(self, statement: Executable, given: Mapping[str, Any]) -> Sequence[Any]:
        """What a statement finds. Its text is kept, so make it once and not for each question."""
        with self._translated():
            if not self._is_sqlite:
                with self._engine.connect() as connection:
                    return connection.execute(statement, given).all()
            text, fixed, names = _as_text(statement, self._engine.dialect)
            known = {**fixed, **given}
            pooled = self._engine.raw_connection()
            try:
                driver: Any = pooled.driver_connection
                return driver.execute(text, [known[name] for name in names]).fetchall()
            except sqlite3.OperationalError as error:
                raise OperationalError(text, given, error) from error
            finally:
                pooled.close()


@lru_cache(maxsize=64)
def _as_text(statement: Executable, dialect: Dialect) -> tuple[str, Mapping[str, Any], Sequence[str]]:
    """The statement's text, the values that it carries, and the names of its parameters by place."""
    compiled: Any = statement.compile(dialect=dialect)  # pyright: ignore[reportAttributeAccessIssue] - every statement has it
    fixed = {name: value for name, value in compiled.params.items() if value is not None}
    return str(compiled), fixed, tuple(compiled.positiontup or ())


def plain_rows(
    session: Session | QuickRead, statement: Executable, given: Mapping[str, Any]
) -> Sequence[Any]:
    """Run a statement on the session's connection, after what the session holds back is written.

    For statements that every question runs: a session looks for mapped rows in what comes back, which takes
    as long again as the statement.
    """
    if isinstance(session, QuickRead):
        return session.rows(statement, given)
    session.flush()
    return session.connection().execute(statement, given).all()


def affected(result: Result[Any]) -> int:
    """Rows that an UPDATE or DELETE touched."""
    return cast("CursorResult[Any]", result).rowcount


def put_in_outbox(session: Session, task_name: str, job_id: str, gives_way: bool = False) -> None:
    """Have `(task_name, job_id)` sent once this session has committed."""
    session.info[_OUTBOX].append((task_name, job_id, {"gives_way": True} if gives_way else {}))


def _prepare_sqlite(engine: Engine, busy_timeout_ms: int) -> None:
    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we write BEGIN ourselves
        cursor = connection.cursor()
        for pragma in (
            f"busy_timeout={busy_timeout_ms}",
            "journal_mode=WAL",
            "synchronous=NORMAL",
            "foreign_keys=ON",
            "temp_store=MEMORY",
            "mmap_size=1073741824",  # a page read costs no system call; shared by all connections
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Any) -> None:
        statement = connection.get_execution_options().get("geo_begin", "BEGIN IMMEDIATE")
        if statement == "BEGIN":  # takes no lock, so nothing can fail that needs translating
            connection.connection.driver_connection.execute(statement)
        else:
            _begin_when_free(connection, statement, busy_timeout_ms)


def _begin_when_free(connection: Any, statement: str, patience_ms: int) -> None:
    """Begin as soon as no other process writes, or fail as SQLite would after `patience_ms`.

    SQLite's own wait pauses for up to 100 ms. A process whose writers follow each other leaves the lock free
    for some tenths of a millisecond only, so the others would wait until it has nothing more to write.
    """
    driver = connection.connection.driver_connection
    deadline = time.monotonic() + patience_ms / 1000
    driver.execute("PRAGMA busy_timeout=0")
    try:
        while True:
            try:
                connection.exec_driver_sql(statement)
                return
            except OperationalError as error:
                if "locked" not in str(error.orig) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(*_LOOK_AGAIN_S))  # noqa: S311 - chance only keeps processes out of step
    finally:
        driver.execute(f"PRAGMA busy_timeout={patience_ms}")


@lru_cache(maxsize=1)
def get_database() -> Database:
    """The process's database, with Celery as the sender of its outbox.

    Prefork children call `get_database.cache_clear()` after the fork (see `core/worker.py`).
    """
    from core.worker import send_job

    settings = get_settings()
    return Database(settings.database_url, settings=settings, send=send_job)
