"""The rerank stage: a query's row in; evidence, trace and the answer stage (or the search's end) out.

Transactions: the claim, one read, the routes' own short reads, one write at the end. The encoder and the
indexes are opened when the retrieval worker starts, not by its first query.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from celery import signals
from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from core import streams
from core.db import utcnow
from core.jobs import JobRun, add_job, run_job
from core.redis_client import get_redis
from core.settings import get_settings
from core.types import AnswerStatus, CitationMode, Evidence, JobStatus, Passage, Scope
from core.worker import Task, get_app, next_stage, worker_name
from ingest.encode import TokenVectors
from retrieval import query_repository
from retrieval.cross_encoder import configured_reranker
from retrieval.filters import parse_filters
from retrieval.index_repository import store_tokens
from retrieval.pack import Candidate, Dropped, Selection, diversify, fit
from retrieval.queries import page_of
from retrieval.query_repository import StoredQuery
from retrieval.recall import Ranked, Ranking, encoded_text, rank
from retrieval.recall_store import keep_question
from retrieval.rerank import Scored
from retrieval.sentence_scores import score_sentences
from retrieval.tier_metrics import TIER_METRICS

log = logging.getLogger(__name__)

_SEARCH_STREAM_TTL_S = 120  # a search's stream holds passages; nobody reads it once the door has answered
_STREAM_LIMIT = 200  # dropped passages that a trace tells of


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the task read before it began to work."""

    query: StoredQuery
    scope: Scope
    plan: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the task stores."""

    ranking: Ranking
    evidence: tuple[Evidence, ...] = ()
    hits: tuple[dict[str, Any], ...] = ()
    total: int = 0
    dropped: tuple[Dropped, ...] = ()
    timings_ms: dict[str, float] = field(default_factory=dict[str, float])


@get_app().task(name=Task.RERANK.value)
def rerank(job_id: str) -> None:
    """Celery's entry."""
    run_job(job_id, rerank_query)


@signals.worker_init.connect
def _preload(**_: object) -> None:
    if worker_name() == "retrieval":
        from ingest.encode import get_encoder
        from retrieval.tiers import get_reader

        get_encoder(get_reader().snapshot().model).encode_query("warm up")
        configured_reranker()


def rerank_query(run: JobRun) -> None:
    """Do one query; the run's subject."""
    with run.db.read() as session:
        query = query_repository.get_query(session, run.subject_id)
        plan = query_repository.engine_plan(session)
    if AnswerStatus(query.status).terminal:
        return
    if query.cancel_requested:
        _end_cancelled(run, query.id)
        return
    prepared = Prepared(query, _scope(query), plan)
    from retrieval.tiers import get_reader
    from retrieval.vector_pages import follow_plan

    follow_plan((plan or {}).get("vector_page_bytes"))
    ranking = rank(
        run.db,
        get_reader(),
        prepared.scope,
        text=query.question,
        filters=parse_filters(query.filters),
        wanted=sum(page_of(query.options))
        if query.task == "search"
        else get_settings().retrieval.max_evidence,
    )
    outcome = _searched(prepared, ranking) if query.task == "search" else _evidence(prepared, ranking)
    _finish(run, prepared, outcome)
    TIER_METRICS.tell(get_reader().snapshot().tiers)


def _scope(query: StoredQuery) -> Scope:
    """The query's own scope: it was checked against its key's when the query was stored."""
    return Scope.internal(query.tenant_id).narrowed(query.collection_ids)


def _end_cancelled(run: JobRun, query_id: str) -> None:
    with run.finish(JobStatus.CANCELLED) as session:
        ended = query_repository.end_query(session, query_id, AnswerStatus.CANCELLED)
    if ended:
        _publish(query_id, "done", {"status": AnswerStatus.CANCELLED.value})


# -- search ------------------------------------------------------------------------------------


def _searched(prepared: Prepared, ranking: Ranking) -> Outcome:
    """Diversify the whole ranking, then cut the page out of it: score → sort → slice."""
    offset, top_k = page_of(prepared.query.options)
    selection = _diversified(ranking.ranked, limit=offset + top_k, cap=offset + top_k)
    by_id = {r.stored.passage.id: r for r in ranking.ranked}
    page = selection.kept[offset : offset + top_k]
    hits = tuple(
        _hit(by_id[key], offset + i, selection.collapsed.get(key, 0)) for i, key in enumerate(page, 1)
    )
    duplicates = sum(1 for d in selection.dropped if d.why == "duplicate")
    return Outcome(ranking, hits=hits, total=len(ranking.ranked) - duplicates, dropped=selection.dropped)


def _hit(one: Ranked, rank_: int, collapsed: int) -> dict[str, Any]:
    return {
        "rank": rank_,
        "passage_id": one.stored.passage.id,
        "score": round(one.relevance, 6),
        "fused": round(one.fused.score, 6),
        "reranked": None if one.scored is None else round(one.scored.maxsim, 6),
        "routes": [{"route": h.route.value, "rank": h.rank, "score": h.score} for h in one.fused.hits],
        "collapsed": collapsed,
    }


# -- answer ------------------------------------------------------------------------------------


def _evidence(prepared: Prepared, ranking: Ranking) -> Outcome:
    settings = get_settings().retrieval
    about_others, own = _about_others(ranking)
    relevant, irrelevant = _relevant(prepared, own)
    relevant, irrelevant = _with_each(ranking, own, relevant, irrelevant)
    selection = _diversified(relevant, limit=settings.max_evidence, cap=settings.per_document_cap)
    by_id = {r.stored.passage.id: r for r in relevant}
    kept, dropped = selection.kept, (*selection.dropped, *irrelevant, *about_others)
    if _model_reads(prepared, ranking):
        from retrieval.budget import context_budget, token_counter

        fitted, over = fit(
            [_shown(by_id[key]) for key in kept],
            budget=context_budget(prepared.plan, settings),
            count_tokens=token_counter(prepared.plan),
        )
        kept, dropped = fitted, (*dropped, *over)
    chosen = [by_id[key] for key in canonical_order(kept)]
    sentences = score_sentences(
        ranking.question,
        [
            (r.stored.passage.text, _own_tokens(r.stored.passage, r.scored), r.stored.passage.span.start)
            for r in chosen
            if r.scored is not None
        ],
    )
    # Evidence is always reranked unless the time budget cut the head short: then it has no sentences.
    own = iter(sentences)
    evidence = tuple(
        Evidence(
            marker=marker,
            passage=r.stored.passage,
            score=round(r.relevance, 6),
            routes=r.fused.hits,
            sentences=next(own) if r.scored is not None else (),
            document_name=r.stored.document_name,
            collection_id=r.stored.collection_id,
            collapsed=selection.collapsed.get(r.stored.passage.id, 0),
        )
        for marker, r in enumerate(chosen, 1)
    )
    return Outcome(ranking, evidence=evidence, total=len(ranking.ranked), dropped=dropped)


def _about_others(ranking: Ranking) -> tuple[tuple[Dropped, ...], Sequence[Ranked]]:
    """Passages about somebody else of the name that the question means, and the rest.

    They answer a question that was not asked, however near they are.
    """
    others = ranking.entities.others
    about = tuple(
        Dropped(r.stored.passage.id, "another_entity", None)
        for r in ranking.ranked
        if r.stored.passage.id in others
    )
    return about, [r for r in ranking.ranked if r.stored.passage.id not in others]


def _with_each(
    ranking: Ranking, own: Sequence[Ranked], relevant: Sequence[Ranked], irrelevant: tuple[Dropped, ...]
) -> tuple[Sequence[Ranked], tuple[Dropped, ...]]:
    """Where a name may mean several and one of them is answered for, the best passage of each other one too.

    The asker sees then that there are several, and not one as if there were no other.
    """
    chosen = {r.stored.passage.id for r in relevant}
    groups = ranking.entities.each
    if not irrelevant or not any(group & chosen for group in groups):
        return relevant, irrelevant
    for group in groups:
        best = next((r.stored.passage.id for r in own if r.stored.passage.id in group), None)
        if best is not None and not group & chosen:
            chosen.add(best)
    kept = [r for r in own if r.stored.passage.id in chosen]
    return kept, tuple(d for d in irrelevant if d.key not in chosen)


def _own_tokens(passage: Passage, scored: Scored) -> TokenVectors:
    """Token places counted from the passage's own text; those of its headings come before 0."""
    before = len(encoded_text(passage)) - len(passage.text)
    tokens = scored.tokens.vectors()
    return TokenVectors(tokens.vectors, tokens.offsets - before)


def _relevant(prepared: Prepared, ranked: Sequence[Ranked]) -> tuple[Sequence[Ranked], tuple[Dropped, ...]]:
    """Passages that would not answer by themselves do not stand beside one that does.

    A true sentence about something else is no part of an answer. When nothing is relevant, all stay: the
    answer is a refusal and shows what came nearest.
    """
    threshold = prepared.query.policy.get("refusal_threshold")
    if threshold is None:
        threshold = get_settings().retrieval.refusal_threshold
    relevant = [r for r in ranked if r.relevance >= threshold]
    if not relevant:
        return ranked, ()
    others = tuple(
        Dropped(r.stored.passage.id, "irrelevant", None) for r in ranked if r.relevance < threshold
    )
    return relevant, others


def _model_reads(prepared: Prepared, ranking: Ranking) -> bool:
    """Whether the evidence goes into a prompt, so that the engine's budget limits it.

    `extract` shows sentences that the reranker chose, and so does `free` in a language that the model does
    not know: both may draw on all of the evidence.
    """
    if prepared.query.policy.get("mode", CitationMode.EXTRACT.value) == CitationMode.EXTRACT.value:
        return False
    languages: Sequence[str] = (prepared.plan or {}).get("languages", ())
    return not languages or ranking.question.lang.value in languages


def canonical_order(kept: Sequence[int]) -> Sequence[int]:
    """The order in which evidence is marked and shown: best first."""
    return kept


def _shown(one: Ranked) -> Candidate:
    """The evidence as a prompt shows it, for counting: marker, name, headings and text."""
    passage = one.stored.passage
    heading = " / ".join((one.stored.document_name, *passage.heading_path))
    return Candidate(passage.id, passage.document_id, f"[00] {heading}\n{passage.text}\n\n")


def _diversified(ranked: Sequence[Ranked], *, limit: int, cap: int) -> Selection:
    return diversify(
        [Candidate(r.stored.passage.id, r.stored.passage.document_id, r.stored.passage.text) for r in ranked],
        per_document_cap=cap,
        limit=limit,
    )


# -- the end -----------------------------------------------------------------------------------


def _finish(run: JobRun, prepared: Prepared, outcome: Outcome) -> None:
    query = prepared.query
    with run.finish() as session:
        state = query_repository.lock_query(session, query.id)
        if AnswerStatus(state.status).terminal:
            return
        if state.cancel_requested:
            query_repository.end_query(session, query.id, AnswerStatus.CANCELLED)
            status = AnswerStatus.CANCELLED
        else:
            status = _store(session, run, prepared, outcome)
    if not status.terminal:
        return
    if status is AnswerStatus.ANSWERED:
        _publish(query.id, "search", search_payload(prepared, outcome))
    _publish(query.id, "done", {"status": status.value})
    _shorten_stream(query.id)


def _store(session: Session, run: JobRun, prepared: Prepared, outcome: Outcome) -> AnswerStatus:
    store_tokens(session, outcome.ranking.model, list(outcome.ranking.made.items()))
    search = prepared.query.task == "search"
    query_repository.store_ranking(
        session,
        prepared.query.id,
        status=AnswerStatus.ANSWERED if search else AnswerStatus.RUNNING,
        trace=_trace(prepared, outcome),
        timings_ms={f"retrieval_{name}": ms for name, ms in outcome.ranking.timings_ms.items()},
        generation=outcome.ranking.generation,
        evidence=outcome.evidence,
        finished_at=utcnow() if search else None,
    )
    vector = outcome.ranking.question.vector.astype(np.float16).tobytes()
    keep_question(session, prepared.query.id, vector, outcome.ranking.model)
    following = next_stage(run.task)
    if search or following is None:
        return AnswerStatus.ANSWERED
    add_job(
        session,
        following,
        tenant_id=prepared.query.tenant_id,
        subject_kind="query",
        subject_id=prepared.query.id,
    )
    return AnswerStatus.RUNNING


def _trace(prepared: Prepared, outcome: Outcome) -> dict[str, Any]:
    """What is stored with the query: ids, ranks and scores, never text (text is joined when read)."""
    trace: dict[str, Any] = {
        "routes": {r.value: report.as_json() for r, report in outcome.ranking.recalled.reports.items()},
        "question_lang": outcome.ranking.question.lang.value,
        "names": _names(outcome.ranking),
        "total": outcome.total,
        "dropped": [{"passage_id": d.key, "why": d.why, "of": d.of} for d in outcome.dropped[:_STREAM_LIMIT]],
    }
    if prepared.query.task == "search":
        trace["hits"] = list(outcome.hits)
    else:
        trace["best_relevance"] = max((e.score for e in outcome.evidence), default=0.0)
        trace["readings"] = _readings(outcome)
    return trace


def _names(ranking: Ranking) -> list[dict[str, Any]]:
    """The names of the question with what they may mean, likeliest first."""
    return [
        {
            "start": name.name.start,
            "end": name.name.end,
            "certainty": round(name.certainty, 3),
            "readings": [
                {"entity_id": entity_id, "share": round(share, 3)}
                for entity_id, share in sorted(name.shares.items(), key=lambda item: (-item[1], item[0]))
            ],
        }
        for name in ranking.entities.weighed
    ]


def _readings(outcome: Outcome) -> list[list[int]]:
    """Markers of the evidence for each entity that a name of the question may mean; empty for one only."""
    groups = [
        [e.marker for e in outcome.evidence if e.passage.id in passages]
        for passages in outcome.ranking.entities.each
    ]
    groups = [group for group in groups if group]
    return groups if len(groups) > 1 else []


def search_payload(prepared: Prepared, outcome: Outcome) -> dict[str, Any]:
    """The `search` event: the hits with their passages as the search door shows them."""
    by_id = {r.stored.passage.id: r.stored for r in outcome.ranking.ranked}
    hits: list[dict[str, Any]] = []
    for hit in outcome.hits:
        stored = by_id[hit["passage_id"]]
        passage = stored.passage
        hits.append(
            {
                **hit,
                "document_id": passage.document_id,
                "document_name": stored.document_name,
                "collection_id": stored.collection_id,
                "version": passage.version,
                "page": passage.page,
                "heading_path": list(passage.heading_path),
                "lang": passage.lang.value,
                "text": passage.text,
            }
        )
    payload = {**_trace(prepared, replace(outcome, hits=())), "hits": hits}
    if not prepared.query.options.get("explain"):
        payload.pop("dropped")
    return payload


def _publish(query_id: str, event: str, payload: dict[str, Any]) -> None:
    """Readers fall back to the stored state when Redis is away, so its outage fails no query."""
    try:
        streams.publish(get_redis(), query_id, event, payload)
    except RedisError:
        log.warning("event_not_published", extra={"query_id": query_id, "event_name": event})


def _shorten_stream(query_id: str) -> None:
    try:
        get_redis().expire(streams.stream_key(query_id), _SEARCH_STREAM_TTL_S)
    except RedisError:
        log.debug("stream_ttl_not_set", exc_info=True)
