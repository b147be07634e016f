"""Rows of every table as JSON lines, the same from both databases, so that a dump moves between them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    Column,
    Connection,
    DateTime,
    LargeBinary,
    MetaData,
    Table,
    func,
    insert,
    null,
    select,
    text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from core.models import Base

_BATCH = 500
ALEMBIC = "alembic_version"


def _kind(column: Column[Any]) -> str:
    """How a value of this column is written: `time`, `bytes`, `json` or `plain`."""
    kind: TypeEngine[Any] | TypeDecorator[Any] = column.type
    if isinstance(kind, TypeDecorator):
        kind = kind.impl_instance
    if isinstance(kind, DateTime):
        return "time"
    if isinstance(kind, LargeBinary):
        return "bytes"
    return "json" if isinstance(kind, JSON) else "plain"


def _encode(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "time":
        return value.isoformat()
    return base64.b64encode(value).decode() if kind == "bytes" else value


def _decode(kind: str, value: Any) -> Any:
    if value is None:
        return null() if kind == "json" else None  # SQL NULL, not the JSON word
    if kind == "time":
        return datetime.fromisoformat(value).astimezone(UTC)
    return base64.b64decode(value) if kind == "bytes" else value


def dump(connection: Connection, folder: Path) -> dict[str, int]:
    """Write one file per table.

    Args:
        connection: inside a transaction that sees one state of the database.
        folder: gets `TABLE.jsonl`; the first line names the columns.

    Returns:
        Rows per table.
    """
    counts: dict[str, int] = {}
    for table in Base.metadata.sorted_tables:
        kinds = [_kind(column) for column in table.columns]
        rows = connection.execution_options(yield_per=_BATCH).execute(
            select(table).order_by(*table.primary_key)
        )
        counts[table.name] = 0
        with (folder / f"{table.name}.jsonl").open("w", encoding="utf-8") as sink:
            sink.write(json.dumps([column.name for column in table.columns]) + "\n")
            for row in rows:
                values = [_encode(kind, value) for kind, value in zip(kinds, row, strict=True)]
                sink.write(json.dumps(values, ensure_ascii=False) + "\n")
                counts[table.name] += 1
    return counts


def load(connection: Connection, folder: Path) -> dict[str, int]:
    """Insert the rows of a dump into empty tables of the same revision; returns rows per table."""
    schema = MetaData()
    schema.reflect(connection)
    counts: dict[str, int] = {}
    for table in schema.sorted_tables:
        source = folder / f"{table.name}.jsonl"
        if table.name == ALEMBIC or not source.exists():
            continue
        counts[table.name] = 0
        for batch in _batches(table, source):
            connection.execute(insert(table), batch)
            counts[table.name] += len(batch)
    return counts


def _batches(table: Table, source: Path) -> Iterator[list[dict[str, Any]]]:
    with source.open(encoding="utf-8") as lines:
        names: list[str] = json.loads(next(lines))
        kinds = [_kind(table.columns[name]) for name in names]
        batch: list[dict[str, Any]] = []
        for line in lines:
            values = zip(names, kinds, json.loads(line), strict=True)
            batch.append({name: _decode(kind, value) for name, kind, value in values})
            if len(batch) == _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


def counters(connection: Connection) -> dict[str, int]:
    """Last number given by each autoincrementing table; an id must not be given twice, even a deleted one."""
    found: dict[str, int] = {}
    sqlite = connection.dialect.name == "sqlite"
    for table in Base.metadata.sorted_tables:
        column = _counting_column(table)
        if column is None:
            continue
        given = _given_sqlite(connection, table) if sqlite else _given_postgres(connection, table, column)
        highest = connection.execute(select(func.max(column))).scalar()
        found[table.name] = max(int(given or 0), int(highest or 0))
    return found


def set_counters(connection: Connection, wanted: dict[str, int]) -> None:
    """Have every autoincrementing table go on after the given numbers."""
    for table in Base.metadata.sorted_tables:
        column, value = _counting_column(table), wanted.get(table.name, 0)
        if column is None or value == 0:
            continue
        if connection.dialect.name == "sqlite":
            if table.dialect_options["sqlite"].get("autoincrement"):
                name = {"name": table.name, "value": value}
                connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), name)
                connection.execute(
                    text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :value)"), name
                )
        else:
            connection.execute(
                text("SELECT setval(pg_get_serial_sequence(:table, :column), :value)"),
                {"table": table.name, "column": column.name, "value": value},
            )


def _counting_column(table: Table) -> Column[Any] | None:
    column = table.autoincrement_column
    return column if column is not None and column.autoincrement is True else None


def _given_sqlite(connection: Connection, table: Table) -> int | None:
    if connection.scalar(text("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'")) is None:
        return None
    return connection.scalar(text("SELECT seq FROM sqlite_sequence WHERE name = :name"), {"name": table.name})


def _given_postgres(connection: Connection, table: Table, column: Column[Any]) -> int | None:
    sequence = connection.scalar(
        text("SELECT pg_get_serial_sequence(:table, :column)"), {"table": table.name, "column": column.name}
    )
    return connection.scalar(
        text("SELECT last_value FROM pg_sequences WHERE schemaname || '.' || sequencename = :name"),
        {"name": sequence},
    )


def clear(connection: Connection) -> None:
    """Remove every table of ours."""
    schema = MetaData()
    schema.reflect(connection)
    schema.drop_all(connection)
