"""What a real worker and a real broker do to our jobs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import redis
from sqlalchemy import func, select, update

from core.db import Database, utcnow
from core.jobs import add_job
from core.models import AuditRow, BuildRow, JobRow
from core.reaper import reap
from core.redis_client import get_redis
from core.types import JobStatus
from core.worker import QUEUES, Task, get_app
from tests.support.servers import RedisServer

ROOT = Path(__file__).parents[2]
# What kombu keeps by design: a handful of bindings, and what is delivered but not yet acknowledged.
OF_THE_BROKER = ("_kombu.binding", "unacked")


@contextmanager
def job_worker(work_s: float, visibility_s: float = 3600) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.core.job_worker", str(work_s), str(visibility_s)], cwd=ROOT
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def until(check: Callable[[], Any], within_s: float = 60) -> Any:
    deadline = time.monotonic() + within_s
    while not (seen := check()):
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)
    return seen


def add_builds(db: Database, count: int) -> list[str]:
    with db.write() as session:
        ids = [f"bld_{n}" for n in range(count)]
        session.add_all(BuildRow(id=i, tier="hot", created_by="key_1") for i in ids)
        session.flush()
        return [
            add_job(session, Task.REBUILD, tenant_id="ten_1", subject_kind="build", subject_id=i) for i in ids
        ]


def count(db: Database, query: Any) -> int:
    with db.read() as session:
        return int(session.scalar(query) or 0)


def done(db: Database) -> int:
    return count(
        db, select(func.count()).select_from(JobRow).where(JobRow.status == JobStatus.DONE.value)
    )  # fmt: skip


def test_job_longer_than_the_visibility_timeout_has_one_effect(sqlite_database: Database) -> None:
    """The broker takes the message for lost and delivers it again while the first delivery works."""
    (job_id,) = add_builds(sqlite_database, 1)
    with job_worker(work_s=8, visibility_s=2):
        until(lambda: done(sqlite_database) == 1)
        deliveries = int(get_redis().hget("geo:test:deliveries", job_id) or 0)
        assert deliveries > 1, "nothing was delivered twice: this test proves nothing"
        time.sleep(1)
    assert count(sqlite_database, select(func.count()).select_from(AuditRow)) == 1
    with sqlite_database.read() as session:
        assert session.get_one(JobRow, job_id).attempts == 1


def test_request_goes_on_at_once_while_the_broker_is_away(
    sqlite_database: Database, own_redis: RedisServer
) -> None:
    own_redis.kill()
    start = time.perf_counter()
    add_builds(sqlite_database, 2)
    assert time.perf_counter() - start < 1
    own_redis.start()
    reap(sqlite_database, {"rebuild": 0})
    assert get_redis().llen("rebuild") == 0, "not due yet"
    with sqlite_database.write() as session:
        session.execute(update(JobRow).values(next_send_at=utcnow() - timedelta(seconds=1)))
    reap(sqlite_database, {"rebuild": 0})
    assert get_redis().llen("rebuild") == 2


def endless_keys(client: redis.Redis) -> list[str]:
    return [
        str(key)
        for key in client.scan_iter("*")
        if client.ttl(key) == -1 and not str(key).startswith((*OF_THE_BROKER, "geo:test:"))
    ]


def test_thousand_jobs_leave_no_key_without_end_and_carry_ids_only(sqlite_database: Database) -> None:
    client = get_redis()
    add_builds(sqlite_database, 1000)
    assert client.llen("rebuild") == 1000
    assert max(len(message) for message in client.lrange("rebuild", 0, -1)) < 4096
    with job_worker(work_s=0.02):  # five seconds of work, so that it is asked while it is busy
        until(lambda: done(sqlite_database) >= 20)
        inspected = [get_app().control.inspect(timeout=1).active() for _ in range(2)]
        assert any(inspected), "no worker answered while it was busy"
        assert done(sqlite_database) < 1000
        until(lambda: done(sqlite_database) == 1000, within_s=120)
        until(lambda: client.llen("rebuild") == 0)
        assert endless_keys(client) == []
        assert len(list(client.scan_iter("*"))) < 30
    assert not list(client.scan_iter("celery-task-meta-*"))
    replies = [k for k in client.scan_iter("*") if "reply" in str(k) and client.type(k) == "list"]
    assert all(0 < client.ttl(k) <= 60 for k in replies)
    queues = {*QUEUES.values(), "reap"}
    assert not [q for q in queues if client.llen(q)]
