"""One plan for the RAM of a machine: engine, other processes, vector pages, the rest. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from generation.plan_machine import Machine
from generation.plan_memory import RAM_SHARE, RankMemory
from generation.plan_parallel import Layout
from generation.plan_wish import Planned

STACK_BYTES = 3 << 30  # resident size of the other workers and the API, measured with the default packs
_PAGE_SHARE = 0.25  # of what is left, for the cache of vector pages
_GPU_HOST_BYTES = 2 << 30  # host memory of a rank that computes on an accelerator: context, pinned buffers


def host_engine_bytes(
    machine: Machine, layout: Layout, memories: Sequence[RankMemory], *, rank_kv: int
) -> int:
    """RAM that the engine takes on the fullest node."""
    if not machine.on_cpu:
        return layout.ranks_on_node * _GPU_HOST_BYTES
    stages = sorted((m.weights + m.fixed for m in memories), reverse=True)
    on_node = stages[: max(1, layout.pp // layout.nodes)]
    return layout.tp * sum(one + rank_kv for one in on_node)


def vector_page_bytes(machine: Machine, *, engine_bytes: int) -> int:
    """The vector page cache's part of what the engine and the other processes leave of the RAM.

    The rest is for search structures and the system's own file cache, from which missed pages are read. A
    larger KV cache shrinks the page cache and the other way round, so one number divides the machine.
    """
    left = int(machine.total_ram * RAM_SHARE) - engine_bytes - STACK_BYTES
    return max(0, int(left * _PAGE_SHARE))


def memory_shares(planned: Planned, machine: Machine) -> dict[str, int]:
    """Bytes of the RAM that each part of one machine gets; empty where its RAM is not known.

    `rest` is for search structures, tokenizers, parsers and the system's file cache.
    """
    if not machine.total_ram:
        return {}
    kv = planned.kv_rank_bytes * planned.plan.tp * planned.plan.pp if machine.on_cpu else 0
    parts = {
        "engine": max(0, planned.host_bytes - kv),
        "kv_blocks": kv,
        "other_processes": STACK_BYTES,
        "vector_pages": planned.plan.vector_page_bytes,
    }
    return {**parts, "rest": max(0, machine.total_ram - sum(parts.values()))}
