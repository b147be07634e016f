"""Runs the embedded stack: starts the processes in order, watches them, stops them in order."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import redis

from api.cli.embedded import guard, preflight
from api.cli.embedded.children import Child, ChildState
from api.cli.embedded.state import clear_state, log_dir, write_state
from core.canary import consumption_fault, ready_pid
from core.db import Database
from core.errors import GeoError
from core.settings import Settings
from core.worker import WORKERS
from generation.service import ENGINE_KEY

log = logging.getLogger(__name__)

_TICK_S = 0.2
_WATCH_S = 2.0  # how often slow checks run and the state file is renewed
_API_DEAF_S = 30.0  # an API that answers nothing for so long is started again
_STOP_GRACE_S = 30.0


class Supervisor:
    """One run of the stack.

    Args:
        settings: the stack's settings; `api.port` is a real port.
        tell: called with each sentence a person should read.
    """

    def __init__(self, settings: Settings, tell: Callable[[str], None]) -> None:
        self._settings = settings
        self._tell = tell
        self._stop = False
        self._guard = _start_guard()
        self._db = Database(settings.database_url, settings=settings)
        self._redis = redis.Redis.from_url(
            settings.redis_url, decode_responses=True, socket_timeout=2, socket_connect_timeout=2
        )
        self._broker = None if settings.redis.url else self._child_redis()
        self._workers = {name: self._child_worker(name) for name in WORKERS}
        self._api = self._child_api()
        self._told_ready = False
        self._watch_at = 0.0
        self._api_heard = 0.0

    @property
    def url(self) -> str:
        """Where the API answers."""
        host = self._settings.api.host
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
        return f"http://{host}:{self._settings.api.port}"

    def run(self) -> None:
        """Start everything, supervise until SIGINT or SIGTERM, stop everything."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        try:
            if self._broker is not None:
                self._broker.start()
                self._wait_for_broker(self._broker)
            for child in (*self._workers.values(), self._api):
                child.start()
            self._publish_state("starting")
            while not self._stop:
                self._tick()
                time.sleep(_TICK_S)
        finally:
            self._shut_down()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stop = True

    # -- watching --

    def _children(self) -> list[Child]:
        return [c for c in (self._broker, *self._workers.values(), self._api) if c is not None]

    def _tick(self) -> None:
        changed = False
        for child in self._children():
            before = (child.state, child.pid)
            sentence = child.tick()
            if sentence:
                self._tell(sentence)
            changed = changed or before != (child.state, child.pid)
        ready = all(c.state is ChildState.READY for c in self._children())
        if ready and not self._told_ready:
            self._told_ready = changed = True
            self._tell(f"geo is ready at {self.url}")
        if time.monotonic() >= self._watch_at:
            self._watch_at = time.monotonic() + _WATCH_S
            self._watch_consumption()
            self._watch_api()
            changed = True
        if changed:
            self._publish_state("ready" if ready else "starting")

    def _watch_consumption(self) -> None:
        broker_since = self._broker.started_at if self._broker else 0.0
        for name, child in self._workers.items():
            if child.state is not ChildState.READY:
                continue
            try:
                fault = consumption_fault(
                    self._db,
                    self._redis,
                    name,
                    since=max(child.ready_at, broker_since, self._rang_since(name)),
                )
            except (redis.RedisError, GeoError) as error:
                log.warning("consumption_check_failed", extra={"worker": name, "error": str(error)})
                continue
            if fault:
                self._tell(f"{fault}; starting it again")
                child.kill_stalled()

    def _rang_since(self, name: str) -> float:
        """Nobody rings while the maintenance worker is away, so its absence is held against it alone."""
        maintenance = self._workers["maintenance"]
        if name == "maintenance":
            return 0.0
        return maintenance.ready_at if maintenance.state is ChildState.READY else time.time()

    def _watch_api(self) -> None:
        if self._api.state is not ChildState.READY or self._api_answers():
            self._api_heard = time.monotonic()
        elif time.monotonic() - self._api_heard > _API_DEAF_S:
            self._tell(f"the API answered nothing for {_API_DEAF_S:.0f} s; starting it again")
            self._api.kill_stalled()

    def _api_answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=1.0).status_code == 200
        except httpx.HTTPError:
            return False

    def _wait_for_broker(self, broker: Child) -> None:
        while broker.state is not ChildState.READY and not self._stop:
            if sentence := broker.tick():
                self._tell(sentence)
            time.sleep(0.02)

    def _publish_state(self, state: str) -> None:
        write_state(
            self._settings,
            {
                "pid": os.getpid(),
                "state": state,
                "url": self.url,
                "updated_at": time.time(),
                "processes": [c.describe() for c in self._children()],
            },
        )

    # -- the end --

    def _shut_down(self) -> None:
        """The API first, so that nothing new comes in; the broker last, so that workers end their tasks."""
        self._tell("stopping")
        self._publish_state("stopping")
        deadline = time.monotonic() + _STOP_GRACE_S
        self._api.ask_to_stop()
        self._api.wait_stopped(min(deadline, time.monotonic() + self._api.stop_grace_s))
        for child in self._workers.values():
            child.ask_to_stop()
        for child in self._workers.values():
            child.wait_stopped(deadline)
        if self._broker is not None:
            self._broker.ask_to_stop()
            self._broker.wait_stopped(time.monotonic() + self._broker.stop_grace_s)
        self._redis.close()
        self._db.dispose()
        _dismiss(self._guard)
        clear_state(self._settings)
        self._tell("stopped")

    # -- the children --

    def _tell_guard(self, line: str) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.write(line + "\n")
        self._guard.stdin.flush()

    def _environment(self) -> dict[str, str]:
        metrics = self._settings.run_dir / "metrics"
        return {
            **os.environ,
            "GEO_DATA_DIR": str(self._settings.root),
            "GEO_API__PORT": str(self._settings.api.port),
            "PROMETHEUS_MULTIPROC_DIR": str(metrics),
            "PYTHONUNBUFFERED": "1",
        }

    def _child_redis(self) -> Child:
        folder = self._settings.root / "redis"
        folder.mkdir(exist_ok=True)
        socket_path = self._settings.redis_url.removeprefix("unix://")
        command = [
            str(preflight.redis_binary()), "--port", "0",
            "--unixsocket", socket_path, "--unixsocketperm", "700",
            "--dir", str(folder), "--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
            "--maxmemory-policy", "noeviction", "--daemonize", "no",
        ]  # fmt: skip

        def answers(_pid: int) -> bool:
            try:
                return bool(self._redis.ping())
            except redis.RedisError:
                return False

        return self._child("redis", command, answers)

    def _child_worker(self, name: str) -> Child:
        def said_ready(pid: int) -> bool:
            try:
                return ready_pid(self._redis, name) == pid and (
                    name != "generation" or self._engine_settled()
                )
            except redis.RedisError:
                return False

        return self._child(f"worker-{name}", [sys.executable, "-m", "api.cli", "worker", name], said_ready)

    def _engine_settled(self) -> bool:
        """Whether the engine is up, or has said why it cannot be (extract answers go on without it)."""
        told = self._redis.get(ENGINE_KEY)
        live = json.loads(str(told)) if told else {}
        if live.get("at", 0.0) < self._workers["generation"].started_at:
            return False
        if live["state"] == "failed":
            self._tell(f"the engine did not start: {live['detail']}")
        return live["state"] != "starting"

    def _child_api(self) -> Child:
        return self._child(
            "api",
            [sys.executable, "-m", "api.cli", "serve"],
            lambda _pid: self._api_answers(),
            stop_grace_s=8.0,
        )

    def _child(self, name: str, command: list[str], is_ready: Callable[[int], bool], **options: Any) -> Child:
        return Child(
            name=name,
            command=command,
            env=self._environment(),
            log=log_dir(self._settings) / f"{name}.log",
            is_ready=is_ready,
            tell_guard=self._tell_guard,
            **options,
        )


def _start_guard() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(guard.__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def _dismiss(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("bye\n")
    process.stdin.close()
    process.wait(5)
