"""From a model's facts, a machine and a wish to an engine plan, or a refusal that names what would run.

Pure: facts in, plan out. The launcher asks before it starts anything, so that a size that cannot run is
refused in a sentence and not in a stack trace of the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from core.types import EnginePlan
from generation.plan_alternatives import alternatives
from generation.plan_batch import PROMPT_OVERHEAD, longest, most_at_once
from generation.plan_bounds import bounds
from generation.plan_languages import known_languages
from generation.plan_machine import Machine
from generation.plan_memory import (
    RankMemory,
    grouped_layers,
    whole_kv_bytes_per_token,
)
from generation.plan_model import ModelFacts
from generation.plan_parallel import Layout, layout_of, layouts, nodes_for, rank_cores
from generation.plan_quant import DTYPE_BYTES, compute_dtype
from generation.plan_ram import host_engine_bytes, vector_page_bytes
from generation.plan_rules import block_size_for, check_formats, check_ranks, prefix_caching_for
from generation.plan_size import Sizing, best_split
from generation.plan_tree import Defaults, choose, decide
from generation.plan_wish import Branch, Planned, PlanRefused, Wish

_MIB = 1 << 20


def make_plan(
    facts: ModelFacts,
    machine: Machine,
    wish: Wish,
    *,
    tokenizer: str = "",
    languages: tuple[str, ...] = (),
) -> Planned:
    """Work out what the engine runs with.

    Args:
        facts: the model.
        machine: where it runs.
        wish: what was asked for; lengths and sequence counts are cut to what fits, sizes that cannot run
            are refused.
        tokenizer: where the tokenizer lives; default the model's name.
        languages: default `known_languages`.

    Raises:
        PlanRefused: formats, ranks, block size or memory cannot work; it has the changes that would.
    """

    def plan(facts: ModelFacts, machine: Machine, wish: Wish) -> Planned:
        return _plan(facts, machine, wish, tokenizer=tokenizer, languages=languages)

    try:
        return plan(facts, machine, wish)
    except PlanRefused as refused:
        tried = alternatives(plan, facts, machine, wish)
        raise PlanRefused(refused.reasons, tried, refused.hint) from None


def _plan(
    facts: ModelFacts, machine: Machine, wish: Wish, *, tokenizer: str, languages: tuple[str, ...]
) -> Planned:
    check_formats(facts, machine, wish)
    check_ranks(facts, machine, wish)
    block = block_size_for(facts, machine, wish)
    notes: list[str] = []
    if not machine.on_cpu and machine.free_share < wish.memory_share:
        notes.append(
            f"other processes hold {machine.taken_bytes >> 20} MiB of an accelerator: memory_share cut "
            f"from {wish.memory_share} to {machine.free_share:.2f}"
        )
        wish = replace(wish, memory_share=round(machine.free_share, 2))
    dtype, dtype_note = compute_dtype(facts.dtype, machine.capability)
    if wish.dtype != "auto":
        dtype, dtype_note = wish.dtype, ""
    computed = facts.computed_in(dtype)
    defaults, taken = decide(computed, machine, wish)
    branches = (taken[0], _format(computed, machine, dtype, dtype_note), *taken[1:])
    element = DTYPE_BYTES.get(dtype, 2) if wish.kv_cache_dtype == "auto" else DTYPE_BYTES["fp8"]

    @cache
    def sized(layout: Layout) -> Sizing:
        return best_split(computed, machine, wish, defaults, layout, element)

    def room(layout: Layout) -> int:
        if computed.weight_bytes // layout.ranks > machine.memory_bytes:
            return 0  # no division of layers can help
        return min(sized(layout).kv_tokens, sized(layout).room)

    layout, branch = _layout(computed, machine, wish, defaults, room)
    sizing = sized(layout)
    _check_memory(computed, machine, wish, sizing)
    return _composed(
        computed, machine, wish, defaults, sizing, block, element,
        dtype=dtype if dtype != facts.dtype or wish.dtype != "auto" else "auto",
        tokenizer=tokenizer, languages=languages,
        notes=[*notes, *filter(None, [dtype_note])], branches=(*branches, branch),
    )  # fmt: skip


def _format(facts: ModelFacts, machine: Machine, dtype: str, note: str) -> Branch:
    question = "Which number format?"
    if facts.quantization:
        return Branch(question, facts.quantization.label, f"the checkpoint's own; computes in {dtype}")
    if note:
        return Branch(question, dtype, note)
    whole = machine.memory_bytes * (1 if machine.on_cpu else machine.devices)
    if 2 * facts.weight_bytes > whole:
        return Branch(question, dtype, "as stored; an 8- or 4-bit checkpoint would leave more for KV")
    return Branch(question, dtype, "as stored; the weights take less than half of the memory")


def _layout(
    facts: ModelFacts, machine: Machine, wish: Wish, defaults: Defaults, room: Callable[[Layout], int]
) -> tuple[Layout, Branch]:
    tp, pp = wish.tensor_parallel, wish.pipeline_parallel
    if tp and pp:
        named = layout_of(facts, tp, pp, nodes_for(tp, pp, machine))
        return named, Branch("Which ranks?", f"TP {tp} × PP {pp}", "as asked")
    if machine.on_cpu:
        tried = [layout_of(facts, n, pp or 1, 1) for n in sorted({tp or 1, tp or machine.memories})]
        legal = [one for one in tried if _runs(facts, machine, one, defaults.eager)]
    else:
        legal = [
            one for one in layouts(facts, machine) if (not tp or one.tp == tp) and (not pp or one.pp == pp)
        ]
    chosen, branch = choose(facts, machine, wish, defaults, legal, room)
    if chosen is None:
        chosen = max(legal, key=room, default=layout_of(facts, tp or 1, pp or 1, 1))
    return chosen, branch


def _runs(facts: ModelFacts, machine: Machine, layout: Layout, eager: bool) -> bool:
    try:
        asked = Wish(tensor_parallel=layout.tp, pipeline_parallel=layout.pp, enforce_eager=eager)
        check_ranks(facts, machine, asked)
    except PlanRefused:
        return False
    return True


def _check_memory(facts: ModelFacts, machine: Machine, wish: Wish, sizing: Sizing) -> None:
    if sizing.kv_tokens <= sizing.room and sizing.room > 0:
        return
    fullest = max(sizing.memories, key=lambda m: m.weights)
    kv = max(sizing.per_token) * sizing.kv_tokens if wish.kv_cache_bytes else 0
    need = fullest.weights + fullest.activations + fullest.fixed + kv
    what = "rank" if sizing.layout.ranks > 1 else "engine"
    reason = (
        f"{facts.name} needs {need // _MIB} MiB for weights, buffers and KV on its fullest {what}; "
        f"{fullest.budget // _MIB} MiB may be used"
    )
    if wish.kv_cache_bytes and sizing.room > 0:
        most = sizing.room * sum(sizing.per_token) * sizing.layout.tp
        raise PlanRefused((reason,), hint=f"Set GEO_GENERATION__KV_CACHE_BYTES to at most {most}.")
    raise PlanRefused((reason,), hint="Use a smaller or quantized model, or more ranks.")


def _composed(
    facts: ModelFacts,
    machine: Machine,
    wish: Wish,
    defaults: Defaults,
    sizing: Sizing,
    block: int,
    element: int,
    *,
    dtype: str,
    tokenizer: str,
    languages: tuple[str, ...],
    notes: list[str],
    branches: tuple[Branch, ...],
) -> Planned:
    layout = sizing.layout
    whole = whole_kv_bytes_per_token(facts, layout, element_bytes=element)
    blocks = sizing.kv_tokens // block
    tokens = blocks * block
    length = longest(facts, wish, defaults, tokens, whole, notes)
    sequences = most_at_once(facts, wish, defaults, tokens, length, notes)
    notes += _layout_notes(facts, layout)
    rank_kv = max(sizing.per_token) * tokens
    host = host_engine_bytes(machine, layout, sizing.memories, rank_kv=rank_kv)
    plan = EnginePlan(
        model=facts.name,
        tokenizer=tokenizer or facts.name,
        languages=languages or known_languages(facts.name),
        max_model_len=length,
        answer_reserve=wish.answer_reserve,
        context_budget=length - wish.answer_reserve - PROMPT_OVERHEAD,
        block_size=block,
        kv_blocks=blocks,
        kv_free_share=1.0,
        tp=layout.tp,
        pp=layout.pp,
        vector_page_bytes=vector_page_bytes(machine, engine_bytes=host),
    )
    return Planned(
        plan=plan,
        kv_bytes_per_token=whole,
        max_num_seqs=sequences,
        weight_bytes=facts.weight_bytes,
        enforce_eager=defaults.eager,
        notes=tuple(notes),
        max_num_batched_tokens=max(defaults.batched_tokens, sequences),
        kv_rank_bytes=rank_kv,
        kv_exact=machine.on_cpu or wish.kv_cache_bytes > 0,
        dtype=dtype,
        kv_cache_dtype=wish.kv_cache_dtype,
        memory_share=wish.memory_share,
        prefix_caching=prefix_caching_for(facts, machine),
        layout=layout,
        replicas=1 if machine.on_cpu else _replicas(machine, layout),
        host_bytes=host,
        engine_blocks=blocks * facts.cached_layers // grouped_layers(facts),
        cores=rank_cores(machine, layout),
        profile=defaults.profile,
        branches=branches,
        bounds=bounds(
            facts,
            machine,
            layout,
            block_size=block,
            batch=sequences,
            prompt=length - wish.answer_reserve,
            answer=wish.answer_reserve,
            element_bytes=element,
        ),
        rank=_fullest(sizing, tokens),
        quantization=facts.quantization.label if facts.quantization else "",
    )


def _layout_notes(facts: ModelFacts, layout: Layout) -> list[str]:
    notes: list[str] = []
    if layout.replicated > 1:
        notes.append(f"every KV head is kept {layout.replicated} times, so that each rank has one")
    if facts.stateful_layers:
        notes.append(f"{facts.stateful_layers} layers keep a state instead of KV; it is not in these figures")
    return notes


def _fullest(sizing: Sizing, tokens: int) -> RankMemory:
    """The rank with the least memory left, with what its KV blocks take."""
    filled = [
        replace(memory, kv=tokens * one)
        for memory, one in zip(sizing.memories, sizing.per_token, strict=True)
    ]
    return max(filled, key=lambda m: m.weights + m.kv)


def _replicas(machine: Machine, layout: Layout) -> int:
    if layout.nodes > 1:
        return max(1, machine.nodes // layout.nodes)
    return machine.nodes * (machine.devices // layout.ranks)
