"""Real child processes: restarted, reported, stopped, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from api.cli.embedded import children, guard
from api.cli.embedded.children import Child, ChildState

SLEEP = "import time; time.sleep(60)"
# A worker with a pool process of its own; writes the pool's pid.
WITH_POOL = (
    "import subprocess, sys, time, pathlib\n"
    "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    "pathlib.Path(sys.argv[1]).write_text(str(p.pid)); time.sleep(60)\n"
)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    made: list[Child] = []

    def one(
        code: str, *words: str, ready: Callable[[int], bool] = lambda _pid: True, grace_s: float = 5
    ) -> Child:
        child = Child(
            "child", [sys.executable, "-c", code, *words], os.environ, tmp_path / "child.log", ready, grace_s
        )
        made.append(child)
        return child

    yield one
    for child in made:
        child.ask_to_stop()
        child.wait_stopped(time.monotonic() + 2)


def _until(check: Callable[[], object], within_s: float = 10) -> None:
    deadline = time.monotonic() + within_s
    while not check():
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.02)


def _gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_child_becomes_ready_when_it_says_so(make: Callable[..., Child]) -> None:
    asked: list[int] = []
    child = make(SLEEP, ready=lambda pid: asked.append(pid) or len(asked) > 1)
    child.start()
    assert child.tick() is None
    assert child.state is ChildState.STARTING
    assert "is ready after" in (child.tick() or "")
    assert asked == [child.pid, child.pid]


def test_killed_child_is_started_again_with_growing_gaps(
    make: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "_BACKOFF_BASE_S", 0.05)
    child = make(SLEEP)
    child.start()
    gaps = []
    for _ in range(3):
        os.kill(child.pid or 0, signal.SIGKILL)
        _until(lambda: child.tick() is not None and child.state is ChildState.BACKOFF)
        gaps.append(child._start_after - time.time())
        _until(lambda: child.tick() or child.pid is not None)
    assert child.restarts == 3
    assert gaps[0] < gaps[1] < gaps[2]
    assert child.describe()["last_exit"] == -signal.SIGKILL


def test_crash_loop_is_reported_with_the_log(
    make: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "_BACKOFF_BASE_S", 0.001)
    child = make("import sys; print('no such module'); sys.exit(3)")
    child.start()
    told: list[str] = []

    def looping() -> bool:
        if sentence := child.tick():
            told.append(sentence)
        return child.state is ChildState.CRASH_LOOP

    _until(looping)
    assert "ended 5 times" in told[-1]
    assert "exit code 3" in told[-1]
    assert str(child.log) in told[-1]
    assert child.log.read_text().count("no such module") == 5


def test_dead_child_leaves_no_pool_process(make: Callable[..., Child], tmp_path: Path) -> None:
    child = make(WITH_POOL, str(tmp_path / "pool.pid"))
    child.start()
    _until(lambda: (tmp_path / "pool.pid").exists() and (tmp_path / "pool.pid").read_text())
    pool = int((tmp_path / "pool.pid").read_text())
    os.kill(child.pid or 0, signal.SIGKILL)
    _until(lambda: child.tick() is not None and child.pid is None)
    _until(lambda: _gone(pool))


def test_deaf_child_is_killed_after_its_grace(make: Callable[..., Child]) -> None:
    code = (
        "import signal, sys, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    )
    child = make(code)
    child.start()
    pid = child.pid or 0
    _until(lambda: "up" in child.log.read_text())
    child.ask_to_stop()
    child.wait_stopped(time.monotonic() + 0.3)
    assert child.state is ChildState.STOPPED
    assert child.last_exit == -signal.SIGKILL
    assert _gone(pid)


SUPERVISOR = (
    "import os, subprocess, sys, time\n"
    "from pathlib import Path\n"
    "from api.cli.embedded.children import Child\n"
    "g = subprocess.Popen([sys.executable, '-I', '-S', sys.argv[1]], stdin=subprocess.PIPE, text=True,\n"
    "    start_new_session=True)\n"
    "def tell(line):\n"
    "    g.stdin.write(line + '\\n'); g.stdin.flush()\n"
    "command = [sys.executable, '-c', sys.argv[2], sys.argv[3]]\n"
    "log = Path(sys.argv[3] + '.log')\n"
    "child = Child('c', command, os.environ, log, lambda pid: True, tell_guard=tell)\n"
    "child.start(); print(child.pid, flush=True); time.sleep(60)\n"
)


def test_killed_supervisor_leaves_no_process(tmp_path: Path) -> None:
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(Path(guard.__file__)), WITH_POOL, str(tmp_path / "pool.pid")],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert supervisor.stdout is not None
    child = int(supervisor.stdout.readline())
    _until(lambda: (tmp_path / "pool.pid").exists() and (tmp_path / "pool.pid").read_text())
    pool = int((tmp_path / "pool.pid").read_text())
    supervisor.kill()
    supervisor.wait()
    supervisor.stdout.close()
    _until(lambda: _gone(child) and _gone(pool), within_s=15)
