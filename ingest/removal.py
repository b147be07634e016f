"""Making a document unreadable at once, and erasing what answers quoted from it."""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy import event, select
from sqlalchemy.orm import Session

from core import streams
from core.db import utcnow
from core.errors import GeoError
from core.job_failures import try_again
from core.jobs import add_job
from core.models import ClaimRow, DocumentRow, EvidenceRow, JobRow, QueryRow
from core.redis_client import get_redis
from core.retry import classify
from core.types import DocumentStatus, JobStatus
from core.worker import Task
from ingest import repository

log = logging.getLogger(__name__)


def remove_document(session: Session, row: DocumentRow) -> None:
    """Stop every route from serving it, free its bytes' hash, erase it from answers, queue the clean-up.

    Args:
        session: a write session.
        row: the document, locked by the caller. One that is being deleted already gets its failed
            clean-up tried again, and is else left alone.
    """
    if row.status == DocumentStatus.DELETING.value:
        _clean_up_again(session, row)
        return
    row.status = DocumentStatus.DELETING.value
    row.content_hash = f"deleting:{row.id}"
    row.live_version = None
    row.error_code = row.error_detail = None
    session.flush()
    repository.cancel_jobs(session, row.id)
    erase_from_answers(session, row.id)
    add_job(
        session,
        Task.UNINDEX,
        tenant_id=row.tenant_id,
        subject_kind="document",
        subject_id=row.id,
        subject_version=row.latest_version,
        attempt_key="delete",
    )


def _clean_up_again(session: Session, row: DocumentRow) -> None:
    failed = select(JobRow).where(
        JobRow.subject_kind == "document",
        JobRow.subject_id == row.id,
        JobRow.task.in_((Task.UNINDEX.value, Task.PURGE.value)),
        JobRow.status == JobStatus.FAILED.value,
    )
    for job in session.scalars(failed):
        try_again(session, job)


def erase_from_answers(session: Session, document_id: str) -> list[str]:
    """Mark answers that cite the document stale; erase its quotes and the sentences built on them.

    The marker, the ids, the verdict and its reason stay, so a reader sees that something stood there. The
    event streams of those answers hold the same text and are dropped after the commit.

    Returns:
        The ids of the queries touched.
    """
    query_ids = mark_stale(session, document_id)
    if query_ids:
        erase_claims(session, query_ids, {document_id})
    return query_ids


def erase_deleted_sources(session: Session, query_id: str) -> None:
    """For an answer that has just been written: erase what it says from documents deleted meanwhile."""
    present = (DocumentRow.id == EvidenceRow.document_id) & (
        DocumentRow.status != DocumentStatus.DELETING.value
    )
    gone = set(
        session.scalars(
            select(EvidenceRow.document_id)
            .outerjoin(DocumentRow, present)
            .where(EvidenceRow.query_id == query_id, DocumentRow.id.is_(None))
        )
    )
    if gone:
        query = session.get_one(QueryRow, query_id)
        query.stale_since = query.stale_since or utcnow()
        erase_claims(session, [query_id], gone)


def erase_claims(session: Session, query_ids: list[str], document_ids: set[str]) -> None:
    """Erase what these answers say from the documents: claims that cite one, places of its sentences."""
    for claim in session.scalars(select(ClaimRow).where(ClaimRow.query_id.in_(query_ids))):
        if any(c.get("document_id") in document_ids for c in claim.citations):
            claim.text, claim.erased = "", True
            claim.citations = [
                _without_quote(c) if c.get("document_id") in document_ids else c for c in claim.citations
            ]
    for evidence in session.scalars(
        select(EvidenceRow).where(
            EvidenceRow.query_id.in_(query_ids), EvidenceRow.document_id.in_(document_ids)
        )
    ):
        evidence.sentences = []
    session.flush()
    _drop_streams_after_commit(session, query_ids)


def mark_stale(session: Session, document_id: str) -> list[str]:
    """Note on every answer with evidence from this document that its source changed; returns their ids."""
    query_ids = list(
        session.scalars(select(EvidenceRow.query_id).where(EvidenceRow.document_id == document_id).distinct())
    )
    for query in session.scalars(select(QueryRow).where(QueryRow.id.in_(query_ids))):
        query.stale_since = query.stale_since or utcnow()
    session.flush()
    return query_ids


def _without_quote(citation: dict[str, Any]) -> dict[str, Any]:
    kept = ("marker", "passage_id", "document_id", "version", "page")
    return {**{k: v for k, v in citation.items() if k in kept}, "quote": None}


def _drop_streams_after_commit(session: Session, query_ids: list[str]) -> None:
    @event.listens_for(session, "after_commit", once=True)
    def _drop(_: Session) -> None:
        try:
            client = get_redis()
            for query_id in query_ids:
                streams.drop(client, query_id)
        except Exception as error:  # noqa: BLE001 - the commit stands; a lost stream ends by its time to live
            mapped: GeoError = classify(error)
            log.warning("stream_drop_failed", extra={"queries": len(query_ids), "detail": mapped.detail})
