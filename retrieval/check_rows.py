"""Checks of the rows that the index is made of: widths of vectors, mentions, moves."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session

from core.db import utcnow
from core.models import EntityRow, MentionRow, MoveRow, PassageRow, PassageVectorRow
from retrieval.fault import Fault, some

_LATE = timedelta(hours=1)
_REPROCESS = "POST /v1/documents/{}/reprocess (for each)"


def row_faults(session: Session, model: str, dimension: int) -> list[Fault]:
    """Everything that is wrong among the rows alone."""
    return [*_widths(session, model, dimension), *_mentions(session), *_late_moves(session)]


def _widths(session: Session, model: str, dimension: int) -> list[Fault]:
    """Stored vectors of the served encoder that are not as wide as it makes them."""
    if not dimension:
        return []
    v = PassageVectorRow
    ids = _documents(
        session, and_(v.model == model, func.length(v.vector) != 2 * dimension), joined=PassageVectorRow
    )
    if not ids:
        return []
    told = f"documents with stored vectors that are not {dimension} numbers wide: {some(ids)}"
    return [Fault("stored_vectors_wrong_width", len(ids), told, _REPROCESS.format(ids[0]))]


def _documents(
    session: Session, condition: ColumnElement[bool], *, joined: type[PassageVectorRow] | type[MentionRow]
) -> list[str]:
    query = select(PassageRow.document_id).join(joined, joined.passage_id == PassageRow.id)
    return list(session.scalars(query.where(condition).distinct().order_by(PassageRow.document_id)))


def _mentions(session: Session) -> list[Fault]:
    """Entity postings that stand at another passage than their own, or name an entity that is not there."""
    m, p = MentionRow, PassageRow
    astray = _documents(
        session,
        or_(m.document_id != p.document_id, m.version != p.version, m.tenant_id != p.tenant_id),
        joined=MentionRow,
    )
    faults: list[Fault] = []
    if astray:
        told = f"documents with mentions that disagree with their passages: {some(astray)}"
        faults.append(Fault("mentions_astray", len(astray), told, _REPROCESS.format(astray[0])))
    unknown = _documents(
        session,
        and_(m.entity_id.is_not(None), ~exists().where(EntityRow.id == m.entity_id)),
        joined=MentionRow,
    )
    if unknown:
        told = f"documents with mentions of entities that are not there: {some(unknown)}"
        faults.append(Fault("mentions_of_unknown", len(unknown), told, _REPROCESS.format(unknown[0])))
    return faults


def _late_moves(session: Session) -> list[Fault]:
    """Moves that nobody has made for an hour."""
    late = list(
        session.scalars(
            select(MoveRow.document_id).where(
                MoveRow.open_key.is_not(None), MoveRow.created_at < utcnow() - _LATE
            )
        )
    )
    if not late:
        return []
    told = f"documents that were to be moved to another tier an hour ago: {some(late)}"
    return [Fault("moves_late", len(late), told, "geo up (the index worker makes them; see geo status)")]
