"""`geo worker NAME`: run one Celery worker in this process, or check the one that runs."""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Annotated

import typer

from api.cli.metric_files import name_metric_files
from api.cli.output import Json, emit
from core.errors import ConfigError
from core.memory import Trimmer, limit_arenas

_NICED = {"ingest", "index", "maintenance"}  # they may wait; a question may not
_NICENESS = 10


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("worker")(worker)


def worker(
    name: Annotated[str, typer.Argument(help="ingest, index, retrieval, maintenance or generation")],
    check: Annotated[
        bool, typer.Option("--check", help="Do not start it: exit 1 if it consumes nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run one worker until SIGTERM (finishes running tasks) or SIGQUIT (stops at once)."""
    from core.worker import WORKER_NAME_VARIABLE, WORKERS

    if name not in WORKERS:
        raise ConfigError(f"no worker is called {name}; choose from {', '.join(WORKERS)}")
    if check:
        _check(name, as_json=as_json)
        return
    os.environ[WORKER_NAME_VARIABLE] = name
    name_metric_files(f"worker-{name}")
    _limit_threads(name)
    if name in _NICED:
        os.nice(_NICENESS)
    _run(name)


def _limit_threads(name: str) -> None:
    """One BLAS thread per task: parallelism comes from tasks, and idle threads must not spin.

    The generation worker is left alone, because the engine places its own threads.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # packs are on the disk; nothing is looked up while serving
    if name != "generation":
        for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.setdefault(variable, "1")
        limit_arenas()


def _run(name: str) -> None:
    from celery import signals

    from core.logs import configure_logs
    from core.settings import get_settings
    from core.worker import WORKERS, get_app

    settings, spec = get_settings(), WORKERS[name]
    settings.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)

    def own_logs(**_: object) -> None:
        configure_logs(settings.log, process=f"worker-{name}")
        for noisy in ("celery.worker.strategy", "celery.app.trace"):  # a line per message; jobs have rows
            logging.getLogger(noisy).setLevel(logging.WARNING)

    signals.setup_logging.connect(own_logs, weak=False)  # Celery then leaves the logging alone
    own_logs()
    if spec.pool != "prefork":  # a pool's children end when they pause (ingest/recycle.py)
        _trim_in_pauses()
    concurrency = {
        "ingest": settings.worker.ingest_processes,
        "retrieval": settings.worker.retrieval_threads,
        "maintenance": 6,  # one build per tier; the reaper, moves and the recall monitor beside them
        "generation": settings.worker.generation_threads,
    }.get(name, 1)
    arguments = [
        "worker", "--queues", ",".join(spec.queues), "--pool", spec.pool, "--concurrency", str(concurrency),
        "--hostname", f"{name}@%h", "--loglevel", settings.log.level, "--without-gossip", "--without-mingle",
        "--without-heartbeat",
    ]  # fmt: skip
    if spec.beat:
        arguments += ["--beat", "--schedule", str(settings.run_dir / "beat-schedule")]
    get_app().worker_main(arguments)


def _trim_in_pauses() -> None:
    from celery import signals

    from core.worker import QUEUES

    trimmer = Trimmer()

    def worked(sender: object = None, **_: object) -> None:
        if getattr(sender, "name", "") in QUEUES:  # a canary is no work
            trimmer.note()

    signals.task_postrun.connect(worked, weak=False)
    trimmer.start()


def _check(name: str, *, as_json: bool) -> None:
    from core.canary import consumption_fault
    from core.db import get_database
    from core.redis_client import get_redis

    fault = consumption_fault(get_database(), get_redis(), name, since=0.0)
    if as_json:
        emit({"worker": name, "ok": fault is None, "fault": fault, "checked_at": time.time()})
    elif fault:
        print(fault, file=sys.stderr)
    if fault:
        raise typer.Exit(1)
