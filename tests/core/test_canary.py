"""When a worker counts as stalled."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
import redis

from core.canary import consumption_fault, last_seen, mark_seen, seen_key
from core.db import Database, utcnow
from core.ids import new_id
from core.models import JobRow
from core.redis_client import get_redis
from core.settings import Settings, get_settings
from core.worker import CANARY, WORKERS


@pytest.fixture
def client(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> redis.Redis:
    monkeypatch.setenv("GEO_WORKER__STALL_AFTER_S", "10")
    get_settings.cache_clear()
    return get_redis()


def _silent_since(client: redis.Redis, seconds: float) -> None:
    client.set(seen_key("ingest"), repr(time.time() - seconds))


def _job(db: Database, **values: object) -> None:
    with db.write() as session:
        session.add(
            JobRow(
                id=new_id("job"),
                tenant_id="t",
                task="ingest.normalize",
                queue="ingest",
                subject_kind="document",
                subject_id="d",
                **values,
            )
        )


def test_worker_that_took_a_canary_is_healthy(sqlite_database: Database, client: redis.Redis) -> None:
    mark_seen(client, "ingest")
    assert (last_seen(client, "ingest") or 0) > time.time() - 5
    assert consumption_fault(sqlite_database, client, "ingest", since=0) is None


def test_silent_worker_is_named_with_its_silence(sqlite_database: Database, client: redis.Redis) -> None:
    _silent_since(client, 60)
    fault = consumption_fault(sqlite_database, client, "ingest", since=0)
    assert fault == "worker ingest consumed nothing for 60 s"


def test_worker_never_seen_is_stalled_only_after_its_grace(
    sqlite_database: Database, client: redis.Redis
) -> None:
    assert consumption_fault(sqlite_database, client, "ingest", since=time.time()) is None
    assert consumption_fault(sqlite_database, client, "ingest", since=time.time() - 11)


def test_worker_with_a_long_job_is_busy_not_stalled(sqlite_database: Database, client: redis.Redis) -> None:
    _silent_since(client, 60)
    _job(sqlite_database, status="running", lease_expires_at=utcnow() + timedelta(seconds=30))
    assert consumption_fault(sqlite_database, client, "ingest", since=0) is None
    assert consumption_fault(sqlite_database, client, "index", since=0) is not None


def test_expired_lease_and_waiting_jobs_are_no_sign_of_life(
    sqlite_database: Database, client: redis.Redis
) -> None:
    _silent_since(client, 60)
    _job(sqlite_database, status="running", lease_expires_at=utcnow() - timedelta(seconds=1))
    _job(sqlite_database, status="waiting", attempt_key="2")
    assert consumption_fault(sqlite_database, client, "ingest", since=0) is not None


def test_queue_that_is_never_empty_is_kept_alive_by_the_jobs_it_starts(
    sqlite_database: Database, client: redis.Redis
) -> None:
    _silent_since(client, 60)
    _job(sqlite_database, status="done", started_at=utcnow() - timedelta(seconds=2))
    assert consumption_fault(sqlite_database, client, "ingest", since=0) is None


def test_ring_reaches_empty_queues_only(
    sqlite_database: Database, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core import canary

    monkeypatch.setenv("GEO_WORKER_NAME", "maintenance")
    client.lpush("index", "real work")
    canary.ring_task()
    assert client.llen("index") == 1
    assert client.llen("ingest") == 1
    assert CANARY in str(client.lindex("ingest", 0))
    assert last_seen(client, "maintenance") is not None
    canary.ring_task()
    others = [spec.queues[0] for name, spec in WORKERS.items() if name != "maintenance"]
    assert {queue: client.llen(queue) for queue in others} == {
        "ingest": 1,
        "index": 1,
        "query": 1,
        "generate": 1,
    }
