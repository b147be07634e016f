"""Roofs of speed and waste that a plan can be measured against. Pure.

Decoding reads all weights that a step touches and the keys and values of every sequence: tokens/s stay below
bandwidth / bytes. Reading a prompt multiplies every weight with every token: its time stays above
operations / (operations per second). Williams et al., "Roofline", CACM 2009, doi:10.1145/1498765.1498785.
"""

from __future__ import annotations

from dataclasses import dataclass

from generation.plan_machine import Machine
from generation.plan_memory import sequence_kv_tokens
from generation.plan_model import ModelFacts
from generation.plan_parallel import Layout


@dataclass(frozen=True, slots=True)
class Bounds:
    """None where a speed of the machine is not known.

    Attributes:
        tokens_per_s_one: of a single sequence, at most.
        tokens_per_s_full: of a full batch, at most.
        first_token_ms: of a prompt of `prompt_tokens` on an idle engine, at least.
        kv_waste: share of the reserved KV that is unused on average, at `sequence_tokens`.
    """

    prompt_tokens: int
    sequence_tokens: int
    batch: int
    tokens_per_s_one: float | None
    tokens_per_s_full: float | None
    first_token_ms: float | None
    kv_waste: float


def kv_waste(block_size: int, sequence_tokens: int) -> float:
    """Half a block per sequence is unused on average: (block / 2) / (S + block / 2)."""
    return (block_size / 2) / (sequence_tokens + block_size / 2)


def read_weights(facts: ModelFacts, batch: int) -> float:
    """Bytes of weights that one step of `batch` sequences reads: of the experts, those that anyone visits."""
    if not facts.moe_layers:
        return float(facts.weight_bytes - _looked_up(facts))
    seen = 1 - (1 - facts.experts_per_token / facts.experts) ** batch
    routed = (
        facts.moe_layers
        * (facts.expert_parameters - facts.active_expert_parameters)
        / max(1e-9, 1 - facts.experts_per_token / facts.experts)
    )
    unread = routed * (1 - seen) * facts.weight_bytes / facts.parameters
    return facts.weight_bytes - _looked_up(facts) - unread


def _looked_up(facts: ModelFacts) -> int:
    """An embedding table of its own is looked up by row and not read."""
    return 0 if facts.tied else facts.embedding_parameters * facts.dtype_bytes


def prefill_operations(facts: ModelFacts, tokens: int) -> float:
    """Two operations per active weight and token, and the causal half of attention's two products."""
    table = facts.embedding_parameters  # the output table is used for the last token only
    dense = 2.0 * (facts.active_parameters - table) * tokens + 2.0 * table
    width = facts.heads * (facts.head_dim + facts.value_dim)
    return dense + facts.cached_layers * width * float(tokens) ** 2


def first_token_ms(facts: ModelFacts, machine: Machine, tp: int, tokens: int) -> float | None:
    """The least time to read a prompt; pipeline stages follow each other, so only `tp` shortens it."""
    if not machine.flops or not machine.bandwidth:
        return None
    ranks = 1 if machine.on_cpu else tp  # a CPU's figures are of all its cores together
    compute = prefill_operations(facts, tokens) / (_operations_per_s(facts, machine) * ranks)
    return 1000 * max(compute, read_weights(facts, tokens) / (machine.bandwidth * ranks))


def decode_tokens_per_s(
    facts: ModelFacts, machine: Machine, layout: Layout, *, batch: int, sequence: int, element_bytes: int
) -> float | None:
    """The most tokens that `batch` sequences of `sequence` tokens get in a second, all together.

    Pipeline stages work on different sequences at the same time, so that a batch is divided among them.
    """
    if not machine.bandwidth:
        return None
    ranks = 1 if machine.on_cpu else layout.tp
    stages = min(layout.pp, batch) if not machine.on_cpu else 1
    cached = facts.cached_layers * facts.cached_elements(layout.tp) * element_bytes * layout.tp
    at_once = batch / stages
    step_bytes = read_weights(facts, max(1, round(at_once))) + at_once * cached * sequence_kv_tokens(
        facts, sequence
    )
    reading = stages * at_once * machine.bandwidth * ranks / step_bytes
    if not machine.flops:
        return reading
    computing = _operations_per_s(facts, machine) * ranks * stages / (2 * facts.active_parameters)
    return min(reading, computing)


def _operations_per_s(facts: ModelFacts, machine: Machine) -> float:
    quantization = facts.quantization
    if quantization and quantization.activation_bits == 8 and machine.flops8:
        floating_8 = machine.capability is None or machine.capability >= (8, 9)
        if not quantization.floating or floating_8:
            return machine.flops8
    return machine.flops


def bounds(
    facts: ModelFacts,
    machine: Machine,
    layout: Layout,
    *,
    block_size: int,
    batch: int,
    prompt: int,
    answer: int,
    element_bytes: int,
) -> Bounds:
    """All roofs of one plan, for full prompts and full answers."""

    def decode(sequences: int) -> float | None:
        return decode_tokens_per_s(
            facts,
            machine,
            layout,
            batch=sequences,
            sequence=prompt + answer // 2,
            element_bytes=element_bytes,
        )

    return Bounds(
        prompt_tokens=prompt,
        sequence_tokens=prompt + answer,
        batch=batch,
        tokens_per_s_one=decode(1),
        tokens_per_s_full=decode(batch),
        first_token_ms=first_token_ms(facts, machine, layout.tp, prompt),
        kv_waste=kv_waste(block_size, prompt + answer),
    )
