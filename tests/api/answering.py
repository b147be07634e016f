"""What the workers do to a query, by their own functions, without models: evidence, events, outcome."""

from __future__ import annotations

import time

from sqlalchemy import select

from core.db import get_database
from core.models import DocumentRow, DocumentVersionRow, EvidenceRow, PassageRow, QueryRow
from core.redis_client import get_redis
from core.types import (
    AnswerStatus,
    Citation,
    CitationMode,
    Claim,
    Evidence,
    Lang,
    Passage,
    Scope,
    Span,
    Usage,
    Verdict,
)
from generation import repository
from generation.stream import EventWriter, done_payload

TEXT = "The harbour fee is 410 crowns. It is paid at the gate. Residents pay half. 居民只付一半。"
SENTENCES = ("The harbour fee is 410 crowns.", "It is paid at the gate.", "居民只付一半。")


def make_readable(document_id: str) -> int:
    """Give the first version a text and one passage, and serve it; returns the passage's id."""
    with get_database().write() as session:
        row = session.get_one(DocumentRow, document_id)
        version = session.get_one(DocumentVersionRow, (document_id, 1))
        row.live_version, row.status = 1, "ready"
        version.text, version.media_type = TEXT, "text/plain"
        passage = PassageRow(
            tenant_id=row.tenant_id,
            collection_id=row.collection_id,
            document_id=document_id,
            version=1,
            ordinal=0,
            start=0,
            end=len(TEXT),
            lang="en",
            text=TEXT,
        )
        session.add(passage)
        session.flush()
        return passage.id


def find_evidence(query_id: str) -> Evidence:
    """As the retrieval worker does: the one passage is the evidence."""
    with get_database().write() as session:
        row = session.scalars(select(PassageRow)).first()
        assert row is not None
        session.add(
            EvidenceRow(
                query_id=query_id,
                marker=1,
                passage_id=row.id,
                document_id=row.document_id,
                version=1,
                score=0.9,
            )
        )
        repository.mark_running(session, query_id)
        passage = Passage(
            row.id, row.document_id, 1, 0, Span(row.start, row.end), None, (), Lang.EN, row.text
        )
    return Evidence(1, passage, 0.9, document_name="fees.txt")


def claims_of(evidence: Evidence, sentences: tuple[str, ...] = SENTENCES) -> list[Claim]:
    made: list[Claim] = []
    for sentence in sentences:
        start = TEXT.index(sentence)
        quote = Span(start, start + len(sentence))
        citation = Citation(1, evidence.passage.id, evidence.passage.document_id, 1, quote, sentence)
        made.append(Claim(sentence, (citation,), Verdict.SUPPORTED, "verbatim"))
    return made


def answer(
    query_id: str,
    *,
    pause_s: float = 0.0,
    status: AnswerStatus = AnswerStatus.ANSWERED,
    text: str = "",
    sentences: tuple[str, ...] = SENTENCES,
    begin_again_after: int | None = None,
) -> None:
    """As the generation worker does: sources, a delta and a claim per sentence, the stored outcome, done."""
    evidence = find_evidence(query_id)
    writer = EventWriter(get_redis(), query_id, interval_s=0)
    writer.sources([evidence])
    claims = claims_of(evidence, sentences)
    if begin_again_after is not None:
        for ordinal, claim in enumerate(claims[:begin_again_after]):
            writer.claim(ordinal, claim, {1: evidence})
        writer.begin()
    for ordinal, claim in enumerate(claims):
        time.sleep(pause_s)
        writer.delta(ordinal, claim.text[:5])
        writer.claim(ordinal, claim, {1: evidence})
    outcome = repository.Outcome(
        status,
        tuple(claims),
        CitationMode.EXTRACT,
        text=text,
        usage=Usage(100, 20),
        timings_ms={"total": 1.0},
    )
    finish(query_id, outcome)


def finish(query_id: str, outcome: repository.Outcome) -> None:
    """Store the outcome and send the last event."""
    with get_database().write() as session:
        tenant = session.get_one(QueryRow, query_id).tenant_id
        repository.store_outcome(session, query_id, outcome, {})
        view = repository.answer_view(session, Scope(tenant, None, "worker"), query_id)
    EventWriter(get_redis(), query_id).done(done_payload(view))
