"""A writer in a process of its own that dies at a given durable step.

Processes are forked from one that has loaded everything, so that a test can afford one for each step.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.db import get_database
from core.settings import get_settings

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.retrieval.killed_writer_loaded"])
FINISHED, KILLED = 0, -signal.SIGKILL


def run_until_killed(work: Callable[[], None], step: int) -> int:
    """Do `work` in another process that kills itself at the `step`-th sync, rename or link.

    Args:
        work: a function of a module; it runs with this process's `GEO_*` variables.
        step: from 1; beyond the last one the work finishes.

    Returns:
        `FINISHED` or `KILLED`.
    """
    ours = {name: value for name, value in os.environ.items() if name.startswith("GEO_")}
    process = _CONTEXT.Process(target=_work, args=(work, step, ours))
    process.start()
    process.join(60)
    code = process.exitcode
    assert code in (FINISHED, KILLED), code
    return code


def _work(work: Callable[[], None], step: int, ours: Mapping[str, str]) -> None:
    for name in [name for name in os.environ if name.startswith("GEO_")]:
        del os.environ[name]
    os.environ.update(ours)
    get_settings.cache_clear()  # the process that this one is forked from read its own
    get_database.cache_clear()
    left = [step]

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return call

    os.fsync, os.link = counted(os.fsync), counted(os.link)
    Path.replace, Path.rename = counted(Path.replace), counted(Path.rename)  # type: ignore[method-assign] - counted
    from retrieval import lease

    lease.TTL_S = 0.3
    work()
