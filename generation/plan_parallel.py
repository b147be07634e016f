"""Which tensor- and pipeline-parallel sizes a model can run with, and how layers are divided. Pure.

The rules are those of vLLM 0.32: query heads divide by the tensor size, KV heads divide or are replicated,
MLP and expert widths divide (in whole quantization groups), the padded vocabulary divides. Tensor parallelism
stays inside a node, because every layer waits for all its ranks; pipeline stages may be on other nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from generation.plan_machine import Machine
from generation.plan_model import VOCAB_PADDING, ModelFacts


@dataclass(frozen=True, slots=True)
class Layout:
    """Ranks of one engine.

    Attributes:
        tp, pp: tensor and pipeline parallel sizes.
        nodes: nodes that the ranks are spread over, `pp / nodes` stages on each.
        split: layers of each stage, first to last.
        replicated: copies of every KV head (1: none).
    """

    tp: int
    pp: int
    nodes: int
    split: tuple[int, ...]
    replicated: int = 1

    @property
    def ranks(self) -> int:
        """Processes that compute."""
        return self.tp * self.pp

    @property
    def ranks_on_node(self) -> int:
        """Of them on each node."""
        return self.ranks // self.nodes


def tensor_objections(facts: ModelFacts, tp: int) -> tuple[str, ...]:
    """Why the model cannot be cut into `tp` parts; empty: it can."""
    found: list[str] = []
    if facts.heads % tp:
        found.append(f"{facts.heads} heads do not divide by {tp}")
    if not facts.mla and facts.kv_heads % tp and tp % facts.kv_heads:
        found.append(f"{facts.kv_heads} KV heads neither divide by {tp} nor can be replicated evenly over it")
    vocab = -(-facts.vocab // VOCAB_PADDING) * VOCAB_PADDING
    if vocab % tp:
        found.append(f"the vocabulary, padded to {vocab}, does not divide by {tp}")
    group = facts.quantization.divides if facts.quantization else 1
    widths = {"MLP": facts.intermediate} if facts.moe_layers < facts.layers else {}
    if facts.experts:
        widths["expert"] = facts.expert_intermediate
    for what, width in widths.items():
        if width % tp:
            found.append(f"the {what} width {width} does not divide by {tp}")
        elif tp > 1 and group > 1 and (width // tp) % group:
            found.append(f"a rank's part of the {what} width, {width // tp}, is no multiple of the "
                         f"quantization group {group}")  # fmt: skip
    return tuple(found)


def legal_tensor_parallel(facts: ModelFacts, devices: int) -> tuple[int, ...]:
    """Sizes up to `devices` into which the model can be cut, ascending."""
    return tuple(n for n in range(1, devices + 1) if not tensor_objections(facts, n))


def nodes_for(tp: int, pp: int, machine: Machine) -> int:
    """The fewest nodes that hold the stages, as many on each, every stage whole on one; 0: impossible."""
    for nodes in range(1, min(machine.nodes, pp) + 1):
        if pp % nodes == 0 and tp * (pp // nodes) <= machine.ranks_per_node:
            return nodes
    return 0


def layouts(facts: ModelFacts, machine: Machine, *, eager: bool | None = None) -> tuple[Layout, ...]:
    """Every layout that the model and the machine allow, fewer ranks first, then the smaller pipeline.

    Args:
        facts: the model.
        machine: where it runs.
        eager: whether graphs are switched off; a pipeline on the CPU needs them, so True leaves those out.
    """
    found: list[Layout] = []
    for tp in legal_tensor_parallel(facts, machine.ranks_per_node):
        for pp in range(1, min(facts.layers, machine.nodes * machine.ranks_per_node // tp) + 1):
            if machine.on_cpu and pp > 1 and eager:
                continue
            if nodes := nodes_for(tp, pp, machine):
                found.append(layout_of(facts, tp, pp, nodes))
    return tuple(sorted(found, key=lambda one: (one.ranks, one.pp)))


def layout_of(facts: ModelFacts, tp: int, pp: int, nodes: int) -> Layout:
    """The layout with the engine's own division of layers; the caller has checked that it is legal."""
    replicated = tp if facts.mla else max(1, tp // facts.kv_heads)
    return Layout(tp, pp, nodes, engine_split(facts.layers, pp), replicated)


def engine_split(layers: int, stages: int) -> tuple[int, ...]:
    """How vLLM divides by itself: evenly, a remainder to the stages before the last, from the back."""
    split = [layers // stages] * stages
    for i in range(2, layers % stages + 2):
        split[-i] += 1
    return tuple(split)


@lru_cache(maxsize=1024)
def split_candidates(facts: ModelFacts, stages: int) -> tuple[tuple[int, ...], ...]:
    """Divisions worth comparing, the engine's own first.

    The first stage also holds the embedding table and the last one the output table, and some models begin
    with small dense layers. The others have the smallest largest stage when the tables weigh in full, by half
    or not at all: in between, a stage with fewer weights has more layers and so less room for KV blocks.
    """
    own = engine_split(facts.layers, stages)
    if stages == 1:
        return (own,)
    weights, table = layer_parameters(facts), facts.embedding_parameters
    return tuple(dict.fromkeys((own, *(_balanced(weights, stages, table // n) for n in (1, 2, 4)))))


def stage_parameters(facts: ModelFacts, split: Sequence[int]) -> tuple[int, ...]:
    """Parameters of each stage, tables included (a tied table is held by the first and the last)."""
    if len(split) == 1:
        return (facts.parameters,)
    weights = layer_parameters(facts)
    sizes: list[int] = []
    start = 0
    for stage, count in enumerate(split):
        table = facts.embedding_parameters if stage in (0, len(split) - 1) else 0
        sizes.append(sum(weights[start : start + count]) + table)
        start += count
    return tuple(sizes)


def layer_parameters(facts: ModelFacts) -> tuple[int, ...]:
    """Parameters of each layer; layers without experts stand first, as in the models that mix both."""
    dense = facts.layers - facts.moe_layers
    return tuple(
        facts.attention_parameters + (facts.dense_parameters if i < dense else facts.expert_parameters)
        for i in range(facts.layers)
    )


def _balanced(weights: Sequence[int], stages: int, table: int) -> tuple[int, ...]:
    """The contiguous division with the smallest largest stage: bisect its size, fill greedily."""
    low, high = max(weights), sum(weights) + 2 * table
    while low < high:
        middle = (low + high) // 2
        if _fill(weights, stages, table, middle):
            high = middle
        else:
            low = middle + 1
    return _fill(weights, stages, table, low) or engine_split(len(weights), stages)


def _fill(weights: Sequence[int], stages: int, table: int, limit: int) -> tuple[int, ...] | None:
    """Layers per stage when none may exceed `limit` and none is empty; None: it does not go.

    Stages fill from the first.
    """
    split: list[int] = []
    start = 0
    for stage in range(stages):
        room = limit - (table if stage in (0, stages - 1) else 0)
        left_for_others = stages - stage - 1
        count = 0
        while start + count < len(weights) - left_for_others and weights[start + count] <= room:
            room -= weights[start + count]
            count += 1
        if not count:
            return None
        split.append(count)
        start += count
    return tuple(split) if start == len(weights) else None


def rank_cores(machine: Machine, layout: Layout) -> tuple[tuple[int, ...], ...]:
    """Cores of each rank of a node on a CPU; empty where they are not known by number.

    Where there is a rank per memory node, each has the cores of one; else even shares, none left over.
    """
    ids, ranks = machine.core_ids, layout.ranks_on_node
    if not machine.on_cpu or not ids:
        return ()
    if ranks == len(machine.numa) > 1:
        return tuple(node.cores for node in machine.numa)
    share = max(1, len(ids) // ranks)
    groups = [ids[i * share : (i + 1) * share] or ids[-1:] for i in range(ranks)]
    if ranks * share < len(ids):
        groups[-1] = ids[(ranks - 1) * share :]
    return tuple(groups)
