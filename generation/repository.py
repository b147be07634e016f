"""Rows ↔ values of the generation half. Every read is scoped; evidence is served from live passages only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.orm import Session

from core.db import plain_rows, utcnow
from core.errors import NotFound
from core.models import (
    ClaimRow,
    EnginePlanRow,
    EvidenceRow,
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
    Passage,
    Route,
    Scope,
    SentenceScore,
    Span,
    Verdict,
)
from generation.policy import parse_policy
from generation.policy_repository import add_policy as add_policy
from generation.policy_repository import policy_in_force as policy_in_force
from generation.prompt_book import Form
from generation.state import Outcome, QueryState
from generation.view_repository import answer_view as answer_view
from generation.view_repository import ending as ending
from generation.view_repository import query_row as query_row
from generation.view_repository import query_status as query_status
from generation.view_repository import request_cancel as request_cancel
from generation.view_repository import summaries as summaries
from retrieval.language import question_language
from retrieval.live import live_passages
from retrieval.variants import Variant

_OPEN = (AnswerStatus.QUEUED.value, AnswerStatus.RUNNING.value)
_PLAN_ROW = 1


_EVIDENCE = (
    select(*EvidenceRow.__table__.c)
    .where(EvidenceRow.query_id == bindparam("query_id"))
    .order_by(EvidenceRow.marker)
)


# -- queries, as the answer task sees them -----------------------------------------------------


def query_state(session: Session, query_id: str) -> QueryState:
    """The query as the worker sees it (its id came from a job row).

    Raises:
        NotFound: the row is gone.
    """
    row = session.get(QueryRow, query_id)
    if row is None:
        raise NotFound("No such query.", query_id=query_id)
    trace = select(QueryRow.trace).where(QueryRow.id == row.replay_of)
    repeated = (session.scalar(trace) if row.replay_of else None) or {}
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
        replayed=repeated.get("generation", {}).get("record", {}),
        deadline_at=row.deadline_at,
        left_out=row.trace.get("too_old", 0),
    )


def cancel_requested(session: Session, query_id: str) -> bool:
    """The truth behind the cancel message; a vanished query counts as cancelled."""
    return session.scalar(select(QueryRow.cancel_requested).where(QueryRow.id == query_id)) is not False


def load_evidence(session: Session, scope: Scope, query_id: str) -> tuple[Evidence, ...]:
    """The query's evidence by marker, without passages that were deleted or replaced since."""
    rows = plain_rows(session, _EVIDENCE, {"query_id": query_id})
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


def store_rewriting(
    session: Session, query_id: str, told: Mapping[str, Any], variants: Sequence[Variant]
) -> bool:
    """What came of rewriting a question; False when its search is over or the query ended."""
    row = session.get(QueryRow, query_id, with_for_update=True)
    if row is None or row.status != AnswerStatus.QUEUED.value:
        return False
    row.variants = [variant.as_json() for variant in variants]
    row.trace = {**row.trace, "rewrite": dict(told)}
    session.flush()
    return True


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
            **({"listwise": dict(outcome.listwise)} if outcome.listwise else {}),
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
