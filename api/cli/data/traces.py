"""What deleted documents and replaced versions may have left behind, for `geo doctor` and its `--fix`.

The tables are read from the schema, so that a table added later is looked at without being named here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import redis
from sqlalchemy import Column, ColumnElement, Table, and_, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session

from core import streams
from core.models import Base, ClaimRow, DocumentRow, EvidenceRow, PassageRow
from core.redis_client import get_redis
from core.types import DocumentStatus
from ingest.service import erase_claims

# What was done, not what it held. `evidence` keeps ids, not sentences; `index_log` has a check of its own.
_HISTORY = {"documents", "evidence", "index_log", "jobs", "audit", "moves"}


def _references() -> Iterator[tuple[Table, Column[Any]]]:
    """Every column that names a document."""
    for table in Base.metadata.sorted_tables:
        if table.name not in _HISTORY:
            yield from ((table, table.c[name]) for name in ("document_id", "other_id") if name in table.c)


def _rows_of_gone() -> Iterator[tuple[Table, ColumnElement[bool]]]:
    """Tables and the condition under which a row speaks of a document or passage that is not there."""
    for table, column in _references():
        yield table, ~exists().where(DocumentRow.id == column)
    for table in Base.metadata.sorted_tables:
        if table.name not in {*_HISTORY, "claims"} and "passage_id" in table.c:
            yield table, ~exists().where(PassageRow.id == table.c.passage_id)


def _superseded() -> Iterator[tuple[Table, ColumnElement[bool]]]:
    """Rows of settled documents whose version is neither served nor the one that failed last.

    The rows of a failed version stay: a retry of its job goes on from them.
    """
    settled = DocumentRow.status.in_((DocumentStatus.READY.value, DocumentStatus.FAILED.value))
    for table, column in _references():
        if table.name == "document_versions":  # they keep the originals
            continue
        if "version" not in table.c:  # it speaks of the document as a whole
            continue
        version = table.c["other_version" if column.name == "other_id" else "version"]
        needed = or_(
            DocumentRow.live_version == version,
            and_(DocumentRow.status == DocumentStatus.FAILED.value, DocumentRow.latest_version == version),
        )
        yield table, exists().where(DocumentRow.id == column, settled, ~func.coalesce(needed, False))


def traces_of_deleted(session: Session) -> dict[str, int]:
    """Rows, by table, that speak of a document which is not there any more."""
    counts = _count(session, _rows_of_gone())
    counts["claims"] = len(quoting_claims(session))
    counts["evidence"] = int(
        session.scalar(select(func.count()).select_from(EvidenceRow).where(_told_evidence())) or 0
    )
    counts["streams"] = len(_streams_of_erased(session))
    return {name: count for name, count in counts.items() if count}


def superseded(session: Session) -> dict[str, int]:
    """Rows, by table, of versions that nobody serves."""
    return _count(session, _superseded())


def remove_traces(session: Session) -> None:
    """Delete what `traces_of_deleted` counts; quotes and claims are erased, their markers stay."""
    for query_id, document_ids in quoting_claims(session).items():
        erase_claims(session, [query_id], document_ids)
    session.execute(update(EvidenceRow).where(_told_evidence()).values(sentences=[]))
    for query_id in _streams_of_erased(session):
        streams.drop(get_redis(), query_id)
    for table, gone in _rows_of_gone():
        session.execute(delete(table).where(gone))


def remove_superseded(session: Session) -> None:
    """Delete what `superseded` counts."""
    for table, unneeded in _superseded():
        session.execute(delete(table).where(unneeded))


def quoting_claims(session: Session) -> dict[str, set[str]]:
    """Queries with a claim that still shows the text of deleted documents, and those documents."""
    known = set(session.scalars(select(DocumentRow.id)))
    quoting: dict[str, set[str]] = {}
    rows = session.execute(
        select(ClaimRow.query_id, ClaimRow.citations)
        .where(ClaimRow.erased.is_(False))
        .execution_options(yield_per=500)
    )
    for query_id, citations in rows:
        gone = {str(c.get("document_id")) for c in citations} - known
        if gone:
            quoting.setdefault(query_id, set()).update(gone)
    return quoting


def _told_evidence() -> ColumnElement[bool]:
    """Evidence of a deleted document that still holds places of its sentences."""
    gone = ~exists().where(DocumentRow.id == EvidenceRow.document_id)
    return and_(gone, EvidenceRow.sentences != [])


def _streams_of_erased(session: Session) -> list[str]:
    """Queries whose event stream may still tell what was erased from them."""
    erased = session.scalars(select(ClaimRow.query_id).where(ClaimRow.erased.is_(True)).distinct()).all()
    if not erased:
        return []
    try:
        client = get_redis()
        return [query_id for query_id in erased if client.exists(streams.stream_key(query_id))]
    except redis.RedisError:  # the stack is down: streams end by their time to live
        return []


def _count(session: Session, places: Iterator[tuple[Table, ColumnElement[bool]]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for table, condition in places:
        found = int(session.scalar(select(func.count()).select_from(table).where(condition)) or 0)
        if found:
            counts[table.name] = counts.get(table.name, 0) + found
    return counts
