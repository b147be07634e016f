"""What would run instead of a refused wish. Every alternative was planned and accepted. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from generation.plan_machine import Machine
from generation.plan_model import ModelFacts
from generation.plan_parallel import layouts
from generation.plan_quant import Quantization
from generation.plan_wish import Alternative, Planned, PlanRefused, Wish

_MOST = 4
_LAYOUTS_TRIED = 48  # each is a plan of its own; fewer ranks are tried first
_SHORTER = (8192, 4096, 2048, 1024)
_MORE_NODES = (2, 3, 4, 6, 8, 16, 32)
_STORED = (Quantization("fp8", 8, floating=True, activation_bits=8), Quantization("awq", 4, 128))

Plan = Callable[[ModelFacts, Machine, Wish], Planned]


def alternatives(plan: Plan, facts: ModelFacts, machine: Machine, wish: Wish) -> tuple[Alternative, ...]:
    """Up to four changes that are accepted: of settings first, then of the checkpoint, then of the machine.

    Args:
        plan: makes a plan or raises `PlanRefused`.
        facts: the model.
        machine: where it should run.
        wish: what was refused.
    """
    found: list[Alternative] = []
    for change, text in _settings(facts, machine, wish):
        if _accepted(plan, facts, machine, replace(wish, **change)):
            found.append(Alternative(change, text))
        if len(found) == _MOST:
            return tuple(found)
    free = replace(wish, tensor_parallel=0, pipeline_parallel=0, kv_cache_bytes=0)
    for stored in _STORED if facts.quantization is None else ():
        smaller = _stored_as(facts, stored)
        if not found and _accepted(plan, smaller, machine, free):
            size = smaller.weight_bytes / (1 << 30)
            found.append(Alternative({}, f"a checkpoint in {stored.label} (weights {size:.1f} GiB)"))
    for nodes in _MORE_NODES if not found and not machine.on_cpu else ():
        if nodes > machine.nodes and _accepted(plan, facts, replace(machine, nodes=nodes), free):
            return (Alternative({"nodes": nodes}, f"{nodes} such nodes"),)
    return tuple(found)


def _settings(facts: ModelFacts, machine: Machine, wish: Wish) -> Iterator[tuple[Mapping[str, Any], str]]:
    tp, pp = wish.tensor_parallel, wish.pipeline_parallel
    if tp or pp:
        tried = list(layouts(facts, machine, eager=wish.enforce_eager))[:_LAYOUTS_TRIED]
        near = max(1, tp) * max(1, pp)
        tried.sort(key=lambda one: (abs(one.tp - max(1, tp)), abs(one.ranks - near), one.pp))
        for one in tried:
            change = {"tensor_parallel": one.tp, "pipeline_parallel": one.pp}
            yield change, f"tensor parallel {one.tp} with pipeline parallel {one.pp}"
    if wish.kv_cache_bytes:
        yield {"kv_cache_bytes": 0}, "a KV cache as large as fits (GEO_GENERATION__KV_CACHE_BYTES=0)"
    for length in _SHORTER:
        if length < (wish.max_model_len or _SHORTER[0]):
            yield {"max_model_len": length}, f"sequences of {length} tokens"
    if wish.kv_cache_dtype == "auto" and not machine.on_cpu:
        yield {"kv_cache_dtype": "fp8"}, "an fp8 KV cache (GEO_GENERATION__KV_CACHE_DTYPE=fp8)"
    if wish.kv_cache_dtype != "auto":
        yield {"kv_cache_dtype": "auto"}, "a KV cache in the weights' type"
    if wish.dtype != "auto":
        yield {"dtype": "auto"}, "GEO_GENERATION__DTYPE=auto"
    if wish.block_size:
        yield {"block_size": 0}, "the kernels' own block size (GEO_GENERATION__BLOCK_SIZE=0)"
    if wish.enforce_eager:
        yield {"enforce_eager": None}, "compiled (GEO_GENERATION__ENFORCE_EAGER=false)"
    if tp and not pp:
        yield {"tensor_parallel": 0}, "a tensor size that the plan chooses"


def _accepted(plan: Plan, facts: ModelFacts, machine: Machine, wish: Wish) -> bool:
    try:
        plan(facts, machine, wish)
    except PlanRefused:
        return False
    return True


def _stored_as(facts: ModelFacts, stored: Quantization) -> ModelFacts:
    tables = facts.embedding_parameters * (1 if facts.tied else 2)
    packed = (facts.parameters - tables) * stored.stored_bits / 8
    return replace(facts, quantization=stored, weight_bytes=int(packed) + tables * facts.dtype_bytes)
