"""Celery tasks of the index: index, unindex, rebuild. The rerank task stands in `rerank_task.py`.

The index worker is the only regular writer; the maintenance worker takes the same lease for the swap of a
build. Heavy libraries are imported inside the functions.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from celery import signals
from celery.exceptions import WorkerShutdown

from core.errors import ConfigError, LeaseLost, TransientError
from core.jobs import JobRun, add_job, run_job, waiting_jobs
from core.settings import get_settings
from core.types import BuildStatus, JobStatus, Tier
from core.worker import Task, get_app, next_stage, worker_name
from retrieval import builds, rerank_task, tier_repository
from retrieval import index_repository as repository

if TYPE_CHECKING:
    from core.db import Database
    from retrieval.writer import IndexWriter, VectorSpace

__all__ = ["index", "rebuild", "rerank_task", "unindex"]

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


@get_app().task(name=Task.REBUILD.value)
def rebuild(job_id: str) -> None:
    """Build the next generation of a tier, or go back to the one before."""
    run_job(job_id, run_build)


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


def check_encoder(db: Database) -> None:
    """Compare the encoder with what the hot tier holds.

    Raises:
        ConfigError: another model or width; the detail names both.
    """
    from retrieval.manifest import Manifest
    from retrieval.writer import check_space

    with db.read() as session:
        state = tier_repository.tier_state(session, Tier.HOT.value)
    if state.dimension:
        check_space(Manifest(model=state.model, dimension=state.dimension), _own_space())


def _warm_up(db: Database) -> None:
    from ingest.encode import encode_passages
    from retrieval.writer import index_writer

    encode_passages(["warm up"])
    try:
        with index_writer(db, _own_space()) as writer:
            _catch_up(writer)
    except (TransientError, LeaseLost) as error:  # the first job will do it
        log.warning("catch_up_failed", extra={"detail": error.detail})


# -- index -------------------------------------------------------------------------------------


def index_jobs(db: Database, job_id: str) -> None:
    """Encode, publish and bring to life what this job and all that wait with it stand for."""
    from celery.worker import state

    from ingest.encode import encode_passages
    from retrieval.index_jobs import IndexJobs

    def unindex_waiting() -> None:
        for waiting in waiting_jobs(db, Task.UNINDEX, _DELETES_A_ROUND):
            run_job(waiting, unindex_document, db=db)

    IndexJobs(
        db,
        _own_space(),
        encode_passages,
        _catch_up,
        stopping=lambda: (
            state.should_stop not in (None, False) or state.should_terminate not in (None, False)
        ),
        between=unindex_waiting,
    ).run(job_id)


# -- unindex -----------------------------------------------------------------------------------


def unindex_document(run: JobRun) -> None:
    """Tombstone every passage the document ever had in the index, then add the purge."""
    from retrieval.writer import index_writer

    with index_writer(run.db, _space(run.db)) as writer:
        with run.db.write() as session:
            ids = repository.document_passages(session, run.subject_id)
            ids |= repository.logged_ids(session, run.subject_id)
            if ids:
                writer.append(session, "delete", run.subject_id, run.subject_version, sorted(ids))
        _catch_up(writer)
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


# -- rebuild -----------------------------------------------------------------------------------


def run_build(run: JobRun) -> None:
    """Do one build; its outcome and the job's end commit together."""
    from retrieval.rebuild import BuildCancelled

    with run.db.write() as session:
        build = builds.start_build(session, run.subject_id)
    if build is None:
        return
    stats: dict[str, Any] = {}
    try:
        if build.mode == builds.ROLLBACK:
            status, generation = BuildStatus.ROLLED_BACK, _roll_back(run)
        else:
            status, generation = BuildStatus.PUBLISHED, _rebuild(run, stats)
    except BuildCancelled:
        with run.finish(JobStatus.CANCELLED) as session:
            builds.end_build(session, build.id, BuildStatus.CANCELLED, to_generation=None, stats=stats)
        return
    with run.finish() as session:
        builds.end_build(session, build.id, status, to_generation=generation, stats=stats)


def _rebuild(run: JobRun, stats: dict[str, Any]) -> int:
    from ingest.encode import encode_passages
    from retrieval.manifest import IndexFolder
    from retrieval.rebuild import Builder
    from retrieval.rebuild import rebuild as build_and_swap

    builder = Builder(
        run.db,
        IndexFolder(get_settings().index_dir),
        _space(run.db),
        run.subject_id,
        encode_passages,
        run.progress,
        lambda: run.cancelled,
        stats,
    )
    return build_and_swap(builder).generation


def _roll_back(run: JobRun) -> int:
    from retrieval.rebuild import roll_back
    from retrieval.writer import index_writer

    with index_writer(run.db, _space(run.db)) as writer:
        return roll_back(writer).generation


# -- shared ------------------------------------------------------------------------------------


def _catch_up(writer: IndexWriter) -> None:
    """Publish what the log holds; damaged files are rebuilt on the spot, which includes the log."""
    from ingest.encode import encode_passages
    from retrieval.files import DamagedIndex
    from retrieval.rebuild import repair

    try:
        writer.catch_up()
    except DamagedIndex as error:
        log.error("index_damaged", extra={"detail": error.detail})
        repair(writer, encode_passages)
        writer.catch_up()


def _own_space() -> VectorSpace:
    from ingest.encode import encoder_name, get_encoder
    from retrieval.writer import VectorSpace

    return VectorSpace(encoder_name(), get_encoder().dimension)


def _space(db: Database) -> VectorSpace:
    """The configured encoder and its width, without loading it when the tier knows the width."""
    from retrieval.writer import VectorSpace

    model = get_settings().packs.encoder
    with db.read() as session:
        state = tier_repository.tier_state(session, Tier.HOT.value)
    if state.model == model and state.dimension:
        return VectorSpace(model, state.dimension)
    return _own_space()
