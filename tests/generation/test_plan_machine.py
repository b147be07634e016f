from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ConfigError
from generation.plan import make_plan
from generation.plan_devices import accelerator, known_accelerators
from generation.plan_machine import GIB, Machine, NumaNode, as_described, machine_from
from generation.plan_model import model_facts
from generation.plan_parallel import layout_of, rank_cores
from generation.plan_probe import cpu_machine, machine_from_smi, measured, this_machine
from generation.plan_wish import Wish
from tests.generation.plan_models import SMOLLM2

_LISTED = "NVIDIA H100 80GB HBM3, 81559, 9.0, 4\n" * 8
_NVLINK = "\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n"
_PCIE = "\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n"


@pytest.mark.parametrize(
    ("name", "key", "gb_s"),
    [
        ("NVIDIA H100 80GB HBM3", "h100", 3350),
        ("NVIDIA H100 PCIe", "h100 pcie", 2000),
        ("NVIDIA H200", "h200", 4800),
        ("NVIDIA A100-SXM4-40GB", "a100 40gb", 1555),
        ("NVIDIA A100-SXM4-80GB", "a100", 2039),
        ("NVIDIA GeForce RTX 4090", "rtx 4090", 1008),
        ("Tesla T4", "t4", 320),
        ("NVIDIA L40S", "l40s", 864),
    ],
)
def test_the_drivers_name_finds_the_data_sheet(name: str, key: str, gb_s: float) -> None:
    found = accelerator(name)
    assert found is not None
    assert (found.name, found.bandwidth) == (key, gb_s * 1e9)


def test_an_unknown_accelerator_needs_its_figures() -> None:
    assert accelerator("Voodoo 2") is None
    with pytest.raises(ConfigError, match=r"memory_gib.*h100"):
        machine_from({"gpu": "Voodoo 2", "devices": 8})
    described = machine_from(
        {"gpu": "Voodoo 2", "devices": 2, "memory_gib": 48, "capability": "9.0", "bandwidth_gb_s": 1000}
    )
    assert (described.memory_bytes, described.capability, described.bandwidth) == (48 * GIB, (9, 0), 1e12)


@pytest.mark.parametrize("name", known_accelerators())
def test_every_accelerator_of_the_table_can_be_described(name: str) -> None:
    machine = machine_from({"gpu": name, "devices": 8, "nodes": 2, "cores": 96, "ram_gib": 1024})
    assert machine.memory_bytes >= 14 * GIB
    assert machine.bandwidth > 0
    assert (machine.ranks_per_node, machine.memories, machine.total_ram) == (8, 8, 1024 * GIB)


@pytest.mark.parametrize(
    "described",
    [{"gpus": 8}, {"device": "cpu"}, {"gpu": "h100", "devices": 0}, {"gpu": "h100", "nodes": "two"},
     {"gpu": "h100", "capability": "nine"}, {"device": "cpu", "ram_gib": 8, "isa": "avx512"},
     {"device": "cpu", "ram_gib": float("nan")}, {"device": "cpu", "ram_gib": float("inf")},
     {"device": "cpu", "ram_gib": 8, "cores": 0.5}, {"device": "cpu", "ram_gib": 8, "numa_nodes": 1.5},
     {"device": "tpu", "ram_gib": 8}, {"gpu": "h100", "nodes": 100_000},
     {"gpu": "h100", "devices": 1e300}, {"gpu": "h100", "nodes": 10**30}],
)  # fmt: skip
def test_a_description_with_a_mistake_is_refused(described: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        machine_from(described)


@pytest.mark.parametrize(
    ("described", "known"),
    [
        (
            {"device": "cpu", "ram_gib": 8, "isa": ["avx512", "avx9"]},
            r"'avx9'.*avx512, avx512_bf16, amx_bf16",
        ),
        ({"device": "cpu", "ram_gib": 8, "isa": [["avx512"]]}, "known: avx512"),
        ({"gpu": "h100", "link": "rope"}, "'rope'; known: nvlink, pcie"),
        ({"device": "cpu", "ram_gib": 8, "link": 3}, "3; known: nvlink, pcie"),
    ],
)
def test_an_unknown_isa_or_link_is_refused_with_the_known_ones(
    described: dict[str, object], known: str
) -> None:
    with pytest.raises(ConfigError, match=known):
        machine_from(described)


@pytest.mark.parametrize(("topology", "link"), [(_NVLINK, "nvlink"), (_PCIE, "pcie"), ("", "nvlink")])
def test_the_drivers_list_becomes_a_machine(topology: str, link: str) -> None:
    machine = machine_from_smi(_LISTED, topology=topology, cores=96)
    assert machine is not None
    assert (machine.devices, machine.capability, machine.link) == (8, (9, 0), link)
    assert machine.memory_bytes == 81559 << 20


def test_accelerators_of_two_kinds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = "NVIDIA L4, 23034, 8.9, 1\nTesla T4, 15360, 7.5, 1\n"
    with pytest.raises(ConfigError, match="CUDA_VISIBLE_DEVICES"):
        machine_from_smi(mixed, topology="", cores=8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    machine = machine_from_smi(mixed, topology="", cores=8)
    assert machine is not None
    assert (machine.name, machine.devices) == ("Tesla T4", 1)


def test_memory_that_others_hold_is_not_planned() -> None:
    listed = "NVIDIA L4, 23034, 8.9, 1\n" + "NVIDIA L4, 23034, 8.9, 9000\n"
    machine = machine_from_smi(listed, topology="", cores=8)
    assert machine is not None
    assert machine.taken_bytes == 9000 << 20
    planned = make_plan(model_facts(SMOLLM2, name="m"), machine, Wish())
    assert planned.memory_share == pytest.approx(0.98 - 9000 / 23034, abs=0.01)
    assert "other processes hold" in planned.notes[0]
    assert planned.rank is not None
    assert planned.rank.budget + machine.taken_bytes < machine.memory_bytes


def test_no_accelerators_are_no_machine() -> None:
    assert machine_from_smi("", topology="", cores=8) is None


def _tree(root: Path, *, memory_max: str = "max", cpu_max: str = "max 100000") -> Path:
    """Two sockets of two cores with two threads each, on a machine without the allowed cores' limits."""
    files = {
        "proc/cpuinfo": "model name\t: Xeon\nflags\t\t: fpu avx512f avx512_bf16 amx_bf16\n",
        "sys/fs/cgroup/memory.max": memory_max,
        "sys/fs/cgroup/cpu.max": cpu_max,
        "sys/devices/system/node/node0/cpulist": "0",
        "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:       8388608 kB",
        "sys/devices/system/node/node1/cpulist": "1",
        "sys/devices/system/node/node1/meminfo": "Node 1 MemTotal:       8388608 kB",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_a_containers_limits_are_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("generation.plan_probe._allowed", lambda: (0, 1))
    root = _tree(tmp_path, memory_max=str(2 * GIB), cpu_max="100000 100000")
    machine = cpu_machine(root)
    assert (machine.memory_bytes, machine.cores, machine.memories) == (2 * GIB, 1, 2)
    assert machine.core_ids == (0,)
    assert machine.isa == ("avx512", "avx512_bf16", "amx_bf16")
    monkeypatch.setattr("generation.plan_probe._allowed", lambda: (0,))
    bound = cpu_machine(_tree(tmp_path))
    assert (bound.memories, bound.memory_bytes) == (1, 8 * GIB)
    monkeypatch.setattr("generation.plan_probe._allowed", lambda: (0, 1))
    free = cpu_machine(_tree(tmp_path))
    assert free.memory_bytes > 2 * GIB
    assert free.cores == 2


def test_cores_are_known_by_number_where_memories_are_not(tmp_path: Path) -> None:
    machine = cpu_machine(tmp_path)
    assert len(machine.core_ids) == machine.cores
    assert machine.memories == 1


def test_this_machine_is_found_and_measured() -> None:
    machine = measured(this_machine())
    assert machine.cores >= 1
    assert machine.memory_bytes > GIB
    assert machine.bandwidth > 1e9
    assert machine.flops > 1e9
    assert as_described(machine)["device"] == machine.device


def test_every_core_is_bound_once() -> None:
    facts = model_facts(SMOLLM2, name="m")

    def bound(count: int, tp: int, nodes: int = 1) -> list[tuple[int, ...]]:
        share = count // nodes
        numa = tuple(NumaNode(tuple(range(i * share, (i + 1) * share)), GIB) for i in range(nodes))
        machine = Machine("cpu", cores=count, memory_bytes=GIB, numa=numa)
        return list(rank_cores(machine, layout_of(facts, tp, 1, 1)))

    assert bound(2, 1) == [(0, 1)]
    assert bound(2, 2) == [(0,), (1,)]
    assert bound(5, 2) == [(0, 1), (2, 3, 4)]
    assert bound(1, 2) == [(0,), (0,)]
    assert bound(8, 2, nodes=2) == [(0, 1, 2, 3), (4, 5, 6, 7)]
