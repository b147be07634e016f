"""A layout with its memory: how the layers are divided, and how many tokens of KV it keeps. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from generation.plan_machine import Machine
from generation.plan_memory import (
    RankMemory,
    kv_token_room,
    rank_kv_bytes_per_token,
    sequence_kv_tokens,
    stage_memories,
    whole_kv_bytes_per_token,
)
from generation.plan_model import ModelFacts
from generation.plan_parallel import Layout, split_candidates
from generation.plan_tree import Defaults
from generation.plan_wish import Wish

_LEAST_KV = 256 << 20  # on a CPU, unless the wish says less
_PREFIX_ROOM = 1.5  # KV blocks over what a full batch needs, so that finished prompts stay cached


@dataclass(frozen=True, slots=True)
class Sizing:
    """A layout with its memory: what is compared before one is chosen.

    Attributes:
        kv_tokens: tokens that the KV blocks of all stages keep.
        room: tokens that the memory could keep; less than `kv_tokens` where the wish does not fit.
    """

    layout: Layout
    memories: tuple[RankMemory, ...]
    per_token: tuple[int, ...]
    kv_tokens: int
    room: int


def best_split(
    facts: ModelFacts, machine: Machine, wish: Wish, defaults: Defaults, layout: Layout, element: int
) -> Sizing:
    """The division of layers with the most room for KV; the engine's own unless another has 1 % more."""
    best: Sizing | None = None
    for split in split_candidates(facts, layout.pp):
        one = _sizing(facts, machine, wish, defaults, replace(layout, split=split), element)
        if best is None or one.room > best.room * 1.01:
            best = one
    assert best is not None  # the engine's own division is always a candidate
    return best


def _sizing(
    facts: ModelFacts, machine: Machine, wish: Wish, defaults: Defaults, layout: Layout, element: int
) -> Sizing:
    memories = stage_memories(
        facts,
        machine,
        layout,
        share=wish.memory_share,
        batched_tokens=defaults.batched_tokens,
        sequences=defaults.max_num_seqs,
    )
    per_token = rank_kv_bytes_per_token(facts, layout, element_bytes=element)
    room = kv_token_room(memories, per_token)
    whole = whole_kv_bytes_per_token(facts, layout, element_bytes=element)
    if wish.kv_cache_bytes:
        tokens = wish.kv_cache_bytes // whole
    elif machine.on_cpu:
        length = min(defaults.max_model_len, facts.max_positions)
        need = sequence_kv_tokens(facts, length, defaults.batched_tokens) * defaults.max_num_seqs
        wanted = max(int(need * _PREFIX_ROOM), _LEAST_KV // whole)
        tokens = min(wanted, max(room // 2, min(room, length)))
    else:
        tokens = room
    return Sizing(layout, memories, per_token, tokens, room)
