"""The engine inside the generation worker: started in the background, watched, stopped in order.

`extract` answers are served while it starts; `free` waits for it. A start that fails is tried again with
growing gaps; a running engine that dies ends the worker non-zero, so that the supervisor starts a new one.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from redis.client import PubSub
from redis.exceptions import RedisError

from core.db import get_database
from core.errors import ConfigError, GeoError, PermanentError
from core.metrics import KV_USED_SHARE
from core.packs import pack_path
from core.redis_client import get_redis
from core.settings import get_settings
from core.streams import CANCEL_CHANNEL
from core.types import EnginePlan
from generation import repository
from generation.engine import Engine, LocalEngine, end_orphans
from generation.plan_pack import plan_for, this_machine
from generation.pressure import Promises
from generation.prompt_book import PromptBook
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
        die: ends the process when the engine died (tests pass their own).
    """

    def __init__(self, start: StartEngine, *, die: Callable[[int], None] = os._exit) -> None:
        self._start_engine, self._die = start, die
        self._engine: Engine | None = None
        self._ready = threading.Event()
        self._stopping = threading.Event()
        self.state, self.detail = "starting", ""
        self._published: EnginePlan | None = None
        self.active = 0  # answers that use the engine now
        self.prompts, self.promises = PromptBook(), Promises()
        self.kv_used_share = 0.0  # as the herald last saw it
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the engine and its herald in background threads."""
        threading.Thread(target=self._bring_up, name="engine-start", daemon=True).start()
        threading.Thread(target=self._herald, name="engine-herald", daemon=True).start()

    def wait_ready(self, deadline: float, *, stop: Callable[[], bool] = lambda: False) -> Engine:
        """The engine, as soon as it is up.

        Args:
            deadline: `time.monotonic()` value.
            stop: asked every half second; True gives up (the answer was cancelled).

        Raises:
            EngineNotReady: it is not up at the deadline; the detail has the reason.
        """
        while not self._ready.wait(timeout=max(0.0, min(0.5, deadline - time.monotonic()))):
            if time.monotonic() >= deadline or stop() or self._stopping.is_set():
                raise EngineNotReady(f"The generation engine is {self.state}. {self.detail}".strip())
        assert self._engine is not None
        return self._engine

    @property
    def plan(self) -> EnginePlan | None:
        """The running engine's plan."""
        return self._engine.planned.plan if self._engine else None

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

    def _bring_up(self) -> None:
        for attempt in range(10_000):
            begun = time.monotonic()
            try:
                engine = self._start_engine()
            except GeoError as error:
                self.state, self.detail = "failed", error.detail
                log.exception("engine_start_failed", extra={"attempt": attempt + 1})
                if isinstance(error, ConfigError):
                    return  # the settings must change; extract answers go on
                if self._stopping.wait(_RETRY_S[min(attempt, len(_RETRY_S) - 1)]):
                    return
                self.state = "starting"
                continue
            if self._stopping.is_set():
                engine.close()
                return
            self._engine, self.state, self.detail = engine, "ready", ""
            self._ready.set()
            log.info("engine_ready", extra={"seconds": round(time.monotonic() - begun, 1)})
            return

    def _herald(self) -> None:
        """Tell the others every two seconds how the engine is; notice its death."""
        while not self._stopping.wait(_HERALD_S if self._engine else 0.5):
            engine = self._engine
            if engine is not None and engine.dead:
                self._end_worker()
                return
            try:
                self._tell(engine)
            except (RedisError, GeoError):
                log.warning("engine_state_not_published", exc_info=True)

    def _tell(self, engine: Engine | None) -> None:
        live: dict[str, object] = {"state": self.state, "detail": self.detail, "at": time.time()}
        if engine is not None:
            load = engine.load()
            self.kv_used_share = load.kv_used_share
            KV_USED_SHARE.set(load.kv_used_share)
            free = round(1.0 - load.kv_used_share, 4)
            live |= {"kv_free_share": free, "running": load.running, "waiting": load.waiting}
            self._publish_plan(replace(engine.planned.plan, kv_free_share=free))
        get_redis().set(ENGINE_KEY, json.dumps(live), ex=_LIVE_TTL_S)

    def _publish_plan(self, plan: EnginePlan) -> None:
        last = self._published
        if last is not None and abs(last.kv_free_share - plan.kv_free_share) < _SHARE_STEP:
            return
        with get_database().write() as session:
            repository.publish_plan(session, plan)
        self._published = plan

    def _end_worker(self) -> None:
        self.state, self.detail = "failed", "the engine process died"
        log.error("engine_dead", extra={"exit_code": EXIT_ENGINE_DEAD})
        self._ready.clear()
        end = time.monotonic() + _SETTLE_S
        while self.active and time.monotonic() < end:
            time.sleep(0.05)
        self._die(EXIT_ENGINE_DEAD)

    def __enter__(self) -> EngineRuntime:
        """Count one answer that uses the engine."""
        with self._lock:
            self.active += 1
        return self

    def __exit__(self, *_: object) -> None:
        """Count it off."""
        with self._lock:
            self.active -= 1


class CancelWatch:
    """One subscriber thread per worker; calls back when a query that runs here is cancelled."""

    def __init__(self) -> None:
        self._callbacks: dict[str, Callable[[], None]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, query_id: str, callback: Callable[[], None]) -> None:
        """Call `callback` (from the watch's thread) when `query_id` is cancelled."""
        with self._lock:
            self._callbacks[query_id] = callback
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._listen, name="cancel-watch", daemon=True)
                self._thread.start()

    def remove(self, query_id: str) -> None:
        """Forget a query."""
        with self._lock:
            self._callbacks.pop(query_id, None)

    def _listen(self) -> None:
        client = get_redis()  # held: its connections close with it
        while True:
            try:
                with client.pubsub(ignore_subscribe_messages=True) as channel:
                    channel.subscribe(CANCEL_CHANNEL)
                    self._receive(channel)
            except (RedisError, OSError):
                # Rows are looked at as well, so a cancel during an outage is only slower.
                log.warning("cancel_watch_reconnects")
                time.sleep(1.0)

    def _receive(self, channel: PubSub) -> None:
        while True:
            message = channel.get_message(timeout=30.0)
            if message is None:
                continue
            with self._lock:
                callback = self._callbacks.get(str(message["data"]))
            if callback is not None:
                callback()


def configured_engine() -> Engine:
    """The engine that the settings name: in this process, or an existing server.

    Raises:
        ConfigError: the pack is missing or cannot run here.
        TransientError: it did not start.
    """
    settings = get_settings()
    if settings.generation.engine_url:
        from generation.engine_remote import RemoteEngine

        return RemoteEngine(settings.generation, model=settings.packs.generator)
    if orphans := end_orphans():
        log.warning("engine_orphans_ended", extra={"processes": orphans})
    pack = generator_pack()
    machine = this_machine()
    planned = plan_for(pack, settings.generation, machine, name=settings.packs.generator)
    for note in planned.notes:
        log.warning("engine_plan_note", extra={"note": note})
    return LocalEngine(pack, planned, device=machine.device)


def generator_pack() -> Path:
    """Folder of the generator's model.

    Raises:
        ConfigError: it was not fetched.
    """
    return pack_path(get_settings().packs.generator)
