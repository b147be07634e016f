"""One child process: start, watch, restart with backoff, stop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

_BACKOFF_BASE_S = 0.5
_BACKOFF_CAP_S = 30.0
_CRASHES, _CRASH_WINDOW_S = 5, 300.0  # five ends within five minutes are a crash loop, not bad luck
_LOG_CAP_BYTES = 64 << 20

# Runs before the real program: have the kernel send SIGTERM when the supervisor dies, then become it.
_TIED = (
    "import ctypes, os, signal, sys\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGTERM)\n"
    "os.getppid() == int(sys.argv[1]) or sys.exit(1)\n"
    "os.execvp(sys.argv[2], sys.argv[2:])\n"
)


class ChildState(StrEnum):
    """Where a child stands."""

    STARTING = "starting"
    READY = "ready"
    BACKOFF = "backoff"
    CRASH_LOOP = "crash_loop"
    STOPPED = "stopped"


@dataclass(slots=True)
class Child:
    """A supervised process in a session of its own.

    Attributes:
        is_ready: asked while it starts; receives the process id.
        stop_grace_s: seconds between SIGTERM and SIGKILL.
    """

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    log: Path
    is_ready: Callable[[int], bool]
    stop_grace_s: float = 20.0
    tell_guard: Callable[[str], None] = field(default=lambda _line: None)
    state: ChildState = ChildState.STOPPED
    restarts: int = 0
    last_exit: int | None = None
    started_at: float = 0.0
    ready_at: float = 0.0
    _process: subprocess.Popen[bytes] | None = None
    _ends: deque[float] = field(default_factory=lambda: deque(maxlen=_CRASHES))
    _start_after: float = 0.0

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start it now; standard output and error are appended to its log."""
        _rotate(self.log)
        tied = [sys.executable, "-I", "-c", _TIED, str(os.getpid()), *self.command]
        with self.log.open("ab") as sink:
            self._process = subprocess.Popen(
                tied,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env=dict(self.env),
                start_new_session=True,
            )
        self.tell_guard(f"+{self._process.pid}")
        self.state, self.started_at, self.ready_at = ChildState.STARTING, time.time(), 0.0

    def tick(self) -> str | None:
        """Look after it once.

        Returns:
            A sentence when something happened that a person should know, else None.
        """
        if self._process is None:
            if self.state in (ChildState.BACKOFF, ChildState.CRASH_LOOP) and time.time() >= self._start_after:
                looping = self.state is ChildState.CRASH_LOOP
                self.start()
                self.restarts += 1
                return None if looping else f"{self.name} started again"
            return None
        code = self._process.poll()
        if code is not None:
            return self._ended(code)
        if self.state is ChildState.STARTING and self.is_ready(self._process.pid):
            self.state, self.ready_at = ChildState.READY, time.time()
            return f"{self.name} is ready after {self.ready_at - self.started_at:.1f} s"
        return None

    def _ended(self, code: int) -> str:
        self._reap(code)
        now = time.time()
        self._ends.append(now)
        if len(self._ends) == _CRASHES and now - self._ends[0] < _CRASH_WINDOW_S:
            self.state, self._start_after = ChildState.CRASH_LOOP, now + _BACKOFF_CAP_S
            span_s = now - self._ends[0]
            return (
                f"{self.name} ended {_CRASHES} times within {span_s:.0f} s (last: {_told(code)}); "
                f"next try in {_BACKOFF_CAP_S:.0f} s. See {self.log}"
            )
        recent = sum(1 for end in self._ends if now - end < _CRASH_WINDOW_S)
        wait_s = min(_BACKOFF_CAP_S, _BACKOFF_BASE_S * 2 ** (recent - 1))
        self.state, self._start_after = ChildState.BACKOFF, now + wait_s
        return f"{self.name} ended ({_told(code)}); starting it again in {wait_s:.1f} s. See {self.log}"

    def _reap(self, code: int) -> None:
        """Forget the ended process and end whatever it left in its group."""
        assert self._process is not None
        group, self._process, self.last_exit = self._process.pid, None, code
        _signal_group(group, signal.SIGKILL)
        self.tell_guard(f"-{group}")

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the main process alone, so that it ends its own children in order."""
        if self._process is None:
            self.state = ChildState.STOPPED
        elif self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()

    def wait_stopped(self, deadline: float) -> None:
        """Wait until `deadline` (monotonic), then kill the whole group."""
        if self._process is not None:
            try:
                code = self._process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal_group(self._process.pid, signal.SIGKILL)
                code = self._process.wait()
            self._reap(code)
        self.state = ChildState.STOPPED

    def kill_stalled(self) -> None:
        """End a process that does not do its work; `tick` starts it again."""
        self.ask_to_stop()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5.0)
            _signal_group(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def describe(self) -> dict[str, Any]:
        """Facts for the state file."""
        return {
            "name": self.name,
            "pid": self.pid,
            "state": self.state.value,
            "restarts": self.restarts,
            "last_exit": self.last_exit,
            "started_at": self.started_at,
            "ready_s": round(self.ready_at - self.started_at, 2) if self.ready_at else None,
            "log": str(self.log),
        }


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _told(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _rotate(log: Path) -> None:
    """Keep one older log when it has grown large."""
    if log.exists() and log.stat().st_size > _LOG_CAP_BYTES:
        log.replace(log.with_suffix(".log.1"))
