"""Celery tasks of the index writer: index, unindex, place. Builds stand in `build_task.py`.

The index worker is the only regular writer; the maintenance worker takes the same lease for the swap of a
build. Heavy libraries are imported inside the functions.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from celery import signals
from celery.exceptions import WorkerShutdown

from core.errors import ConfigError, LeaseLost, TransientError
from core.jobs import JobRun, add_job, run_job, waiting_jobs
from core.worker import Task, get_app, next_stage, worker_name
from retrieval import build_task, rerank_task
from retrieval import index_repository as repository
from retrieval.served import check_encoder, served_space

if TYPE_CHECKING:
    from core.db import Database

__all__ = ["build_task", "index", "place", "rerank_task", "unindex"]

log = logging.getLogger(__name__)
_DELETES_A_ROUND = 8


@get_app().task(name=Task.INDEX.value)
def index(job_id: str) -> None:
    """Passages → vectors, published; the version goes live and the one before it leaves.

    The jobs that wait with this one are done with it, and their own messages then find nothing to do.
    """
    from core.db import get_database

    index_jobs(get_database(), job_id)


@get_app().task(name=Task.UNINDEX.value)
def unindex(job_id: str) -> None:
    """Take a document out of every index, then have its rows purged."""
    run_job(job_id, unindex_document)


@get_app().task(name=Task.PLACE.value)
def place(job_id: str) -> None:
    """Move documents to the tiers they are wanted in."""
    run_job(job_id, move_documents)


@signals.worker_init.connect
def _start(**_: object) -> None:
    """Refuse a wrong encoder; in the index worker, load it and finish what a killed writer left.

    Celery logs what a handler raises and goes on, so a refusal ends the process itself.
    """
    if worker_name() not in ("index", "retrieval"):
        return
    from core.db import get_database

    try:
        check_encoder(get_database())
        if worker_name() == "index":
            _warm_up(get_database())
    except ConfigError as error:
        log.critical("worker_refused", extra={"detail": error.detail})
        raise WorkerShutdown(1) from error


def _warm_up(db: Database) -> None:
    from retrieval.writer import index_writer

    try:
        with index_writer(db) as writer:
            writer.catch_up()
    except (TransientError, LeaseLost) as error:  # the first job will do it
        log.warning("catch_up_failed", extra={"detail": error.detail})


# -- index -------------------------------------------------------------------------------------


def index_jobs(db: Database, job_id: str) -> None:
    """Encode, publish and bring to life what this job and all that wait with it stand for."""
    from celery.worker import state

    from retrieval.embed import encode_for_index
    from retrieval.index_jobs import IndexJobs

    def unindex_waiting() -> None:
        for waiting in waiting_jobs(db, Task.UNINDEX, _DELETES_A_ROUND):
            run_job(waiting, unindex_document, db=db)

    IndexJobs(
        db,
        lambda: served_space(db),
        lambda model, texts: encode_for_index(texts, model),
        stopping=lambda: (
            state.should_stop not in (None, False) or state.should_terminate not in (None, False)
        ),
        between=unindex_waiting,
    ).run(job_id)


# -- unindex -----------------------------------------------------------------------------------


def unindex_document(run: JobRun) -> None:
    """Tombstone every passage the document ever had in the index, then add the purge."""
    from retrieval.writer import index_writer

    with index_writer(run.db) as writer:
        with run.db.write() as session:
            ids = repository.document_passages(session, run.subject_id)
            ids |= repository.logged_ids(session, run.subject_id)
            if ids:
                writer.append(session, "delete", run.subject_id, run.subject_version, sorted(ids))
        writer.catch_up()
    following = next_stage(run.task)
    with run.finish() as session:
        if following is not None:
            add_job(
                session,
                following,
                tenant_id=run.tenant_id,
                subject_kind="document",
                subject_id=run.subject_id,
                subject_version=run.subject_version,
                attempt_key=run.attempt_key,
                gives_way=run.gives_way,
            )


# -- place -------------------------------------------------------------------------------------


def move_documents(run: JobRun) -> None:
    """Move a batch of documents to the tiers they are wanted in; the rest is another job's."""
    from retrieval import placing, placing_job
    from retrieval.writer import index_writer

    with index_writer(run.db) as writer:
        more = placing_job.move_wanted(writer)
    with run.finish() as session:
        if more:
            placing.ring(session)
