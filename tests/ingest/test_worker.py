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
from sqlalchemy import func, select

from core.db import Database
from core.models import PassageRow
from core.reaper import reap
from core.redis_client import get_redis
from core.settings import get_settings
from core.types import DocumentStatus, JobStatus
from core.worker import Task
from tests.ingest.lifecycle import get, jobs, make_tenants, upload
from tests.support.servers import RedisServer

ROOT = Path(__file__).parents[2]
SLOW = "".join(f"Line {n} says that pump {n % 97} runs at {n % 1000} rpm.\n\n" for n in range(2_000))


@pytest.fixture
def worker(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[psutil.Process]:
    """A real ingest worker with short leases."""
    monkeypatch.setenv("GEO_WORKER__LEASE_TTL_S", "4")
    monkeypatch.setenv("GEO_WORKER__INGEST_IDLE_S", "1")
    get_settings.cache_clear()
    process = subprocess.Popen([sys.executable, "-m", "api.cli", "worker", "ingest"], cwd=ROOT)
    yield psutil.Process(process.pid)
    process.terminate()
    process.wait(timeout=30)


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def loaded_libraries(process: psutil.Process) -> str:
    return " ".join(m.path for m in process.memory_maps())


def test_a_killed_pool_child_loses_no_document(worker: psutil.Process, sqlite_database: Database) -> None:
    make_tenants(sqlite_database)
    document = upload(sqlite_database, SLOW, "slow.txt").document

    def job() -> tuple[str, int]:
        row = jobs(sqlite_database, document.id, Task.NORMALIZE)[0]
        return row.status, row.attempts

    wait_until(lambda: job() == (JobStatus.RUNNING.value, 1))
    (child,) = worker.children()
    assert "libtorch" not in loaded_libraries(worker)  # nothing heavy before the fork
    os.kill(child.pid, signal.SIGKILL)

    def done() -> bool:
        reap(sqlite_database, {q: int(get_redis().llen(q)) for q in ("ingest", "index")})
        return bool(jobs(sqlite_database, document.id, Task.INDEX))

    wait_until(done)
    status, attempts = job()
    assert status == JobStatus.DONE.value
    assert attempts >= 2  # a starved machine may let one more lease run out
    seen = get(sqlite_database, document.id)
    assert (seen.status, seen.stage) == (DocumentStatus.PROCESSING, "index")
    with sqlite_database.read() as session:
        total, distinct = session.execute(
            select(func.count(), func.count(PassageRow.ordinal.distinct()))
        ).one()
    assert total == distinct == seen.counts.passages
    assert "libtorch" not in loaded_libraries(worker)


def test_an_idle_child_gives_its_memory_back_and_the_next_one_works(
    worker: psutil.Process, sqlite_database: Database
) -> None:
    make_tenants(sqlite_database)

    def indexed(name: str) -> None:
        document = upload(sqlite_database, f"{name} lives in Paris.", f"{name}.txt").document
        wait_until(lambda: bool(jobs(sqlite_database, document.id, Task.INDEX)))

    indexed("Ada")
    (first,) = worker.children()
    assert first.memory_info().rss > 400 << 20
    wait_until(lambda: not first.is_running() and len(worker.children()) == 1)
    (second,) = worker.children()
    assert second.memory_info().rss < 250 << 20
    indexed("Grace")


def test_worker_goes_on_after_the_broker_came_back_again_and_again(
    own_redis: RedisServer, sqlite_database: Database, request: pytest.FixtureRequest
) -> None:
    """Consumption resumes, or the process ends with an error and whoever supervises it starts another."""
    make_tenants(sqlite_database)
    documents = [upload(sqlite_database, f"Note {n}.", f"{n}.txt").document.id for n in range(30)]
    running: psutil.Process = request.getfixturevalue("worker")
    first = documents[0]
    wait_until(lambda: jobs(sqlite_database, first, Task.NORMALIZE)[0].attempts == 1)
    for away_s in (0, 0, 0, 6):  # three times within three seconds, then for longer than one attempt takes
        own_redis.kill()
        time.sleep(away_s)
        own_redis.start()
        time.sleep(0.5)

    def taken() -> bool:
        if not running.is_running() or running.status() == psutil.STATUS_ZOMBIE:
            return True
        reap(sqlite_database, {q: int(get_redis().llen(q)) for q in ("ingest", "index")})
        return all(jobs(sqlite_database, d, Task.INDEX) for d in documents)

    wait_until(taken, 90)
    if running.status() == psutil.STATUS_ZOMBIE:
        assert running.wait() != 0
    else:
        assert [len(jobs(sqlite_database, d, Task.INDEX)) for d in documents] == [1] * 30


def test_importing_the_tasks_loads_nothing_heavy() -> None:
    heavy = ("numpy", "torch", "spacy", "jieba", "lxml", "pypdfium2", "tokenizers", "transformers")
    code = f"import sys, ingest.tasks; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
