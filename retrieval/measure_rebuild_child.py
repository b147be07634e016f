"""Processes beside the questions of `geo bench rebuild`: workers of the stages, and builds one after another.

    python -m retrieval.measure_rebuild_child work ingest.normalize ingest.disambiguate …
    python -m retrieval.measure_rebuild_child builds

Each ends when its standard input does, and then prints one JSON object. They are as nice as the product's.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from importlib import import_module
from typing import Any

from core.db import get_database
from core.jobs import run_job
from core.measured import resident_bytes
from core.memory import limit_arenas
from core.settings import get_settings
from core.types import Role, Scope
from core.worker import Task, get_app
from retrieval import builds
from retrieval.build_task import run_build
from retrieval.scratch import ScratchStack

_NICENESS = 10  # of the index and maintenance workers
_OPERATOR = Scope("system", None, "bench", Role.OPERATOR)


def work(tasks: list[str], stop: threading.Event) -> dict[str, Any]:
    """Run the waiting jobs of these tasks as they come."""
    for module in ("ingest.tasks", "retrieval.tasks"):
        import_module(module)  # importing registers their tasks
    stack, done = ScratchStack(get_settings().root), 0
    while not stop.is_set():
        waiting = [(task, job) for task in tasks for job in stack.waiting([Task(task)])]
        for task, job_id in waiting:
            get_app().tasks[task](job_id)
            done += 1
        if not waiting:
            time.sleep(0.02)
    return {"jobs": done}


def build(stop: threading.Event) -> dict[str, Any]:
    """Rebuild everything from the database, again and again."""
    import_module("retrieval.rebuild")  # before the memory is looked at
    db, stats = get_database(), list[dict[str, Any]]()
    rows = get_settings().root / "geo.sqlite3"
    before = peak = resident_bytes(without=rows)
    watching = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not watching.wait(0.25):
            peak = max(peak, resident_bytes(without=rows))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    while not stop.is_set():
        with db.write() as session:
            opened = builds.request_rebuild(session, _OPERATOR, tier="all")
        with db.read() as session:
            job = builds.job_of(session, opened.id)
            assert job is not None
        run_job(job.id, run_build, db=db)
        with db.read() as session:
            ended = builds.get_build(session, _OPERATOR, build_id=opened.id)
        stats.append({"status": ended.status, **ended.stats})
    watching.set()
    thread.join()
    return {"builds": stats, "before": before, "peak": peak}


def main() -> None:
    """See the module."""
    os.nice(_NICENESS)
    limit_arenas()  # as `geo worker` does
    stop = threading.Event()

    def until_closed() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=until_closed, daemon=True).start()
    _tell("ready")
    found = work(sys.argv[2:], stop) if sys.argv[1] == "work" else build(stop)
    _tell(json.dumps(found))


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
