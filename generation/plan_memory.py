"""Memory: what a rank holds, and how many tokens its KV blocks keep. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from generation.plan_machine import Machine
from generation.plan_model import ModelFacts
from generation.plan_parallel import Layout, stage_parameters

GIB = 1 << 30
RAM_SHARE = 0.85  # of the RAM, for weights and KV; the rest is the other processes and the page cache
RANK_BYTES = 700 << 20  # of a rank in a process of its own on the CPU: interpreter, torch, buffers; measured
_GPU_FIXED = 3 * GIB // 2  # context, communication buffers and captured graphs of a rank
_LOGIT_BYTES = 4 * 3  # float32 logits, their sorted copy and probabilities, per sequence and vocabulary entry


@dataclass(frozen=True, slots=True)
class RankMemory:
    """Bytes of the ranks of one stage (the fullest, where one is shown).

    Attributes:
        weights: of the stage, divided by the tensor size.
        activations: of the largest step, with logits.
        fixed: what every rank process costs.
        kv: left for KV blocks.
        budget: the part of the memory that the engine may take.
    """

    weights: int
    activations: int
    fixed: int
    kv: int
    budget: int


def rank_weights(facts: ModelFacts, layout: Layout) -> tuple[int, ...]:
    """Weights of a rank of each stage; what every rank holds whole (norms) is below 0.1 %."""
    per_parameter = facts.weight_bytes / max(1, facts.parameters)
    if layout.pp == 1:
        return (int(facts.weight_bytes / layout.tp),)
    return tuple(int(n * per_parameter / layout.tp) for n in stage_parameters(facts, layout.split))


def activation_bytes(facts: ModelFacts, layout: Layout, *, batched_tokens: int, sequences: int) -> int:
    """The largest step's buffers: a few hidden states and one MLP's middle per token, and the logits.

    The factor of four hidden states was taken from the shapes of a decoder layer; the engine measures its own
    peak at start, against which the plan is checked (`generation/plan_check.py`).
    """
    middle = max(facts.intermediate, facts.expert_intermediate * max(1, facts.experts_per_token))
    per_token = (4 * facts.hidden + 3 * middle // layout.tp) * facts.dtype_bytes
    logits = sequences * (facts.vocab // layout.tp) * _LOGIT_BYTES
    return batched_tokens * per_token + logits


def rank_kv_bytes_per_token(facts: ModelFacts, layout: Layout, *, element_bytes: int) -> tuple[int, ...]:
    """Of each stage's ranks, one after the other: keys and values of one token on one rank.

    Layers without a cache are counted as spread evenly; all-windowed layers keep every token here, which is
    what a sequence shorter than the window needs.
    """
    share = facts.cached_layers / facts.layers
    one = facts.cached_elements(layout.tp) * element_bytes
    return tuple(max(1, round(count * share)) * one for count in layout.split)


def whole_kv_bytes_per_token(facts: ModelFacts, layout: Layout, *, element_bytes: int) -> int:
    """Over all ranks, replicated KV heads counted as often as they are kept."""
    return layout.tp * sum(rank_kv_bytes_per_token(facts, layout, element_bytes=element_bytes))


def sequence_kv_tokens(facts: ModelFacts, length: int, chunk: int = 0) -> float:
    """Full-attention-equivalent tokens that a sequence of `length` keeps: windowed layers keep a window.

    Args:
        facts: the model.
        length: of the sequence, in tokens.
        chunk: tokens of one step, which a windowed layer keeps beside its window.
    """
    kept = facts.window + chunk
    if not facts.window_layers or length <= kept:
        return float(length)
    windowed = facts.window_layers / max(1, facts.cached_layers)
    return length * (1 - windowed) + kept * windowed


def longest_sequence(facts: ModelFacts, kv_tokens: int, chunk: int = 0) -> int:
    """The longest sequence whose `sequence_kv_tokens` are no more than `kv_tokens`."""
    kept = facts.window + chunk
    if not facts.window_layers or kv_tokens <= kept:
        return kv_tokens
    windowed = facts.window_layers / max(1, facts.cached_layers)
    if windowed >= 1:
        return facts.max_positions
    return int((kv_tokens - kept * windowed) / (1 - windowed))


def grouped_layers(facts: ModelFacts) -> int:
    """Layers that share a KV block in the engine.

    Layers of one kind are all in one group. Where some look at a window, vLLM makes groups of as many layers
    as the rarer kind has, or the commoner one where that is less than half more.
    """
    windowed, full = facts.window_layers, facts.cached_layers - facts.window_layers
    if not windowed or not full:
        return max(1, facts.cached_layers)
    few, many = sorted((windowed, full))
    return many if many < 1.5 * few else few


def rank_budget(machine: Machine, layout: Layout, share: float) -> int:
    """Bytes of its memory that one rank may take: of an accelerator, or an even part of the RAM.

    Ranks of a CPU with several memories sit on one memory each as long as they are no more than those.
    """
    if not machine.on_cpu:
        return int(machine.memory_bytes * share)
    usable = int(machine.memory_bytes * RAM_SHARE)
    if 1 < len(machine.numa) >= layout.ranks_on_node:
        smallest = min(node.memory_bytes for node in machine.numa)
        return min(int(smallest * RAM_SHARE), usable // layout.ranks_on_node)
    return usable // layout.ranks_on_node


def stage_memories(
    facts: ModelFacts, machine: Machine, layout: Layout, *, share: float, batched_tokens: int, sequences: int
) -> tuple[RankMemory, ...]:
    """What a rank of each stage holds.

    Args:
        facts: the model.
        machine: where it runs.
        layout: the ranks.
        share: of an accelerator's memory that the engine may take.
        batched_tokens: tokens of the largest step.
        sequences: of the largest step.
    """
    activations = activation_bytes(facts, layout, batched_tokens=batched_tokens, sequences=sequences)
    fixed = _GPU_FIXED if not machine.on_cpu else (RANK_BYTES if layout.ranks > 1 else 0)
    budget = rank_budget(machine, layout, share)
    return tuple(
        RankMemory(weights, activations, fixed, budget - weights - activations - fixed, budget)
        for weights in rank_weights(facts, layout)
    )


def kv_token_room(memories: Sequence[RankMemory], per_token: Sequence[int]) -> int:
    """Tokens that the stages can keep; the one with the least room decides."""
    return min(max(0, memory.kv) // max(1, one) for memory, one in zip(memories, per_token, strict=True))
