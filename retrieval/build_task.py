"""The rebuild task: one build from its job to its outcome, whatever stops it in between.

| ends by | files of the build | the build |
|---|---|---|
| publishing | in service | `published` or `rolled_back` |
| pause | kept | stays open, `paused` |
| stop of the worker, an outage, kill -9 | kept | stays open; the next attempt goes on |
| cancel, a check that fails | removed | `cancelled`, `failed`; what is served did not change |
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.errors import GeoError, LeaseLost, TransientError
from core.jobs import JobRun, run_job
from core.models import BuildRow
from core.retry import classify
from core.settings import get_settings
from core.types import BuildStatus, JobStatus
from core.worker import Task, get_app, worker_name
from retrieval import build_control
from retrieval.build_control import CANCEL, PAUSE
from retrieval.builds import ROLLBACK
from retrieval.manifest import PARTS, IndexFolder
from retrieval.served import VectorSpace, served_space, space_of
from retrieval.tier_status import ALL

if TYPE_CHECKING:
    from retrieval.build_files import BuildState
    from retrieval.build_gate import Encode as EncodeQuestions
    from retrieval.rebuild import Builder

_TOLD_EVERY_S = 0.5  # progress is a transaction; a build passes thousands of batches


class BuildStopped(GeoError):
    """The build ends here for now; `why` is `pause`, `cancel` or `shutdown`."""

    code = "build_stopped"
    title = "The build was stopped"

    def __init__(self, why: str) -> None:
        super().__init__(f"The build was stopped: {why}.")
        self.why = why


@get_app().task(name=Task.REBUILD.value)
def rebuild(job_id: str) -> None:
    """Build the next generation of a part of the index, or go back to an earlier one."""
    run_job(job_id, run_build)
    if worker_name() == "maintenance":
        _let_encoders_go()


def _let_encoders_go() -> None:
    """The maintenance worker encodes for a build alone; an encoder is 0.4 GB."""
    from ingest.encode import release_encoders

    release_encoders()


def run_build(run: JobRun) -> None:
    """Do one build, or as much of it as it is let; its outcome and the job's end commit together."""
    with run.db.write() as session:
        build = build_control.start_build(session, run.subject_id)
    if build is None:
        return
    builder = _builder(run, build)
    try:
        published = _built(builder)
    except BuildStopped as stop:
        _stopped(run, builder, stop)
        return
    except LeaseLost:  # the files are another attempt's now
        raise
    except Exception as error:
        if not isinstance(classify(error), TransientError):
            builder.files.discard()
        raise
    outcome = BuildStatus.ROLLED_BACK if build.mode == ROLLBACK else BuildStatus.PUBLISHED
    with run.finish() as session:
        build_control.end_build(session, build.id, outcome, to_generation=published, stats=builder.stats)
    if build.model:
        _forget_old_vectors(run)


def _built(builder: Builder) -> int:
    from retrieval.rebuild import run as build_and_swap

    return build_and_swap(builder).generation


def _builder(run: JobRun, build: BuildRow) -> Builder:
    from ingest.encode import get_encoder
    from retrieval.embed import encode_for_index
    from retrieval.rebuild import Builder, BuildPlan

    served = served_space(run.db)
    space = _space(build, served)

    def encode_questions(model: str) -> EncodeQuestions | None:
        """Loading an encoder is worth it when the build needs it anyway."""
        return get_encoder(model).encode_queries if build.model else None

    plan = BuildPlan(
        build.id,
        PARTS if build.tier == ALL else (build.tier,),
        build.mode,
        space,
        int(build.options.get("generation", 0)),
        bool(build.options.get("accept_moved", False)),
    )
    return Builder(
        run.db,
        IndexFolder(get_settings().index_dir),
        plan,
        lambda texts: encode_for_index(texts, space.model),
        encode_questions,
        _Steps(run, build.id),
    )


def _space(build: BuildRow, served: VectorSpace) -> VectorSpace:
    return space_of(build.model) if build.model else served


@dataclass(slots=True)
class _Steps:
    """Between batches: see whether the build is to stop, and tell how far it is."""

    run: JobRun
    build_id: str
    _begun: float = field(default_factory=time.monotonic)
    _begun_done: int | None = None
    _told: float = 0.0

    def __call__(self, state: BuildState, done: int, total: int) -> None:
        with self.run.db.read() as session:
            asked = build_control.asked_of(session, self.build_id)
        stop = asked or ("shutdown" if _stopping() else "")
        now = time.monotonic()
        if self._begun_done is None:
            self._begun_done = done
        if stop or now - self._told >= _TOLD_EVERY_S or done >= total:
            self._told = now
            state.stats["eta_s"] = self._eta_s(done, total, now)
            with self.run.db.write() as session:
                self.run.report(session, done, total)
                build_control.note_progress(session, self.build_id, seq=state.seq, stats=state.stats)
        if stop:
            raise BuildStopped(stop)

    def _eta_s(self, done: int, total: int, now: float) -> float | None:
        made = done - (self._begun_done or 0)
        if not made or done >= total:  # what is left then are checks, which nobody has timed
            return None
        return round((total - done) * (now - self._begun) / made, 1)


def _stopped(run: JobRun, builder: Builder, stop: BuildStopped) -> None:
    stats = builder.stats
    if stop.why == PAUSE:
        with run.finish() as session:
            build_control.keep_paused(session, run.subject_id, stats)
    elif stop.why == CANCEL:
        with run.finish(JobStatus.CANCELLED) as session:
            build_control.end_build(
                session, run.subject_id, BuildStatus.CANCELLED, to_generation=None, stats=stats
            )
        builder.files.discard()
    else:
        run.hand_back()


def _forget_old_vectors(run: JobRun) -> None:
    from retrieval.rebuild import forget_old_vectors

    forget_old_vectors(run.db, IndexFolder(get_settings().index_dir))


def _stopping() -> bool:
    from celery.worker import state

    asked: tuple[Any, ...] = (state.should_stop, state.should_terminate)
    return any(one not in (None, False) for one in asked)
