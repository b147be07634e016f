"""Proof that a worker consumes: a small task that travels the way real ones do.

A process that lives and answers pings may still take nothing from its queue, for example after the
broker came back. Beat rings a canary into every empty queue; the worker that takes it writes the time.
Whoever watches (`geo up`, a container's health check) restarts a worker that shows no sign of consuming.
"""

from __future__ import annotations

import time
from datetime import timedelta

import redis
from celery import signals
from sqlalchemy import func, select

from core.db import Database, utcnow
from core.models import JobRow
from core.redis_client import get_redis
from core.settings import get_settings
from core.types import JobStatus
from core.worker import CANARY, RING, WORKERS, get_app, waiting_messages, worker_name

_KEEP_S = 86_400


def seen_key(name: str) -> str:
    """Redis key with the Unix time of the worker's last sign of consuming."""
    return f"geo:worker:{name}:seen"


def ready_key(name: str) -> str:
    """Redis key with the process id of the worker that last said it is ready."""
    return f"geo:worker:{name}:ready"


def mark_seen(client: redis.Redis, name: str) -> None:
    """Note that this worker consumes."""
    client.set(seen_key(name), repr(time.time()), ex=_KEEP_S)


def last_seen(client: redis.Redis, name: str) -> float | None:
    """Unix time of the last sign of consuming, or None when there was none."""
    value = client.get(seen_key(name))
    return float(str(value)) if value is not None else None


def ready_pid(client: redis.Redis, name: str) -> int | None:
    """Process id of the worker that last said it is ready, or None."""
    value = client.get(ready_key(name))
    return int(str(value)) if value is not None else None


def consumption_fault(db: Database, client: redis.Redis, name: str, *, since: float) -> str | None:
    """Why this worker counts as stalled, or None.

    It is healthy when, within `worker.stall_after_s`, it took a canary or started a job, or while it
    holds a job under a living lease.

    Args:
        db: where the jobs are.
        client: the broker, which also keeps the canaries' times.
        name: one of `WORKERS`.
        since: Unix time before which nothing is held against it (its start, or the broker's).
    """
    limit = get_settings().worker.stall_after_s
    quiet_s = time.time() - max(since, last_seen(client, name) or 0.0)
    if quiet_s <= limit:
        return None
    now = utcnow()
    working = select(func.count()).where(
        JobRow.queue.in_(WORKERS[name].queues),
        ((JobRow.status == JobStatus.RUNNING.value) & (JobRow.lease_expires_at > now))
        | (JobRow.started_at > now - timedelta(seconds=limit)),
    )
    with db.read() as session:
        if session.scalar(working):
            return None
    return f"worker {name} consumed nothing for {quiet_s:.0f} s"


@get_app().task(name=CANARY)
def canary_task() -> None:
    """Taken by the worker whose queue was rung."""
    mark_seen(get_redis(), worker_name())


@get_app().task(name=RING)
def ring_task() -> None:
    """Beat's entry: ring every queue that is empty, so that canaries never pile up behind real work."""
    client, interval = get_redis(), get_settings().worker.canary_interval_s
    for name, spec in WORKERS.items():
        if name == worker_name():
            mark_seen(client, name)
        elif waiting_messages(client, spec.queues[0]) == 0:
            get_app().send_task(CANARY, queue=spec.queues[0], expires=interval, retry=False)


@signals.worker_ready.connect
def _say_ready(**_: object) -> None:
    import os

    client = get_redis()
    mark_seen(client, worker_name())
    client.set(ready_key(worker_name()), os.getpid(), ex=_KEEP_S)
