"""Rows ↔ values of the generation half. Every read is scoped; evidence is served from live passages only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from core.db import utcnow
from core.errors import NotFound
from core.models import (
    ClaimRow,
    CollectionRow,
    DocumentRow,
    EnginePlanRow,
    EvidenceRow,
    JobRow,
    PassageRow,
    PolicyRow,
    QueryRow,
)
from core.types import (
    AnswerStatus,
    Citation,
    CitationMode,
    Claim,
    EnginePlan,
    Evidence,
    Hit,
    JobStatus,
    Passage,
    Route,
    Scope,
    SentenceScore,
    Span,
    Usage,
    Verdict,
)
from generation.policy import CitationPolicy, parse_policy
from generation.prompt_book import Form
from generation.state import Outcome, QueryState
from generation.values import (
    AnswerSummary,
    AnswerView,
    CitationView,
    ClaimView,
    ErrorView,
    Notice,
    PolicyView,
    QuoteView,
    RouteRank,
    SourceView,
    join_sentences,
)
from retrieval.language import question_language
from retrieval.live import live_passages

_OPEN = (AnswerStatus.QUEUED.value, AnswerStatus.RUNNING.value)
_PLAN_ROW = 1


# -- policies ----------------------------------------------------------------------------------


def policy_in_force(session: Session, scope: Scope, collection_id: str) -> PolicyView:
    """The collection's newest policy, or the built-in default as version 0.

    Raises:
        NotFound: the collection is unknown to this scope.
    """
    _require_collection(session, scope, collection_id)
    row = session.scalar(
        select(PolicyRow)
        .where(PolicyRow.collection_id == collection_id)
        .order_by(PolicyRow.version.desc())
        .limit(1)
    )
    if row is None:
        return PolicyView(collection_id, 0, CitationPolicy().model_dump(mode="json"), None, None)
    return PolicyView(collection_id, row.version, dict(row.body), row.created_by, row.created_at)


def add_policy(session: Session, scope: Scope, collection_id: str, policy: CitationPolicy) -> PolicyView:
    """Store the next version.

    Raises:
        NotFound: the collection is unknown to this scope.
    """
    _require_collection(session, scope, collection_id, lock=True)
    newest = session.scalar(
        select(func.max(PolicyRow.version)).where(PolicyRow.collection_id == collection_id)
    )
    row = PolicyRow(
        collection_id=collection_id,
        version=(newest or 0) + 1,
        body=policy.model_dump(mode="json"),
        created_by=scope.principal,
        created_at=utcnow(),
    )
    session.add(row)
    session.flush()
    return PolicyView(collection_id, row.version, dict(row.body), row.created_by, row.created_at)


def _require_collection(session: Session, scope: Scope, collection_id: str, *, lock: bool = False) -> None:
    query = select(CollectionRow.id).where(
        CollectionRow.id == collection_id, CollectionRow.tenant_id == scope.tenant_id
    )
    found = session.scalar(query.with_for_update() if lock else query)
    if found is None or not scope.allows_collection(collection_id):
        raise NotFound("No such collection.", collection_id=collection_id)


# -- queries, as the doors see them ------------------------------------------------------------


def _visible(row: QueryRow | None, scope: Scope) -> bool:
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
        mode=CitationMode(row.policy.get("mode") or CitationMode.EXTRACT),
        mode_used=CitationMode(generation["mode_used"]) if generation.get("mode_used") else None,
        mode_reason=generation.get("mode_reason", ""),
        notices=tuple(Notice(**notice) for notice in generation.get("notices", ())),
        text=generation.get("text", "") or join_sentences(c.text for c in claim_views),
        claims=claim_views,
        sources=tuple(_source_view(e, passages.get(e.passage_id), names) for e in evidence),
        usage={k: int(v) for k, v in (row.usage or asdict(Usage())).items()},
        timings_ms={k: float(v) for k, v in row.timings_ms.items() if isinstance(v, int | float)},
        index_generation=row.index_generation,
        policy_version=row.policy_version,
        policy=dict(row.policy),
        stale_since=row.stale_since,
        cancel_requested=row.cancel_requested,
        error=ErrorView(row.error_code, row.error_detail or "") if row.error_code else None,
        replay_of=row.replay_of,
        created_at=row.created_at,
        finished_at=row.finished_at,
        trace=dict(row.trace),
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
    held = session.scalar(select(func.count()).where(*own, JobRow.status == JobStatus.RUNNING.value))
    if held:
        return False
    row.status, row.finished_at = AnswerStatus.CANCELLED.value, utcnow()
    session.flush()
    return True


# -- queries, as the answer task sees them -----------------------------------------------------


def query_state(session: Session, query_id: str) -> QueryState:
    """The query as the worker sees it (its id came from a job row).

    Raises:
        NotFound: the row is gone.
    """
    row = session.get(QueryRow, query_id)
    if row is None:
        raise NotFound("No such query.", query_id=query_id)
    repeated = session.get(QueryRow, row.replay_of) if row.replay_of else None
    return QueryState(
        id=row.id,
        tenant_id=row.tenant_id,
        collection_ids=tuple(row.collection_ids),
        question=row.question,
        history=tuple(row.history),
        task=row.task,
        priority=row.priority,
        policy=parse_policy(row.policy),
        status=AnswerStatus(row.status),
        cancel_requested=row.cancel_requested,
        created_at=row.created_at,
        readings=tuple(tuple(group) for group in row.trace.get("readings", ())),
        depth=row.trace.get("rerank", {}).get("depth", ""),
        filters=dict(row.filters),
        replay_of=row.replay_of,
        replayed=repeated.trace.get("generation", {}).get("record", {}) if repeated is not None else {},
        deadline_at=row.deadline_at,
    )


def cancel_requested(session: Session, query_id: str) -> bool:
    """The truth behind the cancel message; a vanished query counts as cancelled."""
    return session.scalar(select(QueryRow.cancel_requested).where(QueryRow.id == query_id)) is not False


def load_evidence(session: Session, scope: Scope, query_id: str) -> tuple[Evidence, ...]:
    """The query's evidence by marker, without passages that were deleted or replaced since."""
    rows = session.scalars(
        select(EvidenceRow).where(EvidenceRow.query_id == query_id).order_by(EvidenceRow.marker)
    ).all()
    live = live_passages(session, scope, (row.passage_id for row in rows))
    return tuple(
        Evidence(
            marker=row.marker,
            passage=known.passage,
            score=row.score,
            routes=tuple(Hit(row.passage_id, Route(r["route"]), r["rank"], r["score"]) for r in row.routes),
            sentences=tuple(SentenceScore(Span(s["start"], s["end"]), s["score"]) for s in row.sentences),
            document_name=known.document_name,
            collection_id=known.collection_id,
            collapsed=row.collapsed,
        )
        for row in rows
        if (known := live.get(row.passage_id)) is not None
    )


def mark_running(session: Session, query_id: str) -> None:
    """A queued query is now being worked on."""
    session.execute(
        update(QueryRow)
        .where(QueryRow.id == query_id, QueryRow.status == AnswerStatus.QUEUED.value)
        .values(status=AnswerStatus.RUNNING.value)
    )


def store_outcome(session: Session, query_id: str, outcome: Outcome, passages: Mapping[int, Passage]) -> bool:
    """Write claims and status, replacing those of an earlier attempt.

    Args:
        session: an open write session.
        query_id: the query.
        outcome: what the task produced.
        passages: the cited passages by id, for the page that each quote stands on.

    Returns:
        False when the query had already ended; nothing was written then.
    """
    row = session.get(QueryRow, query_id, with_for_update=True)
    if row is None or row.status not in _OPEN:
        return False
    session.execute(delete(ClaimRow).where(ClaimRow.query_id == query_id))
    for ordinal, claim in enumerate(outcome.claims):
        if claim.text:
            session.add(_claim_row(query_id, ordinal, claim, passages))
    row.status = outcome.status.value
    row.usage = asdict(outcome.usage)
    row.kv_tokens = outcome.usage.prompt_tokens + outcome.usage.completion_tokens
    row.timings_ms = {**row.timings_ms, **(outcome.timings_ms or {})}
    row.trace = {
        **row.trace,
        "generation": {
            "mode_used": outcome.mode_used.value if outcome.mode_used else None,
            "mode_reason": outcome.mode_reason,
            "text": outcome.text,
            "notices": [asdict(notice) for notice in outcome.notices],
            "record": dict(outcome.record),
        },
    }
    row.error_code = row.error_detail = None
    row.finished_at = utcnow()
    session.flush()
    return True


def stored_claims(session: Session, query_id: str) -> tuple[Claim, ...]:
    """The query's claims as values, in order."""
    rows = session.scalars(select(ClaimRow).where(ClaimRow.query_id == query_id).order_by(ClaimRow.ordinal))
    return tuple(
        Claim(row.text, tuple(_citation(c) for c in row.citations), Verdict(row.verdict), row.reason)
        for row in rows
    )


def _citation(c: Mapping[str, Any]) -> Citation:
    quote = c.get("quote")
    return Citation(
        marker=c["marker"],
        passage_id=c["passage_id"],
        document_id=c["document_id"],
        version=c["version"],
        quote=Span(quote["start"], quote["end"]) if quote else None,
        quote_text=quote["text"] if quote else "",
    )


def _claim_row(query_id: str, ordinal: int, claim: Claim, passages: Mapping[int, Passage]) -> ClaimRow:
    return ClaimRow(
        query_id=query_id,
        ordinal=ordinal,
        text=claim.text,
        verdict=claim.verdict.value,
        reason=claim.reason,
        citations=[
            {
                "marker": c.marker,
                "passage_id": c.passage_id,
                "document_id": c.document_id,
                "version": c.version,
                "page": passages[c.passage_id].page_at(c.quote.start if c.quote else None)
                if c.passage_id in passages
                else None,
                "quote": {"start": c.quote.start, "end": c.quote.end, "text": c.quote_text}
                if c.quote
                else None,
            }
            for c in claim.citations
        ],
    )


def recent_prompts(session: Session, *, limit: int) -> list[tuple[str, Form, tuple[int, ...]]]:
    """Tenant, form and passages of the last prompts of answers, oldest first; ids, no text."""
    rows = session.execute(
        select(QueryRow.tenant_id, QueryRow.question, QueryRow.policy, QueryRow.trace)
        .where(QueryRow.task == "answer", QueryRow.finished_at.is_not(None))
        .order_by(QueryRow.finished_at.desc())
        .limit(limit)
    ).all()
    found: list[tuple[str, Form, tuple[int, ...]]] = []
    for row in reversed(rows):
        generation: Mapping[str, Any] = row.trace.get("generation", {})
        order = tuple(generation.get("record", {}).get("order", ()))
        if order and row.policy.get("mode") in (CitationMode.QUOTE, CitationMode.FREE):
            form = Form(question_language(row.question), CitationMode(row.policy["mode"]), row.policy["tone"])
            found.append((row.tenant_id, form, order))
    return found


# -- the engine's plan -------------------------------------------------------------------------


def publish_plan(session: Session, plan: EnginePlan) -> None:
    """Store the one plan row that retrieval and the admin door read."""
    row = session.get(EnginePlanRow, _PLAN_ROW)
    body = {**asdict(plan), "languages": list(plan.languages)}
    if row is None:
        session.add(EnginePlanRow(id=_PLAN_ROW, body=body, published_at=utcnow()))
    else:
        row.body, row.published_at = body, utcnow()
    session.flush()


def published_plan(session: Session) -> tuple[dict[str, Any], datetime] | None:
    """The body of the last published plan and when it was published, or None."""
    row = session.get(EnginePlanRow, _PLAN_ROW)
    return (dict(row.body), row.published_at) if row else None
