"""What a figure was taken on: the machine and the versions that it depends on."""

from __future__ import annotations

import platform
from importlib import metadata
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


def resident_bytes() -> int:
    """Memory of this process that is in RAM now."""
    return psutil.Process().memory_info().rss


def versions(*distributions: str) -> dict[str, str]:
    """Versions of Python, of this package and of `distributions`; what is not installed is left out."""
    found = {"python": platform.python_version()}
    for name in ("geo-engine", *distributions):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
