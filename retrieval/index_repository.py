"""Rows ↔ values of the index: the log, vectors, tiers, and what a document version needs to go live.

The index builder reads ids, vectors and search text across tenants; everything that a person can ask for
goes through the scoped reads of `query_repository.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, delete, exists, func, or_, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from core.models import (
    BuildRow,
    DocumentRow,
    DocumentVersionRow,
    IndexLogRow,
    PassageRow,
    PassageTokensRow,
    PassageVectorRow,
)
from core.types import DocumentStatus, Scope, Tier
from ingest.split import encoder_text
from retrieval.lexical_writer import LexicalDocument
from retrieval.vector_tier import VectorRow

_BATCH = 500  # ids per statement, below every database's parameter limit
Place = tuple[str, str, int]
"""Where a passage stands in a segment: tenant, collection, passage id."""
START: Place = ("", "", 0)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One change of the index, in the order of `seq`.

    After an `add` or a `place` the passages are in `tier` and in no other; after a `delete` in none. What
    stands at the end of the log is therefore the last entry of each passage, whatever came before.
    """

    seq: int
    op: str
    document_id: str
    version: int
    passage_ids: tuple[int, ...]
    tier: str = Tier.HOT.value


@dataclass(frozen=True, slots=True)
class PassageText:
    """What the encoder is given for a passage."""

    id: int
    heading_path: tuple[str, ...]
    text: str


# -- log ---------------------------------------------------------------------------------------


def append_log(
    session: Session,
    op: str,
    document_id: str,
    version: int,
    passage_ids: Sequence[int],
    tier: str = Tier.HOT.value,
) -> int:
    """Append one entry and return its number. Only under the writer's lease: order must be commit order."""
    row = IndexLogRow(
        op=op, document_id=document_id, version=version, passage_ids=list(passage_ids), tier=tier
    )
    session.add(row)
    session.flush()
    return row.seq


def log_after(session: Session, seq: int, *, limit: int = 1000) -> list[LogEntry]:
    """Entries above `seq`, in order."""
    i = IndexLogRow
    rows = session.execute(
        select(i.seq, i.op, i.document_id, i.version, i.passage_ids, i.tier)
        .where(i.seq > seq)
        .order_by(i.seq)
        .limit(limit)
    )
    return [LogEntry(seq, op, doc, version, tuple(ids), tier) for seq, op, doc, version, ids, tier in rows]


def last_seq(session: Session) -> int:
    """The newest entry's number, 0 when there is none."""
    return int(session.scalar(select(func.max(IndexLogRow.seq))) or 0)


def logged_ids(session: Session, document_id: str) -> set[int]:
    """Ids of a document that the log says are in the index."""
    present: set[int] = set()
    rows = session.execute(
        select(IndexLogRow.op, IndexLogRow.passage_ids)
        .where(IndexLogRow.document_id == document_id)
        .order_by(IndexLogRow.seq)
    )
    for op, ids in rows:
        present = present - set(ids) if op == "delete" else present | set(ids)
    return present


def trim_log(session: Session, floor: int) -> None:
    """Forget entries of deleted documents up to `floor`; adds of living passages stay for `logged_ids`.

    What an open build has still to replay stays too.
    """
    wanted = session.scalar(select(func.min(BuildRow.seq)).where(BuildRow.open_key.is_not(None)))
    floor = floor if wanted is None else min(floor, int(wanted))
    gone = ~exists().where(DocumentRow.id == IndexLogRow.document_id)
    session.execute(
        delete(IndexLogRow).where(IndexLogRow.seq <= floor, gone).execution_options(synchronize_session=False)
    )


# -- vectors and search text -------------------------------------------------------------------


def vector_rows(session: Session, ids: Sequence[int], model: str) -> list[VectorRow]:
    """Stored vectors of these passages, in segment order; passages without one are left out."""
    rows: list[VectorRow] = []
    for start in range(0, len(ids), _BATCH):
        rows.extend(
            VectorRow(*row)
            for row in session.execute(
                select(PassageRow.tenant_id, PassageRow.collection_id, PassageRow.id, PassageVectorRow.vector)
                .join(PassageVectorRow, PassageVectorRow.passage_id == PassageRow.id)
                .where(PassageRow.id.in_(ids[start : start + _BATCH]), PassageVectorRow.model == model)
            )
        )
    return sorted(rows, key=lambda row: row.order)


def lexical_documents(session: Session, ids: Sequence[int]) -> Iterator[LexicalDocument]:
    """Search text of these passages, a few at a time; passages that are gone are left out."""
    p, v, d = PassageRow, DocumentVersionRow, DocumentRow
    query = (
        select(p.id, p.tenant_id, p.collection_id, p.document_id, p.text, p.heading_path, v.title, d.name)
        .join(v, and_(v.document_id == p.document_id, v.version == p.version))
        .join(d, d.id == p.document_id)
    )
    for start in range(0, len(ids), _BATCH):
        rows = session.execute(query.where(p.id.in_(ids[start : start + _BATCH]))).all()
        for passage_id, tenant_id, collection_id, document_id, text, headings, title, name in rows:
            yield LexicalDocument(
                passage_id, tenant_id, collection_id, document_id, text,
                tuple(headings), title if title == name else f"{title} {name}",
            )  # fmt: skip


def live_places(session: Session, after: Place, limit: int, tier: str | None = None) -> list[Place]:
    """Live passages (of one tier) in segment order above `after`: (tenant, collection, passage id)."""
    tenant, collection, passage_id = after
    p = PassageRow
    query = (
        select(p.tenant_id, p.collection_id, p.id)
        .join(DocumentRow, and_(DocumentRow.id == p.document_id, DocumentRow.live_version == p.version))
        .where(
            DocumentRow.status != DocumentStatus.DELETING.value,
            or_(
                p.tenant_id > tenant,
                and_(p.tenant_id == tenant, p.collection_id > collection),
                and_(p.tenant_id == tenant, p.collection_id == collection, p.id > passage_id),
            ),
        )
        .order_by(p.tenant_id, p.collection_id, p.id)
        .limit(limit)
    )
    if tier is not None:
        query = query.where(DocumentRow.tier == tier)
    return [(t, c, i) for t, c, i in session.execute(query)]


def ids_without_vector(session: Session, ids: Sequence[int], model: str) -> list[int]:
    """Those of these passages that the encoder has not seen yet, in the order given."""
    known: set[int] = set()
    for start in range(0, len(ids), _BATCH):
        known.update(
            session.scalars(
                select(PassageVectorRow.passage_id).where(
                    PassageVectorRow.passage_id.in_(ids[start : start + _BATCH]),
                    PassageVectorRow.model == model,
                )
            )
        )
    return [i for i in ids if i not in known]


def passages_without_vector(session: Session, ids: Sequence[int], model: str) -> list[PassageText]:
    """Those of these passages that the encoder has not seen yet."""
    found: list[PassageText] = []
    for start in range(0, len(ids), _BATCH):
        rows = session.scalars(
            select(PassageRow)
            .outerjoin(
                PassageVectorRow,
                and_(PassageVectorRow.passage_id == PassageRow.id, PassageVectorRow.model == model),
            )
            .where(PassageRow.id.in_(ids[start : start + _BATCH]), PassageVectorRow.passage_id.is_(None))
            .order_by(PassageRow.id)
        )
        found.extend(PassageText(r.id, tuple(r.heading_path), r.text) for r in rows)
    return found


def vectors_by_text(
    session: Session, document_id: str, ids: Sequence[int], model: str
) -> dict[str, tuple[bytes, bytes | None]]:
    """(vector, token vectors) of the document's other passages, by what the encoder was given for them."""
    own = set(ids)
    has_tokens = and_(PassageTokensRow.passage_id == PassageRow.id, PassageTokensRow.model == model)
    rows = session.execute(
        select(
            PassageRow.id,
            PassageRow.heading_path,
            PassageRow.text,
            PassageVectorRow.vector,
            PassageTokensRow.packed,
        )
        .join(PassageVectorRow, PassageVectorRow.passage_id == PassageRow.id)
        .outerjoin(PassageTokensRow, has_tokens)
        .where(PassageRow.document_id == document_id, PassageVectorRow.model == model)
    )
    return {
        encoder_text(path, text): (vector, tokens) for i, path, text, vector, tokens in rows if i not in own
    }


def store_vectors(session: Session, model: str, vectors: Sequence[tuple[int, bytes]]) -> None:
    """Insert vectors; one that is stored already, or whose passage is gone, is left alone."""
    rows = [{"passage_id": i, "model": model, "vector": v} for i, v in vectors]
    _insert_missing(session, PassageVectorRow, rows)


def store_tokens(session: Session, model: str, tokens: Sequence[tuple[int, bytes]]) -> None:
    """Insert packed token vectors, like `store_vectors`."""
    rows = [{"passage_id": i, "model": model, "packed": t} for i, t in tokens]
    _insert_missing(session, PassageTokensRow, rows)


def _insert_missing(
    session: Session, table: type[PassageVectorRow | PassageTokensRow], rows: Sequence[dict[str, Any]]
) -> None:
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        ids = [row["passage_id"] for row in batch]
        known = set(session.scalars(select(PassageRow.id).where(PassageRow.id.in_(ids))))
        if values := [row for row in batch if row["passage_id"] in known]:
            session.execute(insert(table).on_conflict_do_nothing(), values)


# -- documents ---------------------------------------------------------------------------------


def version_passages(session: Session, document_id: str, version: int) -> list[int] | None:
    """Ids of a version's passages in order, or None when the document is gone or being deleted."""
    document = session.get(DocumentRow, document_id)
    if document is None or document.status == DocumentStatus.DELETING.value:
        return None
    return list(
        session.scalars(
            select(PassageRow.id)
            .where(PassageRow.document_id == document_id, PassageRow.version == version)
            .order_by(PassageRow.ordinal)
        )
    )


def document_passages(session: Session, document_id: str) -> set[int]:
    """Ids of all passages of all versions."""
    return set(session.scalars(select(PassageRow.id).where(PassageRow.document_id == document_id)))


def indexed_tier(session: Session, document_id: str, version: int) -> str:
    """Where a version's passages belong: the live one's where the document is, any other's in hot."""
    row = session.execute(
        select(DocumentRow.live_version, DocumentRow.tier).where(DocumentRow.id == document_id)
    ).first()
    return Tier.HOT.value if row is None or row[0] != version else row[1]


def passages_of(session: Session, scope: Scope, document_ids: Sequence[str]) -> list[int]:
    """Passage ids of the live versions of these documents inside the scope."""
    ids: list[int] = []
    for start in range(0, len(document_ids), _BATCH):
        query = (
            select(PassageRow.id)
            .join(
                DocumentRow,
                and_(
                    DocumentRow.id == PassageRow.document_id, DocumentRow.live_version == PassageRow.version
                ),
            )
            .where(
                PassageRow.tenant_id == scope.tenant_id,
                PassageRow.document_id.in_(document_ids[start : start + _BATCH]),
            )
        )
        if scope.collection_ids is not None:
            query = query.where(PassageRow.collection_id.in_(scope.collection_ids))
        ids.extend(session.scalars(query))
    return ids
