"""The answer task, and the generation worker's start and stop.

Runs in a threads pool: many answers at once, one engine. No database session is open while tokens flow.
"""

from __future__ import annotations

import logging
import time
from functools import lru_cache

import redis
from celery import signals

from core.db import get_database, utcnow
from core.errors import QuestionTooLate
from core.jobs import JobRun, run_job
from core.metrics import QUEUE_SECONDS
from core.redis_client import get_redis
from core.settings import get_settings
from core.steady import answer_evenly
from core.types import AnswerStatus, Scope
from core.worker import Task, get_app, worker_name
from generation import repository
from generation.batch_room import BatchRoom
from generation.cancels import CancelWatch
from generation.configured import configured_engine
from generation.publisher import GATHER_S, Publisher
from generation.requests import Cancelled, HandBack
from generation.rewriting import rewrite_query
from generation.runtime import EngineRuntime
from generation.sources import document_facts
from generation.stream import EventWriter, done_payload
from generation.summarize import MAX_PASSAGES, document_of
from generation.summary_repository import document_evidence, document_length, replace_evidence
from generation.summary_writer import SummaryWriter
from generation.warmer import Warmer
from generation.write import AnswerWriter
from ingest.service import erase_deleted_sources
from retrieval.filters import parse_filters

log = logging.getLogger(__name__)

CANCELS = CancelWatch()


@lru_cache(maxsize=1)
def get_runtime() -> EngineRuntime:
    """The process's engine runtime, not started."""
    return EngineRuntime(configured_engine)


@lru_cache(maxsize=1)
def _warmer() -> Warmer:
    return Warmer(get_runtime(), get_database(), openings=get_settings().generation.prewarm_openings)


@signals.worker_init.connect
def _start_engine(**_: object) -> None:
    if worker_name() == "generation":
        get_runtime().on_ready = answer_evenly
        get_runtime().start()
        _warmer().start()


@signals.worker_shutting_down.connect
def _drain_engine(**_: object) -> None:
    if worker_name() == "generation":
        get_runtime().begin_stop(CANCELS.call_all)


@signals.worker_shutdown.connect
def _stop_engine(**_: object) -> None:
    # After the pool has drained; the core must not go before the answers that wait for it.
    if worker_name() == "generation":
        _warmer().stop()
        get_runtime().stop()


@lru_cache(maxsize=1)
def _publisher(client: redis.Redis) -> Publisher:
    """The process's publisher."""
    return Publisher(client, gather_s=GATHER_S)


@lru_cache(maxsize=1)
def get_batch_room() -> BatchRoom:
    """What batch answers may take of this process."""
    return BatchRoom(get_settings().worker.generation_batch_threads)


@get_app().task(name=Task.ANSWER.value)
def answer(job_id: str) -> None:
    """Write one query's answer."""
    with get_batch_room().place(get_database(), job_id) as free:
        if free:
            _answer(job_id)


@get_app().task(name=Task.REWRITE.value)
def rewrite(job_id: str) -> None:
    """Write what else one query is to search for."""
    run_job(job_id, lambda run: rewrite_query(run, get_runtime(), CANCELS))


def _answer(job_id: str) -> None:
    runs: list[JobRun] = []

    def work(run: JobRun) -> None:
        runs.append(run)
        try:
            answer_query(run, get_runtime())
        except HandBack as reason:
            log.info("answer_handed_back", extra={"query_id": run.subject_id, "why": str(reason)})
            run.hand_back()

    run_job(job_id, work)
    for run in runs:
        if not run.finished:
            _tell_failure(run)


def answer_query(run: JobRun, runtime: EngineRuntime) -> None:
    """Load the evidence once, write and check the claims, store them, then say `done`."""
    begun = time.monotonic()
    scope = Scope.internal(run.tenant_id)
    with run.db.read() as session:
        state = repository.query_state(session, run.subject_id)
        summarized = document_of(dict(state.filters)) if state.task == "summarize" else None
        evidence = (
            document_evidence(
                session, scope.narrowed(state.collection_ids), summarized, parse_filters(state.filters)
            )
            if summarized is not None
            else repository.load_evidence(session, scope, run.subject_id)
        )
        unread = 0
        if summarized is not None and len(evidence) == MAX_PASSAGES:
            where, filters = scope.narrowed(state.collection_ids), parse_filters(state.filters)
            unread = document_length(session, where, summarized, filters) - MAX_PASSAGES
        documents = document_facts(session, scope, (e.passage.document_id for e in evidence))
    events = EventWriter(get_redis(), state.id, publisher=_publisher(get_redis()))
    if not state.status.terminal:
        if state.deadline_at is not None and utcnow() >= state.deadline_at:
            raise QuestionTooLate(query_id=state.id)
        QUEUE_SECONDS.labels(state.priority).observe((utcnow() - state.created_at).total_seconds())
        events.begin()
        if state.status is AnswerStatus.QUEUED:  # retrieval has marked the others
            with run.db.write() as session:
                repository.mark_running(session, state.id)
        writer = (SummaryWriter if summarized is not None else AnswerWriter)(
            state,
            evidence,
            events,
            runtime,
            CANCELS,
            run.db,
            settings=get_settings(),
            begun=begun,
            documents=documents,
            unread=unread,
        )
        try:
            outcome = writer.write()
        except Cancelled:  # before the engine was asked
            outcome = writer.cancelled()
        finally:
            events.close()
        if outcome.status is AnswerStatus.CANCELLED and runtime.handing_back:
            with run.db.read() as session:
                asked = repository.cancel_requested(session, state.id)
            if not asked:
                raise HandBack("the worker stops")
        passages = {e.passage.id: e.passage for e in evidence}
        with run.finish() as session:
            if repository.store_outcome(session, state.id, outcome, passages):
                if outcome.evidence is not None:
                    replace_evidence(session, state.id, outcome.evidence)
                erase_deleted_sources(session, state.id)
            told = repository.ending(session, scope, state.id)
    else:
        with run.finish() as session:  # a repeated run of an ended query changes nothing
            told = repository.ending(session, scope, state.id)
    events.done(done_payload(told))


def _tell_failure(run: JobRun) -> None:
    """A job that ended as failed has no other voice; one that will be retried stays silent."""
    with get_database().read() as session:
        view = repository.answer_view(session, Scope.internal(run.tenant_id), run.subject_id)
    if view.status is AnswerStatus.FAILED:
        EventWriter(get_redis(), run.subject_id).done(done_payload(view))
