"""Moving documents between tiers: a batch of log entries, one publish, and again while any are wanted.

| killed | what the next run finds |
|---|---|
| before the batch's commit | the documents are still wanted elsewhere |
| after it | entries in the log, which the next writer applies |
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from core.models import DocumentRow, PassageRow
from core.types import DocumentStatus, Tier
from retrieval import index_repository as repository
from retrieval.writer import IndexWriter

BATCH_PASSAGES = 2000  # of one publish: uploads that wait for the writer wait for no more than that
_BATCH_DOCUMENTS = 500


@dataclass(frozen=True, slots=True)
class _Wanted:
    document_id: str
    tier: Tier


def move_wanted(writer: IndexWriter) -> bool:
    """Move as many documents as one publish takes; says whether more are wanted elsewhere."""
    with writer.db.read() as session:
        batch, more = _batch(session)
    if not batch:
        return False
    with writer.db.write() as session:
        for wanted in batch:
            _move(session, writer, wanted)
    writer.catch_up()
    return more


def _batch(session: Session) -> tuple[list[_Wanted], bool]:
    passages = (
        select(func.count())
        .where(PassageRow.document_id == DocumentRow.id, PassageRow.version == DocumentRow.live_version)
        .scalar_subquery()
    )
    rows = session.execute(
        select(DocumentRow.id, DocumentRow.wanted_tier, passages)
        .where(DocumentRow.wanted_tier.is_not(None))
        .order_by(DocumentRow.id)
        .limit(_BATCH_DOCUMENTS + 1)
    ).all()
    batch: list[_Wanted] = []
    taken = 0
    for document_id, tier, count in rows[:_BATCH_DOCUMENTS]:
        if batch and taken + count > BATCH_PASSAGES:
            break
        batch.append(_Wanted(document_id, Tier(tier)))
        taken += count
    return batch, len(batch) < len(rows)


def _move(session: Session, writer: IndexWriter, wanted: _Wanted) -> None:
    """One document, if it is still wanted there; one that went meanwhile needs nothing."""
    document = session.get(DocumentRow, wanted.document_id, with_for_update=True)
    if document is None or document.wanted_tier != wanted.tier.value:
        return
    live = document.live_version if document.status != DocumentStatus.DELETING.value else None
    ids = repository.version_passages(session, document.id, live) if live is not None else None
    session.execute(
        update(DocumentRow)
        .where(DocumentRow.id == document.id)
        .values(
            wanted_tier=None,
            tier=document.tier if ids is None else wanted.tier.value,
            updated_at=DocumentRow.updated_at,  # a move is no change of the document
        )
        .execution_options(synchronize_session=False)
    )
    if live is not None and ids is not None:
        writer.move(session, document.id, live, ids, wanted.tier)
