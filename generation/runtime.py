"""The engine inside the generation worker: started in the background, watched, stopped in order.

`extract` answers are served while it starts; the others wait for it. A start that fails is tried again with
growing gaps. A running engine that dies, or that is silent while it has work, ends the worker non-zero, so
that the supervisor starts a new one; whoever asks for the state is told why.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from redis.exceptions import RedisError

from core.db import get_database
from core.errors import ConfigError, DeadlineExceeded, GeoError, PermanentError
from core.jobs import waiting_jobs
from core.metrics import ENGINE_PREEMPTIONS, ENGINE_REQUESTS, ENGINE_RESTARTS, KV_USED_SHARE
from core.redis_client import get_redis
from core.settings import get_settings
from core.types import EnginePlan
from core.worker import Task, send_job
from generation import repository
from generation.engine_losses import loss_told, note_loss
from generation.listwise_check import ListwiseGate
from generation.pressure import Promises
from generation.prompt_book import PromptBook
from generation.requests import Cancelled, Engine, HandBack
from generation.service import ENGINE_KEY

log = logging.getLogger(__name__)

EXIT_ENGINE_DEAD = 75  # EX_TEMPFAIL: start me again
_HERALD_S = 2.0
_LIVE_TTL_S = 15
_RETRY_S = (10.0, 30.0, 60.0, 300.0)
_SHARE_STEP = 0.05  # the plan row is written anew when the free share moved by this much
_SETTLE_S = 5.0  # time for tasks to put their jobs back before a dead engine's worker ends

StartEngine = Callable[[], Engine]


class EngineNotReady(PermanentError):
    """The engine did not come up within the answer's deadline."""

    code = "engine_not_ready"
    title = "The generation engine is not ready"
    status = 503


class EngineRuntime:
    """One per worker process.

    Args:
        start: makes the engine; may take a minute.
        die: ends the process when the engine is lost (tests pass their own).
    """

    def __init__(self, start: StartEngine, *, die: Callable[[int], None] = os._exit) -> None:
        settings = get_settings()
        self._start_engine, self._die = start, die
        self._settings = settings.generation
        self._engine: Engine | None = None
        self._ready = threading.Event()
        self._stopping = threading.Event()
        self.state, self.detail = "starting", ""
        self._hopeless = False  # the settings must change before it can start
        self._published: EnginePlan | None = None
        self.active = 0  # answers that use the engine now
        self.prompts, self.promises, self.listwise = PromptBook(), Promises(), ListwiseGate()
        self.kv_used_share = 0.0  # as the herald last saw it
        self.handing_back = False
        self.on_ready: Callable[[], None] = lambda: None  # called before the first answer uses the engine
        self.on_busy: Callable[[], None] = lambda: None  # called when an answer begins to use the engine
        self._lock = threading.Lock()
        # Half of the threads may wait for the engine; the others go on with answers that do not need it.
        self._may_wait = threading.Semaphore(max(1, settings.worker.generation_threads // 2))
        self._proved_at, self._proving, self._hangs = time.monotonic(), False, False
        self._preemptions = 0

    def start(self) -> None:
        """Start the engine and its herald in background threads."""
        self.detail = loss_told()
        threading.Thread(target=self._bring_up, name="engine-start", daemon=True).start()
        threading.Thread(target=self._herald, name="engine-herald", daemon=True).start()

    def wait_ready(self, deadline: float, *, stop: Callable[[], bool] = lambda: False) -> Engine:
        """The engine, as soon as it is up.

        Args:
            deadline: `time.monotonic()` value.
            stop: asked every half second; True gives up (the answer was cancelled).

        Raises:
            Cancelled: `stop` said so.
            HandBack: this process is being stopped, or enough answers wait already.
            EngineNotReady: it is not up at the deadline, or cannot be; the detail has the reason.
        """
        if not self._ready.is_set():
            if not self._may_wait.acquire(blocking=False):
                raise HandBack("enough answers wait for the engine here")
            try:
                self._wait(deadline, stop)
            finally:
                self._may_wait.release()
        assert self._engine is not None
        return self._engine

    def _wait(self, deadline: float, stop: Callable[[], bool]) -> None:
        while not self._ready.wait(timeout=max(0.0, min(0.5, deadline - time.monotonic()))):
            if stop():
                raise Cancelled
            if self._stopping.is_set():
                raise HandBack("the worker stops")
            if self._hopeless or time.monotonic() >= deadline:
                raise EngineNotReady(f"The generation engine is {self.state}. {self.detail}".strip())

    @property
    def engine(self) -> Engine | None:
        """The engine, once it is up."""
        return self._engine if self._ready.is_set() else None

    @property
    def plan(self) -> EnginePlan | None:
        """The running engine's plan."""
        return self._engine.planned.plan if self._engine else None

    # -- the end -------------------------------------------------------------------------------

    def begin_stop(self, abort_all: Callable[[], None]) -> None:
        """The process was asked to stop: answers may end within `drain_s`, the others are handed back.

        Args:
            abort_all: aborts every answer that runs here.
        """
        self._stopping.set()

        def hand_back() -> None:
            self.handing_back = True
            log.info("answers_handed_back", extra={"answers": self.active})
            abort_all()

        timer = threading.Timer(self._settings.drain_s, hand_back)
        timer.daemon = True
        timer.start()

    def stop(self) -> None:
        """Stop the engine in order: no new work, abort, core, loop."""
        self._stopping.set()
        engine = self._engine
        self._ready.clear()
        if engine is not None:
            engine.close()
        try:
            get_redis().delete(ENGINE_KEY)
        except RedisError:
            log.debug("engine_key_not_deleted", exc_info=True)

    # -- the start -----------------------------------------------------------------------------

    def _bring_up(self) -> None:
        for attempt in range(10_000):
            begun = time.monotonic()
            try:
                engine = self._start_engine()
            except GeoError as error:
                self._hopeless = isinstance(error, ConfigError)  # extract answers go on
                self.state, self.detail = "failed", error.detail
                ENGINE_RESTARTS.labels("not_started").inc()
                log.exception("engine_start_failed", extra={"attempt": attempt + 1})
                if self._hopeless or self._stopping.wait(_RETRY_S[min(attempt, len(_RETRY_S) - 1)]):
                    return
                self.state, self.detail = "starting", f"The last start failed: {error.detail}"
                continue
            if self._stopping.is_set():
                engine.close()
                return
            self._engine, self.state, self.detail = engine, "ready", ""
            self._proved_at = time.monotonic()
            self.on_ready()
            self._ready.set()
            log.info("engine_ready", extra={"seconds": round(time.monotonic() - begun, 1)})
            self._ring_waiting()
            return

    def _ring_waiting(self) -> None:
        """What waits in the database does not wait for the reaper as well."""
        try:
            for job_id in waiting_jobs(get_database(), Task.ANSWER, get_settings().worker.generation_threads):
                send_job(Task.ANSWER.value, job_id)
        except Exception:  # the broker or the database is away: the reaper rings
            log.warning("waiting_answers_not_rung", exc_info=True)

    # -- the watch -----------------------------------------------------------------------------

    def _herald(self) -> None:
        """Tell the others every two seconds how the engine is; notice its loss."""
        while not self._stopping.wait(_HERALD_S if self._engine else 0.5):
            engine = self._engine
            lost = self._lost(engine) if engine is not None else ""
            if engine is not None and lost:
                self._end_worker(engine, lost)
                return
            try:
                self._tell(engine)
            except (RedisError, GeoError):
                log.warning("engine_state_not_published", exc_info=True)

    def _lost(self, engine: Engine) -> str:
        """`died`, `hung` or empty. An idle engine is asked for a token now and then."""
        if engine.dead:
            return "died"
        if self._hangs or engine.silent_s() > self._settings.hang_after_s:
            return "hung"
        if self.active:
            self._proved_at = time.monotonic()
        elif not self._proving and time.monotonic() - self._proved_at >= self._settings.canary_idle_s:
            self._proving = True
            threading.Thread(target=self._prove, args=(engine,), name="engine-canary", daemon=True).start()
        return ""

    def _prove(self, engine: Engine) -> None:
        try:
            engine.prove(self._settings.hang_after_s)
        except DeadlineExceeded:
            self._hangs = True
        except (GeoError, Cancelled):
            log.warning("engine_canary_failed", exc_info=True)
        self._proved_at, self._proving = time.monotonic(), False

    def _tell(self, engine: Engine | None) -> None:
        live: dict[str, object] = {"state": self.state, "detail": self.detail, "at": time.time()}
        if engine is not None:
            live["detail"] = engine.complaint()
            load = engine.load()
            self.kv_used_share = load.kv_used_share
            KV_USED_SHARE.set(load.kv_used_share)
            ENGINE_REQUESTS.labels("running").set(load.running)
            ENGINE_REQUESTS.labels("waiting").set(load.waiting)
            ENGINE_PREEMPTIONS.inc(max(0, load.preemptions - self._preemptions))
            self._preemptions = load.preemptions
            free = round(1.0 - load.kv_used_share, 4)
            live |= {"kv_free_share": free, "running": load.running, "waiting": load.waiting}
            self._publish_plan(_with_blocks(engine.planned.plan, load.kv_tokens, free))
        get_redis().set(ENGINE_KEY, json.dumps(live), ex=_LIVE_TTL_S)

    def _publish_plan(self, plan: EnginePlan) -> None:
        last = self._published
        if (
            last is not None
            and last.kv_blocks == plan.kv_blocks
            and abs(last.kv_free_share - plan.kv_free_share) < _SHARE_STEP
        ):
            return
        with get_database().write() as session:
            repository.publish_plan(session, plan)
        self._published = plan

    def _end_worker(self, engine: Engine, why: str) -> None:
        self.state, self.detail = "failed", f"The engine {why}."
        log.error("engine_lost", extra={"why": why, "exit_code": EXIT_ENGINE_DEAD})
        ENGINE_RESTARTS.labels(why).inc()
        self._ready.clear()
        engine.kill()
        note_loss(why)
        try:
            self._tell(None)
        except (RedisError, GeoError):
            log.warning("engine_state_not_published", exc_info=True)
        end = time.monotonic() + _SETTLE_S
        while self.active and time.monotonic() < end:
            time.sleep(0.05)
        self._die(EXIT_ENGINE_DEAD)

    def __enter__(self) -> EngineRuntime:
        """Count one answer that uses the engine."""
        with self._lock:
            self.active += 1
        self.on_busy()
        return self

    def __exit__(self, *_: object) -> None:
        """Count it off."""
        with self._lock:
            self.active -= 1


def _with_blocks(plan: EnginePlan, kv_tokens: int, free: float) -> EnginePlan:
    """The plan with what is free now; servers tell how many blocks they have."""
    blocks = kv_tokens // plan.block_size if kv_tokens else plan.kv_blocks
    return replace(plan, kv_blocks=blocks, kv_free_share=free)
