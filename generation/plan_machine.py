"""The machine that a plan is made for: cores, memory, accelerators, links, nodes. Pure.

It is probed (`generation/plan_probe.py`) or described in a file, for machines that are elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from core.errors import ConfigError
from generation.plan_devices import accelerator, known_accelerators

GIB = 1 << 30
_MOST = 1e9  # of any unit: above it a figure is a slip, and sums of sizes lose their meaning
LINKS = ("nvlink", "pcie")
ISAS = ("avx512", "avx512_bf16", "amx_bf16")  # what kernels are chosen by
_MOST_COUNTED = 4096  # cores of a node, nodes


@dataclass(frozen=True, slots=True)
class NumaNode:
    """Cores that share a memory: one logical core id per physical core, and the bytes."""

    cores: tuple[int, ...]
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What the engine may use.

    Attributes:
        device: `cpu` or `gpu`.
        cores: physical cores of a node that may be used.
        memory_bytes: RAM on CPU (a cgroup's limit where lower), memory of one accelerator on GPU.
        devices: accelerators in one node; 1 on CPU.
        nodes: machines of this kind that pipeline stages and replicas can spread over.
        ram_bytes: RAM of a node with accelerators; 0: unknown.
        taken_bytes: memory of the fullest accelerator that other processes hold.
        capability: compute capability of the accelerators.
        link: `nvlink`, `pcie` or empty where unknown; between the accelerators of a node.
        numa: memories of a CPU; empty: one.
        isa: of the CPU: `avx512`, `avx512_bf16`, `amx_bf16`.
        bandwidth: bytes/s that one accelerator, or all cores together, read; 0: unknown.
        flops: 16-bit floating-point operations per second of the same; flops8: 8-bit ones.
    """

    device: str
    cores: int
    memory_bytes: int
    devices: int = 1
    nodes: int = 1
    name: str = ""
    ram_bytes: int = 0
    capability: tuple[int, int] | None = None
    link: str = ""
    numa: tuple[NumaNode, ...] = ()
    isa: tuple[str, ...] = ()
    bandwidth: float = 0.0
    flops: float = 0.0
    flops8: float = 0.0
    taken_bytes: int = 0

    @property
    def on_cpu(self) -> bool:
        """Whether the engine computes on the CPU."""
        return self.device == "cpu"

    @property
    def memories(self) -> int:
        """Separate memories of a node: accelerators, or NUMA nodes."""
        return max(1, len(self.numa)) if self.on_cpu else self.devices

    @property
    def core_ids(self) -> tuple[int, ...]:
        """The cores by number, of all memories; at most `cores`; empty where they are not known."""
        return tuple(sorted(c for node in self.numa for c in node.cores))[: self.cores]

    @property
    def ranks_per_node(self) -> int:
        """Ranks that a node can hold: one per accelerator, or one per core."""
        return self.cores if self.on_cpu else self.devices

    @property
    def free_share(self) -> float:
        """The part of an accelerator's memory that nobody holds, less 2 % for what comes and goes."""
        return 1.0 if not self.taken_bytes else max(0.0, 0.98 - self.taken_bytes / self.memory_bytes)

    @property
    def total_ram(self) -> int:
        """RAM of a node; 0 where it is not known."""
        return self.memory_bytes if self.on_cpu else self.ram_bytes


_KEYS = frozenset(
    {"gpu", "device", "name", "devices", "nodes", "cores", "ram_gib", "memory_gib", "capability", "link"}
    | {"bandwidth_gb_s", "tflops", "tflops8", "isa", "numa_nodes"}
)
# key, field of `Machine`, unit
_SPEEDS = (("bandwidth_gb_s", "bandwidth", 1e9), ("tflops", "flops", 1e12), ("tflops8", "flops8", 1e12))


def machine_from(described: Mapping[str, Any]) -> Machine:
    """A machine described by an operator.

    Keys: `gpu` (a name of `generation/plan_devices.py`, which fills in memory, capability, link and speeds)
    or `device: cpu`; `devices`, `nodes`, `cores`, `ram_gib`, `memory_gib`, `bandwidth_gb_s`, `tflops`,
    `tflops8`, `capability` (`"9.0"`), `link`, `isa`, `numa_nodes` (a number; cores and memory are shared
    evenly).

    Raises:
        ConfigError: an unknown key, accelerator, link or isa, or a number that is missing or not positive.
    """
    if unknown := sorted(set(described) - _KEYS):
        raise ConfigError(
            f"A machine has no {', '.join(unknown)}. Known keys: {', '.join(sorted(_KEYS))} (docs/engine.md)."
        )
    device = described.get("device", "gpu" if "gpu" in described else "cpu")
    if device not in ("cpu", "gpu"):
        raise ConfigError(f"device of a machine is {device!r}; cpu or gpu is expected.")
    on_gpu = "gpu" in described or device == "gpu"
    cores = _count(described, "cores", 1 if not on_gpu else 8)
    ram = int(_number(described, "ram_gib", 0) * GIB)
    if on_gpu:
        base = _accelerated(described, cores, ram)
    else:
        memory = ram or int(_number(described, "memory_gib", 0) * GIB)
        if not memory:
            raise ConfigError("A machine without accelerators needs ram_gib, its memory in GiB.")
        count = _count(described, "numa_nodes", 1)
        base = Machine(
            "cpu", cores, memory, name=str(described.get("name", "")), numa=_even(cores, memory, count)
        )
    _link(described)
    changes: dict[str, Any] = {"nodes": _count(described, "nodes", 1)}
    if isa := described.get("isa"):
        if not isinstance(isa, list):
            raise ConfigError(f"isa of a machine is {isa!r}; a list of names is expected.")
        if unknown := [one for one in isa if one not in ISAS]:
            raise ConfigError(
                f"isa of a machine names {', '.join(map(repr, unknown))}; known: {', '.join(ISAS)}. "
                "Leave out what is not among them."
            )
        changes["isa"] = tuple(isa)
    for key, field, unit in _SPEEDS:
        if key in described:
            changes[field] = _number(described, key, 0) * unit
    return replace(base, **changes)


def _accelerated(described: Mapping[str, Any], cores: int, ram: int) -> Machine:
    name = str(described.get("gpu", ""))
    facts = accelerator(name)
    memory = int(_number(described, "memory_gib", 0) * GIB) or (facts.memory_bytes if facts else 0)
    if not memory:
        raise ConfigError(
            f"The accelerator {name!r} is not in the table; give memory_gib, capability, bandwidth_gb_s and "
            f"tflops beside it, or one of these names: {', '.join(known_accelerators())}."
        )
    capability = facts.capability if facts else None
    if stated := described.get("capability"):
        capability = _capability(stated)
    return Machine(
        "gpu", cores, memory, _count(described, "devices", 1),
        name=name, ram_bytes=ram, capability=capability,
        link=_link(described) or (facts.link if facts else ""),
        bandwidth=facts.bandwidth if facts else 0.0,
        flops=facts.flops if facts else 0.0,
        flops8=facts.flops8 if facts else 0.0,
    )  # fmt: skip


def _link(described: Mapping[str, Any]) -> str:
    """The link that is described; empty where none is."""
    link = described.get("link") or ""
    if link and link not in LINKS:
        raise ConfigError(
            f"link of a machine is {link!r}; known: {', '.join(LINKS)}. Leave it out where it is another."
        )
    return link


def _capability(stated: object) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)(?:\.(\d+))?", str(stated))
    if found is None:
        raise ConfigError(f"capability of a machine is {stated!r}; a version such as 9.0 is expected.")
    return int(found[1]), int(found[2] or 0)


def _even(cores: int, memory: int, count: int) -> tuple[NumaNode, ...]:
    share = max(1, cores // count)
    return tuple(NumaNode(tuple(range(i * share, (i + 1) * share)), memory // count) for i in range(count))


def _number(described: Mapping[str, Any], key: str, default: float) -> float:
    if key not in described:
        return default
    value = described[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST:
        raise ConfigError(f"{key} of a machine is {value!r}; a number above 0 is expected.")
    return float(value)


def _count(described: Mapping[str, Any], key: str, default: int) -> int:
    value = _number(described, key, default)
    if value != int(value) or value > _MOST_COUNTED:
        raise ConfigError(
            f"{key} of a machine is {described[key]!r}; a whole number is expected, 1 to {_MOST_COUNTED}."
        )
    return int(value)


def as_described(machine: Machine) -> dict[str, Any]:
    """The machine for people and for JSON, without what is unknown."""
    shown = {f.name: getattr(machine, f.name) for f in fields(machine)}
    shown["numa"] = [{"cores": list(n.cores), "memory_bytes": n.memory_bytes} for n in machine.numa]
    return {key: value for key, value in shown.items() if value not in ("", 0, 0.0, None, [], ())}
