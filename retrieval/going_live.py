"""The step in which a version begins to be served and the ones before it leave, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, or_, select, update
from sqlalchemy.orm import Session, aliased

from core.db import utcnow
from core.models import (
    DocumentRow,
    DocumentVersionRow,
    EvidenceRow,
    MentionRow,
    NearDuplicateRow,
    PassageRow,
    QueryRow,
    SignatureBandRow,
    SignatureRow,
)
from core.types import DocumentStatus, Tier
from ingest.growth import forget, removed_with, serialise_document
from retrieval.index_repository import document_passages, logged_ids


def make_live(session: Session, document_id: str, version: int, warnings: Sequence[Any]) -> set[int]:
    """Serve this version from the commit on; earlier versions lose their passages.

    Answers with evidence from an earlier version are marked stale. An older version than the one that is
    live, or a document that is being deleted, changes nothing and gives up its own passages.

    Returns:
        Ids that the index must forget.
    """
    # Earlier versions can only have been made before this one is indexed, so the unlocked look is enough.
    latest = session.scalar(select(DocumentRow.latest_version).where(DocumentRow.id == document_id))
    if latest is not None and latest > 1:
        serialise_document(session, document_id)
    document = session.scalar(select(DocumentRow).where(DocumentRow.id == document_id).with_for_update())
    if document is None or document.status == DocumentStatus.DELETING.value:
        return logged_ids(session, document_id)
    if document.live_version is not None and document.live_version > version:
        _drop_passages(session, document, PassageRow.version == version)
    else:
        if document.live_version != version:
            _mark_stale(session, document_id, version)
            document.tier, document.wanted_tier = Tier.HOT.value, None  # a new version enters hot
        document.live_version = version
        session.flush()
        if version > 1:
            _drop_passages(session, document, PassageRow.version < version)
            _drop_texts(session, document_id, version)
        _drop_old_pairs(session, document_id)
        if document.latest_version == version:
            document.status = DocumentStatus.READY.value
            document.error_code = document.error_detail = None
        _add_warnings(session, document_id, version, warnings)
    session.flush()
    return logged_ids(session, document_id) - document_passages(session, document_id)


def _drop_passages(session: Session, document: DocumentRow, which: Any) -> None:
    """Vectors and mentions go with their passage (ON DELETE CASCADE), entities with their last mention."""
    gone = select(PassageRow.id).where(PassageRow.document_id == document.id, which)
    removed = removed_with(session, document.tenant_id, MentionRow.passage_id.in_(gone))
    session.execute(delete(PassageRow).where(PassageRow.document_id == document.id, which))
    forget(session, removed)


def _drop_texts(session: Session, document_id: str, version: int) -> None:
    """Earlier versions keep their originals; their texts stay only where an answer quotes from them."""
    v = DocumentVersionRow
    cited = exists().where(EvidenceRow.document_id == v.document_id, EvidenceRow.version == v.version)
    earlier = (v.document_id == document_id, v.version < version)
    session.execute(
        update(v)
        .where(*earlier, v.text.is_not(None), ~cited)
        .values(text=None, offset_map=None, outline=[])
        .execution_options(synchronize_session=False)
    )
    for table in (SignatureRow, SignatureBandRow):
        session.execute(delete(table).where(table.document_id == document_id, table.version < version))


def _drop_old_pairs(session: Session, document_id: str) -> None:
    """Pairs of the document of which one side is neither served nor the newest any more."""
    near = NearDuplicateRow

    def wanted(document: Any, version: Any) -> ColumnElement[bool]:
        d = aliased(DocumentRow)
        return exists().where(d.id == document, or_(d.live_version == version, d.latest_version == version))

    session.execute(
        delete(near)
        .where(
            or_(near.document_id == document_id, near.other_id == document_id),
            ~and_(wanted(near.document_id, near.version), wanted(near.other_id, near.other_version)),
        )
        .execution_options(synchronize_session=False)
    )


def _mark_stale(session: Session, document_id: str, version: int) -> None:
    citing = select(EvidenceRow.query_id).where(
        EvidenceRow.document_id == document_id, EvidenceRow.version < version
    )
    session.execute(
        update(QueryRow)
        .where(QueryRow.id.in_(citing), QueryRow.stale_since.is_(None))
        .values(stale_since=utcnow())
        .execution_options(synchronize_session=False)
    )


def _add_warnings(session: Session, document_id: str, version: int, warnings: Sequence[Any]) -> None:
    row = session.get(DocumentVersionRow, (document_id, version))
    if row is not None and warnings:
        codes = {w.get("code") for w in warnings}
        row.warnings = [w for w in row.warnings if w.get("code") not in codes] + list(warnings)
