"""From the plan to the engine's arguments and environment: the single place where the two meet.

Pure: nothing is imported from vLLM and nothing is set; `generation/engine.py` does both.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from generation.plan_parallel import engine_split
from generation.plan_wish import Planned


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
        "enable_prefix_caching": planned.prefix_caching,
        "dtype": planned.dtype,
        "kv_cache_dtype": planned.kv_cache_dtype,
        "scheduling_policy": "priority",
        "structured_outputs_config": {"backend": "xgrammar"},
        "disable_log_stats": False,
        "seed": 0,
    }
    if planned.max_num_batched_tokens:
        arguments["max_num_batched_tokens"] = planned.max_num_batched_tokens
    if planned.kv_exact:
        arguments["kv_cache_memory_bytes"] = planned.kv_rank_bytes  # of each rank
    else:
        arguments["gpu_memory_utilization"] = planned.memory_share
    return arguments


def computes_in_core(planned: Planned, *, device: str) -> bool:
    """Whether the only rank computes inside the engine's core instead of in a process of its own."""
    return device == "cpu" and planned.plan.tp * planned.plan.pp == 1


def engine_environment(planned: Planned, cores: Sequence[int], *, device: str) -> dict[str, str]:
    """What vLLM reads once, at import or when its processes start; what an operator has set stays.

    Args:
        planned: see `generation.plan.make_plan`.
        cores: ids of the cores that this process may use, for a plan that names none.
        device: `cpu` or `gpu`.
    """
    plan = planned.plan
    variables = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_LOGGING_STREAM": "ext://sys.stderr",  # stdout belongs to --json
        "VLLM_ENGINE_READY_TIMEOUT_S": "600",
    }
    if planned.layout and planned.layout.split != engine_split(sum(planned.layout.split), plan.pp):
        variables["VLLM_PP_LAYER_PARTITION"] = ",".join(map(str, planned.layout.split))
    if device == "cpu":
        variables["VLLM_CPU_OMP_THREADS_BIND"] = omp_binding(planned.cores or (cores,))
    return variables


def omp_binding(groups: Sequence[Sequence[int]]) -> str:
    """Cores of each rank, as `VLLM_CPU_OMP_THREADS_BIND` has them.

    The engine's own choice keeps one core per rank free, which on two cores halves the speed.
    """
    return "|".join(",".join(map(str, group)) for group in groups)
