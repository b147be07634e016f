"""How long a sequence may be, and how many run at once, by what the KV blocks hold. Pure."""

from __future__ import annotations

from generation.plan_memory import longest_sequence, sequence_kv_tokens
from generation.plan_model import ModelFacts
from generation.plan_tree import Defaults
from generation.plan_wish import PlanRefused, Wish

PROMPT_OVERHEAD = 256  # tokens kept for instructions, chat template and question
SMALLEST_CONTEXT = 128  # tokens of evidence below which an answer cannot be grounded


def longest(
    facts: ModelFacts, wish: Wish, defaults: Defaults, tokens: int, whole: int, notes: list[str]
) -> int:
    """The longest sequence; a note where it is shorter than asked.

    Args:
        facts: the model.
        wish: what was asked for.
        defaults: of the decision tree.
        tokens: that the KV blocks hold.
        whole: bytes of one of them over all ranks.
        notes: of the plan; added to.

    Raises:
        PlanRefused: it leaves no room for evidence beside the answer.
    """
    fits = longest_sequence(facts, tokens, defaults.batched_tokens)
    length = min(defaults.max_model_len, facts.max_positions, fits)
    asked = wish.max_model_len
    if asked and length < asked:
        why = "the model's positions" if length == facts.max_positions else "the KV cache"
        notes.append(f"max_model_len cut from {asked} to {length} by {why}")
    context = length - wish.answer_reserve - PROMPT_OVERHEAD
    if context >= SMALLEST_CONTEXT:
        return length
    need = SMALLEST_CONTEXT + wish.answer_reserve + PROMPT_OVERHEAD
    raise PlanRefused(
        (f"{length} tokens leave {context} for evidence; {need} are needed",),
        hint=f"Raise GEO_GENERATION__KV_CACHE_BYTES to at least {need * whole} and "
        f"GEO_GENERATION__MAX_MODEL_LEN to at least {need}, or lower GEO_GENERATION__ANSWER_RESERVE.",
    )


def most_at_once(
    facts: ModelFacts, wish: Wish, defaults: Defaults, tokens: int, length: int, notes: list[str]
) -> int:
    """Sequences of `length` that the KV tokens hold, at least one; a note where that is fewer than asked."""
    kept = sequence_kv_tokens(facts, length, defaults.batched_tokens)
    sequences = max(1, min(defaults.max_num_seqs, int(tokens // kept)))
    if wish.max_num_seqs and sequences < wish.max_num_seqs:
        notes.append(
            f"max_num_seqs cut from {wish.max_num_seqs} to {sequences}: {tokens} KV tokens hold no more "
            f"sequences of {length}"
        )
    return sequences
