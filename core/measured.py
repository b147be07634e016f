"""What a figure was taken on: the machine and the versions that it depends on."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil


def machine() -> dict[str, Any]:
    """Processors, memory in GiB, system and present load."""
    return {
        "cpus": psutil.cpu_count(logical=True),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "processor": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "load_1m": round(psutil.getloadavg()[0], 2),
    }


def resident_bytes(*, without: Path | None = None) -> int:
    """Memory of this process that is in RAM now.

    Args:
        without: a file whose mapped pages are not counted, such as a database: they are the system's cache,
            shared by all processes that read it.
    """
    process = psutil.Process()
    resident: int = process.memory_info().rss
    if without is None:
        return resident
    maps: Any = process.memory_maps()
    return resident - sum(one.rss for one in maps if one.path == str(without))


def versions(*distributions: str) -> dict[str, str]:
    """Versions of Python, of this package and of `distributions`; what is not installed is left out."""
    found = {"python": platform.python_version()}
    for name in ("geo-engine", *distributions):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
