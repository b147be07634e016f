"""Rows of documents to values: stage, progress and counts come from the jobs and outputs themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select, tuple_
from sqlalchemy.orm import Session

from core.models import (
    DocumentRow,
    DocumentVersionRow,
    JobRow,
    MentionRow,
)
from core.types import DocumentStatus
from ingest.near_duplicates import near_duplicates_of
from ingest.repository import OPEN_JOBS
from ingest.values import Counts, Document, NearDuplicate, Problem, Progress, Trust
from ingest.wanted_recipes import SETTLED, wanted_recipes


def document_values(session: Session, rows: Sequence[DocumentRow]) -> tuple[Document, ...]:
    """Rows to values; stage, progress and counts come from the jobs and outputs themselves."""
    keys = [(r.id, r.latest_version) for r in rows]
    if not keys:
        return ()
    # Read columns, not rows: a list must not load the texts.
    v = DocumentVersionRow
    columns = (
        v.document_id, v.media_type, v.declared_type, v.size_bytes, v.encoding, v.encoding_confidence,
        v.title, v.lang, v.pages, v.warnings, v.passage_count, v.properties, v.parse, v.parser_version,
        v.recipe,
    )  # fmt: skip
    versions = {
        r.document_id: r
        for r in session.execute(select(*columns).where(tuple_(v.document_id, v.version).in_(keys)))
    }
    working = [(r.id, r.latest_version) for r in rows if r.status != DocumentStatus.READY.value]
    jobs = _present_jobs(session, working)
    counts = _mention_counts(session, keys)
    wanted = wanted_recipes(session, rows)
    near = near_duplicates_of(session, [r.id for r in rows])
    return tuple(
        _document_value(
            r, versions[r.id], jobs.get(r.id), counts.get(r.id, (0, 0)), wanted[r.id], near.get(r.id, ())
        )
        for r in rows
    )


def _present_jobs(session: Session, keys: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Per document: the open job of its newest version, or the job that ended last."""
    jobs: dict[str, Any] = {}
    if not keys:
        return jobs
    j = JobRow
    rows = session.execute(
        select(
            j.id, j.subject_id, j.task, j.status, j.progress_done, j.progress_total, j.error_code,
            j.error_detail, j.created_at,
        ).where(j.subject_kind == "document", tuple_(j.subject_id, j.subject_version).in_(keys))
    ).all()  # fmt: skip
    for row in sorted(rows, key=lambda j: (j.status in OPEN_JOBS, j.created_at, j.id)):
        jobs[row.subject_id] = row
    return jobs


def _mention_counts(session: Session, keys: Sequence[tuple[str, int]]) -> dict[str, tuple[int, int]]:
    rows = session.execute(
        select(MentionRow.document_id, func.count(), func.count(MentionRow.entity_id.distinct()))
        .where(tuple_(MentionRow.document_id, MentionRow.version).in_(keys))
        .group_by(MentionRow.document_id)
    )
    return {document_id: (int(mentions), int(entities)) for document_id, mentions, entities in rows}


def _document_value(
    row: DocumentRow,
    version: Any,
    job: Any,
    counts: tuple[int, int],
    wanted: str,
    near: tuple[NearDuplicate, ...],
) -> Document:
    status = DocumentStatus(row.status)
    error = None
    if row.error_code is not None and status is DocumentStatus.FAILED:
        error = Problem(row.error_code, row.error_detail or "")
    elif job is not None and job.error_code is not None and job.status in OPEN_JOBS:
        error = Problem(job.error_code, job.error_detail or "")  # waits for its next attempt
    total = version.passage_count
    progress = Progress(total, total) if job is None else _progress(job)
    return Document(
        id=row.id,
        collection_id=row.collection_id,
        name=row.name,
        status=status,
        stage=job.task.rpartition(".")[2] if job else None,
        progress=progress,
        error=error,
        version=row.latest_version,
        live_version=row.live_version,
        media_type=version.media_type or version.declared_type,
        size_bytes=version.size_bytes,
        encoding=version.encoding,
        encoding_confidence=version.encoding_confidence,
        title=version.title,
        lang=version.lang,
        pages=version.pages,
        counts=Counts(total, *counts),
        warnings=tuple(version.warnings),
        tags=tuple(row.tags),
        trust=Trust(row.trust),
        metadata=dict(row.meta),
        properties=dict(version.properties),
        parse=dict(version.parse),
        parser_version=version.parser_version,
        outdated=row.status in SETTLED and version.recipe != wanted,
        near_duplicates=near,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _progress(job: Any) -> Progress:
    """The last unit counts when the stage's end is stored: nothing is complete before that."""
    return Progress(min(job.progress_done, max(job.progress_total - 1, 0)), job.progress_total)
