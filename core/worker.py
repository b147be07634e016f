"""The Celery application: task names, queues, the order of the stages, and how a job is rung.

A stage starts the next one by name through `next_stage`; no package imports a later one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from celery import Celery, signals
from redis import Redis

from core.settings import Settings, get_settings


class Task(StrEnum):
    """Names of all tasks that a job can run."""

    NORMALIZE = "ingest.normalize"
    DISAMBIGUATE = "ingest.disambiguate"
    PURGE = "ingest.purge"
    RELINK = "ingest.relink"
    INDEX = "retrieval.index"
    UNINDEX = "retrieval.unindex"
    REWRITE = "generation.rewrite"
    RERANK = "retrieval.rerank"
    REBUILD = "retrieval.rebuild"
    PLACE = "retrieval.place"
    ANSWER = "generation.answer"


QUEUES: dict[Task, str] = {
    Task.NORMALIZE: "ingest",
    Task.DISAMBIGUATE: "ingest",
    Task.PURGE: "ingest",
    Task.RELINK: "ingest",
    Task.INDEX: "index",
    Task.UNINDEX: "index",
    Task.REWRITE: "generate",
    Task.RERANK: "query",
    Task.REBUILD: "rebuild",
    Task.PLACE: "index",
    Task.ANSWER: "generate",
}

# The order of the stages stands here and nowhere else.
NEXT: dict[Task, Task] = {
    Task.NORMALIZE: Task.DISAMBIGUATE,
    Task.DISAMBIGUATE: Task.INDEX,
    Task.REWRITE: Task.RERANK,
    Task.RERANK: Task.ANSWER,
    Task.UNINDEX: Task.PURGE,
}

# Jobs that a query does without when they fail: their end never ends it.
OPTIONAL = frozenset({Task.REWRITE})

REAP = "core.reap"
CANARY = "core.canary"
RING = "core.ring"
TOP_UP = "ingest.top_up"
OBSERVE = "retrieval.observe"
TEND = "retrieval.tend"
MERGE = "retrieval.merge"

_TOP_UP_EVERY_S = 5.0  # a look at the open walks of `ingest/reprocessing.py`: one indexed query when idle
_MERGE_EVERY_S = 60.0  # a look at the manifest of the index when nothing is worth merging

# The broker keeps a list per priority: `QUEUE` for 0, which is taken first, and `QUEUE\x06\x169` for 9.
_FIRST, _LAST = 0, 9


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """One worker process: what it consumes, how, and which modules register its tasks.

    Task modules import heavy libraries inside their functions or in `worker_init`, never at the top.
    """

    queues: tuple[str, ...]
    imports: tuple[str, ...]
    pool: str
    beat: bool = False


WORKERS: dict[str, WorkerSpec] = {
    "ingest": WorkerSpec(("ingest",), ("ingest.tasks",), "prefork"),
    "index": WorkerSpec(("index",), ("retrieval.tasks",), "solo"),
    "retrieval": WorkerSpec(("query",), ("retrieval.tasks",), "threads"),
    "maintenance": WorkerSpec(
        ("rebuild", "reap"),
        ("retrieval.tasks", "retrieval.upkeep", "ingest.top_up", "core.reaper"),
        "threads",
        beat=True,
    ),
    "generation": WorkerSpec(("generate",), ("generation.tasks",), "threads"),
}

WORKER_NAME_VARIABLE = "GEO_WORKER_NAME"  # set by `geo worker NAME`; tells task modules what to preload


def worker_name() -> str:
    """Name of the worker this process runs as, or the empty string outside one."""
    return os.environ.get(WORKER_NAME_VARIABLE, "")


def next_stage(task: Task) -> Task | None:
    """The stage that follows `task`, or None at the end of a line."""
    return NEXT.get(task)


def make_app() -> Celery:
    """Build the Celery application from the settings (no connection is made)."""
    settings = get_settings()
    app = Celery("geo", broker=settings.broker_url)
    app.conf.update(
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        result_backend_thread_safe=True,  # there is none; else each thread looks through all packages for it
        worker_prefetch_multiplier=1,
        task_serializer="json",
        accept_content=["json"],
        task_default_queue="ingest",
        task_routes={
            **{t.value: {"queue": q} for t, q in QUEUES.items()},
            **{task: {"queue": "reap"} for task in (REAP, RING, TOP_UP, OBSERVE, TEND, MERGE)},
        },
        broker_transport_options={
            "visibility_timeout": settings.worker.visibility_timeout_s,
            "unacked_restore_interval": 2,  # kombu's default looks for lost messages every 100 s only
            "unacked_restore_throttle": 1,
            # A request that rings while the broker is away goes on at once: the reaper rings again. A worker
            # that lost the broker waits for it without end (`broker_connection_max_retries`).
            "max_retries": 0,
            "socket_connect_timeout": 2,
        },
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        worker_hijack_root_logger=False,
        worker_enable_remote_control=True,
        control_queue_ttl=60,
        control_queue_expires=60,
        imports=(*WORKERS[worker_name()].imports, "core.canary") if worker_name() in WORKERS else (),
        beat_schedule=_beat_schedule(settings),
        beat_schedule_filename=str(settings.run_dir / "beat-schedule"),
    )
    return app


def _beat_schedule(settings: Settings) -> dict[str, Any]:
    """What the maintenance worker does again and again; a turn that comes too late is left out."""
    every_s = {
        "reap": (REAP, settings.worker.reap_interval_s),
        "top_up": (TOP_UP, _TOP_UP_EVERY_S),
        "observe": (OBSERVE, settings.recall.interval_s),
        "tend": (TEND, settings.placement.interval_s),
        "merge": (MERGE, _MERGE_EVERY_S),
        "ring": (RING, settings.worker.canary_interval_s),
    }
    return {
        name: {"task": task, "schedule": seconds, "options": {"queue": "reap", "expires": seconds}}
        for name, (task, seconds) in every_s.items()
    }


@lru_cache(maxsize=1)
def get_app() -> Celery:
    """The process's Celery application."""
    return make_app()


def send_job(task_name: str, job_id: str, *, gives_way: bool = False) -> None:
    """Ring the doorbell: one message with the job's id; one that gives way is taken after all others."""
    get_app().send_task(
        task_name,
        args=[job_id],
        queue=QUEUES[Task(task_name)],
        retry=False,
        ignore_result=True,
        priority=_LAST if gives_way else _FIRST,
    )


def waiting_messages(client: Redis, queue: str) -> int:
    """Messages that wait in a queue of the broker, those that give way included."""
    return client.llen(queue) + client.llen(f"{queue}\x06\x16{_LAST}")


@signals.worker_process_init.connect
def _after_fork(**_: object) -> None:
    """A pool child makes its own connections."""
    from core.db import get_database
    from core.redis_client import get_redis

    get_database.cache_clear()
    get_redis.cache_clear()
