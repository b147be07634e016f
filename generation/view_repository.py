"""Rows → what the doors show of queries: answers, lists, and the asking for an end. Every read is scoped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from core.db import utcnow
from core.errors import NotFound
from core.models import (
    ClaimRow,
    DocumentRow,
    EvidenceRow,
    JobRow,
    PassageRow,
    QueryRow,
)
from core.types import (
    AnswerStatus,
    CitationMode,
    JobStatus,
    Scope,
    Usage,
    Verdict,
)
from core.worker import OPTIONAL
from generation.values import (
    AnswerSummary,
    AnswerView,
    CitationView,
    ClaimView,
    Ending,
    ErrorView,
    Notice,
    QuoteView,
    RouteRank,
    SourceView,
    join_sentences,
)


def _visible(row: Any, scope: Scope) -> bool:
    return (
        row is not None
        and row.tenant_id == scope.tenant_id
        and all(scope.allows_collection(c) for c in row.collection_ids)
    )


def query_row(session: Session, scope: Scope, query_id: str) -> QueryRow:
    """The row, for use inside this package's repository and service.

    Raises:
        NotFound: unknown to this scope.
    """
    row = session.get(QueryRow, query_id)
    if row is None or not _visible(row, scope):
        raise NotFound("No such query.", query_id=query_id)
    return row


def query_status(session: Session, scope: Scope, query_id: str) -> AnswerStatus:
    """How far a query is; much cheaper than its answer.

    Raises:
        NotFound: unknown to this scope.
    """
    columns = select(QueryRow.tenant_id, QueryRow.collection_ids, QueryRow.status)
    row = session.execute(columns.where(QueryRow.id == query_id)).one_or_none()
    if row is None or not _visible(row, scope):
        raise NotFound("No such query.", query_id=query_id)
    return AnswerStatus(row.status)


def ending(session: Session, scope: Scope, query_id: str) -> Ending:
    """What the last event of an ended query says.

    Raises:
        NotFound: unknown to this scope.
    """
    row = query_row(session, scope, query_id)
    told: Mapping[str, Any] = row.trace.get("generation", {})
    if not (text := told.get("text", "")):
        claims = select(ClaimRow.text, ClaimRow.erased).where(ClaimRow.query_id == query_id)
        shown = session.execute(claims.order_by(ClaimRow.ordinal)).all()
        text = join_sentences("" if erased else text for text, erased in shown)
    return Ending(
        status=AnswerStatus(row.status),
        text=text,
        usage=_usage(row),
        timings_ms=_timings(row),
        index_generation=row.index_generation,
        policy_version=row.policy_version,
        error=_error(row),
        **_modes(row),
    )


def _modes(row: QueryRow) -> dict[str, Any]:
    """How the answer came to be."""
    told: Mapping[str, Any] = row.trace.get("generation", {})
    return {
        "mode": CitationMode(row.policy.get("mode") or CitationMode.EXTRACT),
        "mode_used": CitationMode(told["mode_used"]) if told.get("mode_used") else None,
        "mode_reason": told.get("mode_reason", ""),
        "notices": tuple(Notice(**notice) for notice in told.get("notices", ())),
    }


def _usage(row: QueryRow) -> dict[str, int]:
    return {k: int(v) for k, v in (row.usage or asdict(Usage())).items()}


def _timings(row: QueryRow) -> dict[str, float]:
    return {k: float(v) for k, v in row.timings_ms.items() if isinstance(v, int | float)}


def _error(row: QueryRow) -> ErrorView | None:
    return ErrorView(row.error_code, row.error_detail or "") if row.error_code else None


def answer_view(session: Session, scope: Scope, query_id: str) -> AnswerView:
    """A query with its claims and sources.

    Raises:
        NotFound: unknown to this scope.
    """
    row = query_row(session, scope, query_id)
    evidence = session.scalars(
        select(EvidenceRow).where(EvidenceRow.query_id == query_id).order_by(EvidenceRow.marker)
    ).all()
    claims = session.scalars(
        select(ClaimRow).where(ClaimRow.query_id == query_id).order_by(ClaimRow.ordinal)
    ).all()
    passages = _passage_rows(session, scope, (e.passage_id for e in evidence))
    names = _document_names(session, scope, evidence, claims)
    headings = {p.id: tuple(p.heading_path) for p in passages.values()}
    claim_views = tuple(_claim_view(c, names, headings) for c in claims)
    generation: Mapping[str, Any] = row.trace.get("generation", {})
    return AnswerView(
        id=row.id,
        status=AnswerStatus(row.status),
        question=row.question,
        task=row.task,
        priority=row.priority,
        collection_ids=tuple(row.collection_ids),
        text=generation.get("text", "") or join_sentences(c.text for c in claim_views),
        claims=claim_views,
        sources=tuple(_source_view(e, passages.get(e.passage_id), names) for e in evidence),
        usage=_usage(row),
        timings_ms=_timings(row),
        index_generation=row.index_generation,
        policy_version=row.policy_version,
        policy=dict(row.policy),
        stale_since=row.stale_since,
        cancel_requested=row.cancel_requested,
        error=_error(row),
        replay_of=row.replay_of,
        created_at=row.created_at,
        finished_at=row.finished_at,
        trace=dict(row.trace),
        **_modes(row),
    )


def summaries(
    session: Session, scope: Scope, *, before: str | None, limit: int, collection_id: str | None
) -> tuple[list[AnswerSummary], bool]:
    """Up to `limit` queries older than id `before`, newest first, and whether more follow."""
    found: list[AnswerSummary] = []
    while True:
        # A restricted key's rows are told apart in Python, because JSON containment differs by backend.
        query = select(QueryRow).where(QueryRow.tenant_id == scope.tenant_id).order_by(QueryRow.id.desc())
        if before is not None:
            query = query.where(QueryRow.id < before)
        rows = session.scalars(query.limit(limit + 1)).all()
        for row in rows:
            before = row.id
            if _visible(row, scope) and (collection_id is None or collection_id in row.collection_ids):
                if len(found) == limit:
                    return found, True
                found.append(_summary(row))
        if len(rows) <= limit:
            return found, False


def _summary(row: QueryRow) -> AnswerSummary:
    return AnswerSummary(
        id=row.id,
        status=AnswerStatus(row.status),
        question=row.question,
        task=row.task,
        collection_ids=tuple(row.collection_ids),
        stale_since=row.stale_since,
        replay_of=row.replay_of,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )


def _passage_rows(session: Session, scope: Scope, ids: Iterable[int]) -> dict[int, PassageRow]:
    query = select(PassageRow).where(PassageRow.id.in_(list(ids)), PassageRow.tenant_id == scope.tenant_id)
    return {row.id: row for row in session.scalars(query)}


def _document_names(
    session: Session, scope: Scope, evidence: Sequence[EvidenceRow], claims: Sequence[ClaimRow]
) -> dict[str, str]:
    ids = {e.document_id for e in evidence} | {c["document_id"] for claim in claims for c in claim.citations}
    query = select(DocumentRow.id, DocumentRow.name).where(
        DocumentRow.id.in_(ids), DocumentRow.tenant_id == scope.tenant_id
    )
    return {row.id: row.name for row in session.execute(query)}


def _claim_view(
    row: ClaimRow, names: Mapping[str, str], headings: Mapping[int, tuple[str, ...]]
) -> ClaimView:
    return ClaimView(
        ordinal=row.ordinal,
        text="" if row.erased else row.text,
        verdict=Verdict(row.verdict),
        reason=row.reason,
        citations=tuple(_citation_view(c, names, headings, erased=row.erased) for c in row.citations),
        erased=row.erased,
    )


def _citation_view(
    c: Mapping[str, Any], names: Mapping[str, str], headings: Mapping[int, tuple[str, ...]], *, erased: bool
) -> CitationView:
    quote = c.get("quote")
    return CitationView(
        marker=c["marker"],
        passage_id=c["passage_id"],
        document_id=c["document_id"],
        document_name=names.get(c["document_id"], ""),
        version=c["version"],
        page=c.get("page"),
        heading_path=headings.get(c["passage_id"], ()),
        quote=QuoteView(quote["start"], quote["end"], quote["text"]) if quote and not erased else None,
    )


def _source_view(row: EvidenceRow, passage: PassageRow | None, names: Mapping[str, str]) -> SourceView:
    return SourceView(
        marker=row.marker,
        passage_id=row.passage_id,
        document_id=row.document_id,
        document_name=names.get(row.document_id, ""),
        version=row.version,
        page=passage.page if passage else None,
        heading_path=tuple(passage.heading_path) if passage else (),
        text=passage.text if passage else None,
        score=row.score,
        routes=tuple(RouteRank(r["route"], r["rank"], r["score"]) for r in row.routes),
        collapsed=row.collapsed,
    )


def request_cancel(session: Session, row: QueryRow) -> bool:
    """Mark the query and its jobs; ends it at once when no worker holds it.

    Returns:
        Whether the query is now cancelled (False: a worker will end it).
    """
    row.cancel_requested = True
    own = (JobRow.subject_kind == "query", JobRow.subject_id == row.id)
    session.execute(update(JobRow).where(*own).values(cancel_requested=True))
    session.execute(
        update(JobRow)
        .where(*own, JobRow.status == JobStatus.WAITING.value)
        .values(status=JobStatus.CANCELLED.value, finished_at=utcnow())
    )
    held = session.scalar(
        select(func.count()).where(
            *own, JobRow.status == JobStatus.RUNNING.value, JobRow.task.not_in(OPTIONAL)
        )
    )
    if held:
        return False
    row.status, row.finished_at = AnswerStatus.CANCELLED.value, utcnow()
    session.flush()
    return True
