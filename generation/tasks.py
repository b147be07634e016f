"""The answer task, and the generation worker's start and stop.

Runs in a threads pool: many answers at once, one engine. No database session is open while tokens flow.
"""

from __future__ import annotations

import logging
import time
from functools import lru_cache

from celery import signals

from core.db import get_database
from core.jobs import JobRun, run_job
from core.redis_client import get_redis
from core.settings import get_settings
from core.types import AnswerStatus, Scope
from core.worker import Task, get_app, worker_name
from generation import repository
from generation.runtime import CancelWatch, EngineRuntime, configured_engine
from generation.sources import document_facts
from generation.stream import EventWriter, done_payload
from generation.summarize import document_of
from generation.summary_repository import document_evidence, replace_evidence
from generation.summary_writer import SummaryWriter
from generation.write import AnswerWriter
from ingest.service import erase_deleted_sources

log = logging.getLogger(__name__)

CANCELS = CancelWatch()


@lru_cache(maxsize=1)
def get_runtime() -> EngineRuntime:
    """The process's engine runtime, not started."""
    return EngineRuntime(configured_engine)


@signals.worker_init.connect
def _start_engine(**_: object) -> None:
    if worker_name() == "generation":
        get_runtime().start()


@signals.worker_shutdown.connect
def _stop_engine(**_: object) -> None:
    # After the pool has drained; the core must not go before the answers that wait for it.
    if worker_name() == "generation":
        get_runtime().stop()


@get_app().task(name=Task.ANSWER.value)
def answer(job_id: str) -> None:
    """Write one query's answer."""
    runs: list[JobRun] = []

    def work(run: JobRun) -> None:
        runs.append(run)
        answer_query(run, get_runtime())

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
            document_evidence(session, scope.narrowed(state.collection_ids), summarized)
            if summarized is not None
            else repository.load_evidence(session, scope, run.subject_id)
        )
        documents = document_facts(session, scope, (e.passage.document_id for e in evidence))
    events = EventWriter(get_redis(), state.id)
    if not state.status.terminal:
        if run.attempt > 1:
            events.restart()
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
        )
        outcome = writer.write()
        passages = {e.passage.id: e.passage for e in evidence}
        with run.finish() as session:
            if repository.store_outcome(session, state.id, outcome, passages):
                if outcome.evidence is not None:
                    replace_evidence(session, state.id, outcome.evidence)
                erase_deleted_sources(session, state.id)
    else:
        with run.finish():
            pass  # a repeated run of an ended query changes nothing
    with run.db.read() as session:
        events.done(done_payload(repository.answer_view(session, scope, state.id)))


def _tell_failure(run: JobRun) -> None:
    """A job that ended as failed has no other voice; one that will be retried stays silent."""
    with get_database().read() as session:
        view = repository.answer_view(session, Scope.internal(run.tenant_id), run.subject_id)
    if view.status is AnswerStatus.FAILED:
        EventWriter(get_redis(), run.subject_id).done(done_payload(view))
