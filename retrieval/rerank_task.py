"""The rerank stage: a query's row in; evidence, trace and the answer stage (or the search's end) out.

Transactions: the claim, one read, the routes' own short reads, one write at the end. The encoder and the
indexes are opened when the retrieval worker starts, not by its first query.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from celery import signals
from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from core import streams
from core.db import Database, utcnow
from core.jobs import JobRun, add_job, run_job
from core.metrics import ANSWER_DEPTH, RERANK_READ, REWRITES
from core.redis_client import get_redis
from core.settings import RetrievalSettings, get_settings
from core.steady import answer_evenly
from core.types import AnswerStatus, JobStatus, Passage, Scope
from core.worker import Task, get_app, next_stage, worker_name
from retrieval import query_repository
from retrieval.cascade import Plan
from retrieval.cross_encoder import configured_reranker
from retrieval.depth import AUTO, Depth
from retrieval.evidence_choice import FindNeighbours, choose_evidence
from retrieval.filters import parse_filters
from retrieval.index_repository import store_tokens
from retrieval.neighbours import Neighbour, neighbours_of
from retrieval.profile import Profile
from retrieval.profiles import profile_of
from retrieval.queries import page_of
from retrieval.query_outcome import Outcome, Prepared
from retrieval.query_repository import StoredQuery
from retrieval.query_trace import LATE, late_rewrite, trace_of
from retrieval.ranking import Ranking, rank
from retrieval.recall_store import keep_question
from retrieval.search_page import search_page, search_payload
from retrieval.source_dates import too_old
from retrieval.tier_metrics import TIER_METRICS
from retrieval.whole_question import whole_question

log = logging.getLogger(__name__)

_SETTLED = 5  # places of an answer's evidence whose order is settled before the rerank may end
_SEARCH_STREAM_TTL_S = 120  # a search's stream holds passages; nobody reads it once the door has answered


@get_app().task(name=Task.RERANK.value)
def rerank(job_id: str) -> None:
    """Celery's entry."""
    run_job(job_id, rerank_query)


@signals.worker_init.connect
def _preload(**_: object) -> None:
    if worker_name() == "retrieval":
        from ingest.encode import get_encoder
        from retrieval.follow import follow
        from retrieval.tiers import get_reader

        get_encoder(get_reader().snapshot().model).encode_query("warm up")
        follow(get_reader())
        configured_reranker()
        answer_evenly()


def rerank_query(run: JobRun) -> None:
    """Do one query; the run's subject."""
    with run.db.read() as session:
        query = query_repository.get_query(session, run.subject_id)
        plan = query_repository.engine_plan(session)
        profile = profile_of(session, query.tenant_id, query.collection_ids, get_settings().retrieval)
    if AnswerStatus(query.status).terminal:
        return
    if query.cancel_requested:
        _end_cancelled(run, query.id)
        return
    asked = whole_question(run.db, query.tenant_id, query.question, query.history)
    prepared = Prepared(query, _scope(query), asked, plan, profile)
    from retrieval.tiers import get_reader
    from retrieval.vector_pages import follow_plan

    follow_plan((plan or {}).get("vector_page_bytes"))
    ranking = rank(
        run.db,
        get_reader(),
        prepared.scope,
        text=prepared.asked.text,
        filters=parse_filters(query.filters),
        wanted=sum(page_of(query.options)) if query.task == "search" else profile.profile.max_evidence,
        profile=profile.profile,
        plan=plan_of(query, profile.profile, get_settings().retrieval),
        variants=query.variants,
    )
    _count(ranking, query.task)
    if query.task == "search":
        outcome = search_page(prepared, ranking)
    else:
        outcome = choose_evidence(
            prepared, ranking, _neighbours(run.db, prepared), old=_too_old(run.db, prepared, ranking)
        )
    _finish(run, prepared, outcome)
    TIER_METRICS.tell(get_reader().snapshot().tiers)


def plan_of(query: StoredQuery, profile: Profile, settings: RetrievalSettings) -> Plan:
    """How far the rerank of a query goes: a search settles its page, an answer its first five passages."""
    budget_s = settings.rerank_budget_ms / 1000
    if query.task == "search":
        shown = sum(page_of(query.options))
        return Plan(budget_s, settle=shown if settings.early_exit else 0)
    settle = min(_SETTLED, profile.max_evidence) if settings.early_exit else 0
    depth = query.policy.get("depth") or settings.depth
    threshold = query.policy.get("refusal_threshold")
    routed = query.task == "answer"
    return Plan(
        budget_s,
        settle=settle,
        least=profile.max_evidence,
        price=settings.depth_price if routed and depth == AUTO else 0.0,
        threshold=settings.refusal_threshold if threshold is None else threshold,
        forced=Depth(depth) if routed and depth not in (AUTO, Depth.FULL) else None,
    )


def _too_old(db: Database, prepared: Prepared, ranking: Ranking) -> frozenset[int]:
    """Passages that the policy's age of sources leaves out, before others are chosen in their place."""
    age: int | None = (prepared.query.policy.get("sources") or {}).get("max_age_days")
    if age is None:
        return frozenset()
    with db.read() as session:
        ranked = [r.stored for r in ranking.ranked]
        return too_old(session, prepared.scope, ranked, max_age_days=age, today=utcnow().date())


def _neighbours(db: Database, prepared: Prepared) -> FindNeighbours | None:
    reach = get_settings().retrieval.neighbours
    if not reach:
        return None

    def find(anchors: Sequence[Passage]) -> Sequence[Neighbour]:
        with db.read() as session:
            filters = parse_filters(prepared.query.filters)
            return neighbours_of(session, prepared.scope, anchors, filters, reach=reach)

    return find


def _count(ranking: Ranking, task: str) -> None:
    RERANK_READ.labels("settled" if ranking.reading.settled else "whole").observe(len(ranking.reading.scored))
    if task == "answer":
        ANSWER_DEPTH.labels(ranking.reading.depth.value).inc()


def _scope(query: StoredQuery) -> Scope:
    """The query's own scope: it was checked against its key's when the query was stored."""
    return Scope.internal(query.tenant_id).narrowed(query.collection_ids)


def _end_cancelled(run: JobRun, query_id: str) -> None:
    with run.finish(JobStatus.CANCELLED) as session:
        ended = query_repository.end_query(session, query_id, AnswerStatus.CANCELLED)
    if ended:
        _publish(query_id, "done", {"status": AnswerStatus.CANCELLED.value})


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
    if (kind := late_rewrite(query)) and status is not AnswerStatus.CANCELLED:
        REWRITES.labels(kind, LATE).inc()
    if not status.terminal:
        return
    if status is AnswerStatus.ANSWERED:
        _publish(query.id, "search", search_payload(prepared, outcome))
    _publish(query.id, "done", {"status": status.value})
    _shorten_stream(query.id)


def _store(session: Session, run: JobRun, prepared: Prepared, outcome: Outcome) -> AnswerStatus:
    store_tokens(session, outcome.ranking.model, list(outcome.ranking.reading.made.items()))
    search = prepared.query.task == "search"
    query_repository.store_ranking(
        session,
        prepared.query.id,
        status=AnswerStatus.ANSWERED if search else AnswerStatus.RUNNING,
        trace=trace_of(prepared, outcome),
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
        gives_way=run.gives_way,
    )
    return AnswerStatus.RUNNING


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
