"""The engine's processes as the system sees them: found by name, ended where nobody else can end them."""

from __future__ import annotations

import os

import psutil


def engine_pids(parent: int | None = None) -> tuple[int, ...]:
    """Process ids of the engine's processes below `parent` (default: this process), the core first."""
    try:
        children = psutil.Process(parent).children(recursive=True)
    except psutil.NoSuchProcess:
        return ()
    return tuple(p.pid for p in children if _is_engine(p))


def kill_engines() -> int:
    """Kill the engine's processes of this process; one that hangs does not hear anything gentler."""
    ended = 0
    for pid in engine_pids():
        try:
            psutil.Process(pid).kill()
            ended += 1
        except psutil.Error:
            continue
    return ended


def _is_engine(process: psutil.Process) -> bool:
    try:
        return process.name().startswith("VLLM::") or "VLLM::" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def end_orphans() -> int:
    """Kill engine processes of this data folder whose worker was killed and could not stop them.

    Returns:
        How many there were.
    """
    ours, ended = os.environ.get("GEO_DATA_DIR", ""), 0
    for process in psutil.process_iter():
        try:
            orphan = _is_engine(process) and process.ppid() == 1 and os.getpid() != 1
            if orphan and process.environ().get("GEO_DATA_DIR", "") == ours:
                process.kill()
                ended += 1
        except psutil.Error:
            continue
    return ended
