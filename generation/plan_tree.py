"""The decision tree: what the engine is for decides lengths, batch, step size and ranks. Pure.

edge      one small device: fit first, start fast; few sequences, no pipeline
realtime  a first token below the target (500 ms): the smallest tensor size that reaches it, small steps
batch     throughput: as few ranks per engine as hold it, large steps, the rest of the devices as replicas
cloud     many users: tensor parallel inside a node, a pipeline only for what no node holds, replicas
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from generation.plan_bounds import first_token_ms
from generation.plan_machine import Machine
from generation.plan_model import ModelFacts
from generation.plan_parallel import Layout
from generation.plan_wish import Branch, Profile, Wish

GIB = 1 << 30
_EDGE_MEMORY = 16 * GIB  # a single accelerator up to this is planned like a small device
_CHUNK_S = 0.1  # a realtime step that reads prompts should not hold the others' tokens up longer
_SMALLEST_CHUNK, _LARGEST_CHUNK = 512, 8192


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the tree says where the wish says nothing."""

    profile: Profile
    max_model_len: int
    max_num_seqs: int
    batched_tokens: int
    eager: bool


def decide(facts: ModelFacts, machine: Machine, wish: Wish) -> tuple[Defaults, tuple[Branch, ...]]:
    """Walk the tree up to the ranks.

    Returns:
        The defaults, and the branches taken, in order.
    """
    branches = [_which_profile(machine, wish)]
    profile = Profile(branches[0].answer)
    length = wish.max_model_len or {Profile.EDGE: 2048, Profile.BATCH: 8192}.get(profile, 8192)
    sequences = wish.max_num_seqs or _sequences(machine, profile)
    chunk, why = _chunk(facts, machine, wish, profile)
    eager = wish.enforce_eager
    if eager is None:
        eager = machine.on_cpu and max(1, wish.pipeline_parallel) == 1 and profile is Profile.EDGE
    branches.append(
        Branch(
            "How many questions at once, and how long?",
            f"{sequences} sequences of {length} tokens",
            "cut below to what the KV blocks hold"
            if not wish.max_num_seqs
            else "as asked, cut to the KV blocks",
        )
    )
    branches.append(Branch("How many tokens may a step read?", str(chunk), why))
    branches.append(
        Branch(
            "Compiled or eager?",
            "eager" if eager else "compiled",
            "starts in half the time; a few ranks on a CPU gain little from graphs"
            if eager
            else "graphs cut the cost of a step",
        )
    )
    return Defaults(profile, length, sequences, chunk, eager), tuple(branches)


def _which_profile(machine: Machine, wish: Wish) -> Branch:
    question = "What is the engine for?"
    if wish.profile is not Profile.AUTO:
        return Branch(question, wish.profile.value, "as asked")
    if machine.nodes > 1:
        return Branch(question, Profile.CLOUD.value, f"{machine.nodes} nodes are given")
    if machine.on_cpu and machine.memories == 1:
        return Branch(question, Profile.EDGE.value, "no accelerator and one memory")
    if not machine.on_cpu and machine.devices == 1 and machine.memory_bytes <= _EDGE_MEMORY:
        return Branch(question, Profile.EDGE.value, "one accelerator of 16 GiB or less")
    return Branch(question, Profile.REALTIME.value, "people wait for answers unless batch is asked for")


def _sequences(machine: Machine, profile: Profile) -> int:
    if machine.on_cpu:
        return {Profile.BATCH: 64, Profile.EDGE: 16}.get(profile, 32)  # 16: where two cores stop gaining
    return {Profile.EDGE: 16, Profile.REALTIME: 64, Profile.BATCH: 256, Profile.CLOUD: 128}[profile]


def _chunk(facts: ModelFacts, machine: Machine, wish: Wish, profile: Profile) -> tuple[int, str]:
    if wish.max_num_batched_tokens:
        return wish.max_num_batched_tokens, "as asked"
    if machine.on_cpu:
        return 2048, "a prompt is read in one step; the engine's own value for a CPU"
    if profile is Profile.BATCH:
        return (
            16384 if machine.memory_bytes >= 70 * GIB else 8192
        ), "throughput: large steps use the units best"
    if profile is Profile.REALTIME and machine.flops:
        tokens = _CHUNK_S * machine.flops * max(1, wish.tensor_parallel) / (2 * facts.active_parameters)
        chunk = max(_SMALLEST_CHUNK, min(_LARGEST_CHUNK, int(tokens) // 256 * 256))
        return (
            chunk,
            f"prompts are read in pieces of about {_CHUNK_S * 1000:.0f} ms between the others' tokens",
        )
    return (8192 if machine.memory_bytes >= 70 * GIB else 2048), "prompts are read in pieces beside decoding"


def choose(
    facts: ModelFacts,
    machine: Machine,
    wish: Wish,
    defaults: Defaults,
    candidates: Sequence[Layout],
    room: Callable[[Layout], int],
) -> tuple[Layout | None, Branch]:
    """Pick the ranks among the legal layouts, where the wish leaves them open.

    Args:
        facts: the model.
        machine: where it runs.
        wish: what was asked for.
        defaults: of `decide`.
        candidates: legal layouts, fewer ranks first.
        room: tokens that a layout's KV blocks hold; below a sequence it does not fit.

    Returns:
        The layout, None when nothing fits, and the branch.
    """
    question = "Which ranks?"
    need = min(defaults.max_model_len, facts.max_positions)
    fitting = [one for one in candidates if room(one) >= need]
    if not fitting:
        return None, Branch(question, "none", f"no layout holds the weights and {need} tokens of KV")
    if machine.on_cpu:
        return _on_cpu(machine, fitting, question)
    roomy = [one for one in fitting if room(one) >= need * max(1, defaults.max_num_seqs // 4)] or fitting
    flat = [one for one in roomy if one.pp == 1]
    if defaults.profile is Profile.REALTIME or defaults.profile is Profile.CLOUD:
        return _fast(facts, machine, wish, flat, roomy, need, question)
    if defaults.profile is Profile.BATCH and machine.link == "pcie":
        ordered = sorted(roomy, key=lambda one: (one.ranks, one.tp))
        return ordered[0], Branch(
            question,
            _named(ordered[0]),
            "the fewest that hold it; stages rather than slices, for PCIe carries little",
        )
    chosen = (flat or roomy)[0]
    return chosen, Branch(
        question, _named(chosen), "the fewest that hold the weights and a quarter of the batch"
    )


def _on_cpu(machine: Machine, fitting: Sequence[Layout], question: str) -> tuple[Layout, Branch]:
    wanted = machine.memories
    spread = [one for one in fitting if one.tp == wanted and one.pp == 1]
    if wanted > 1 and spread:
        return spread[0], Branch(
            question, _named(spread[0]), f"one rank per memory node ({wanted}), each reads its own"
        )
    return fitting[0], Branch(
        question, _named(fitting[0]), "the cores share one memory: ranks would only add copies"
    )


def _fast(
    facts: ModelFacts,
    machine: Machine,
    wish: Wish,
    flat: Sequence[Layout],
    roomy: Sequence[Layout],
    prompt: int,
    question: str,
) -> tuple[Layout, Branch]:
    """The smallest tensor size inside one node that reaches the target; a pipeline when no node holds it."""
    tokens = prompt - wish.answer_reserve
    if not flat:
        chosen = min(roomy, key=lambda one: (one.nodes, one.pp, one.ranks))
        why = "no tensor-parallel size inside a node holds it, so stages follow each other over "
        return chosen, Branch(
            question, _named(chosen), f"{why}{chosen.nodes} nodes" if chosen.nodes > 1 else f"{why}devices"
        )
    target = wish.target_ttft_ms
    for one in flat:
        bound = first_token_ms(facts, machine, one.tp, tokens)
        if bound is None:
            return flat[0], Branch(
                question, _named(flat[0]), "the fewest that hold it; the device's speed is not known"
            )
        if bound <= target / 2:  # real kernels reach about half of the roof
            why = f"a prompt of {tokens} tokens needs at least {bound:.0f} ms, half of {target} ms at most"
            return one, Branch(question, _named(one), why)
    chosen = flat[-1]
    bound = first_token_ms(facts, machine, chosen.tp, tokens) or 0.0
    why = f"the largest tensor size; {tokens} tokens still need at least {bound:.0f} ms of {target} ms"
    return chosen, Branch(question, _named(chosen), why)


def _named(layout: Layout) -> str:
    nodes = f" on {layout.nodes} nodes" if layout.nodes > 1 else ""
    return f"TP {layout.tp} × PP {layout.pp}{nodes}"
