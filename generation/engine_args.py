"""From the plan to the engine's arguments and environment: the single place where the two meet.

Pure: nothing is imported from vLLM and nothing is set; `generation/engine.py` does both.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from generation.plan import Planned


def engine_arguments(planned: Planned, pack: Path, *, device: str) -> dict[str, Any]:
    """Keyword arguments of `AsyncEngineArgs`.

    Args:
        planned: see `generation.plan.make_plan`.
        pack: folder of the model.
        device: `cpu` or `gpu`.
    """
    plan = planned.plan
    arguments: dict[str, Any] = {
        "model": str(pack),
        "served_model_name": [plan.model],
        "max_model_len": plan.max_model_len,
        "max_num_seqs": planned.max_num_seqs,
        "block_size": plan.block_size,
        "tensor_parallel_size": plan.tp,
        "pipeline_parallel_size": plan.pp,
        "enforce_eager": planned.enforce_eager,
        "enable_prefix_caching": True,
        "scheduling_policy": "priority",
        "structured_outputs_config": {"backend": "xgrammar"},
        "disable_log_stats": False,
        "seed": 0,
    }
    if device == "cpu":
        arguments["kv_cache_memory_bytes"] = plan.kv_blocks * plan.block_size * planned.kv_bytes_per_token
    return arguments


def computes_in_core(planned: Planned, *, device: str) -> bool:
    """Whether the only rank computes inside the engine's core instead of in a process of its own."""
    return device == "cpu" and planned.plan.tp * planned.plan.pp == 1


def engine_environment(planned: Planned, cores: Sequence[int], *, device: str) -> dict[str, str]:
    """What vLLM reads once, at import or when its processes start; what an operator has set stays.

    Args:
        planned: see `generation.plan.make_plan`.
        cores: ids of the cores that this process may use, ascending.
        device: `cpu` or `gpu`.
    """
    variables = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_LOGGING_STREAM": "ext://sys.stderr",  # stdout belongs to --json
        "VLLM_ENGINE_READY_TIMEOUT_S": "600",
    }
    if device == "cpu":
        variables["VLLM_CPU_OMP_THREADS_BIND"] = omp_binding(cores, planned.plan.tp * planned.plan.pp)
    return variables


def omp_binding(cores: Sequence[int], ranks: int) -> str:
    """Cores of each rank, as `VLLM_CPU_OMP_THREADS_BIND` has them: even shares, all cores used.

    The engine's own choice keeps one core per rank free, which on two cores halves the speed.
    """
    share = max(1, len(cores) // ranks)
    groups = [cores[i * share : (i + 1) * share] for i in range(ranks)]
    if ranks * share < len(cores):
        groups[-1] = cores[(ranks - 1) * share :]
    return "|".join(",".join(map(str, group or cores[-1:])) for group in groups)
