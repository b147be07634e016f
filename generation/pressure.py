"""How long a prompt may be while KV blocks are scarce. Pure but for the count of what is promised.

A prompt that does not fit the free blocks waits until others end. A shorter one, with fewer passages, starts
at once: the best passages stay, and most answers come from the first few. So the budget shrinks before the
queue grows.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from generation.plan_batch import PROMPT_OVERHEAD, SMALLEST_CONTEXT

_TAKE = 0.5  # of the free tokens that one prompt may take, so that those which come next find room too
_REMOTE_SHARE = 0.25  # free share of a server's blocks from which on budgets shrink; its size is not known


@dataclass(frozen=True, slots=True)
class Room:
    """What the engine has left.

    Attributes:
        kv_tokens: of all blocks; 0 where the engine does not tell.
        promised: tokens of the prompts and answers that run now or wait in the engine.
        used_share: of the blocks, as last measured, in [0, 1].
    """

    kv_tokens: int
    promised: int
    used_share: float


def prompt_budget(full: int, answer_tokens: int, room: Room) -> int:
    """Tokens that the next prompt may have.

    Args:
        full: tokens with an idle engine.
        answer_tokens: that the answer may add.
        room: what is left.

    Returns:
        `full` while half of the free tokens hold it and its answer; less then, down to the smallest prompt
        that can ground an answer, which waits for blocks if need be.
    """
    lowest = min(full, PROMPT_OVERHEAD + SMALLEST_CONTEXT)
    if not room.kv_tokens:
        share = min(1.0, max(0.0, 1.0 - room.used_share) / _REMOTE_SHARE)
        return max(lowest, int(full * share))
    free = room.kv_tokens - max(room.promised, int(room.kv_tokens * room.used_share))
    return min(full, max(lowest, int(free * _TAKE) - answer_tokens))


class Promises:
    """KV tokens promised to the answers of this worker. Safe to share between threads."""

    def __init__(self) -> None:
        self._tokens, self._lock = 0, threading.Lock()

    @property
    def tokens(self) -> int:
        """Their sum now."""
        return self._tokens

    @contextmanager
    def held(self, tokens: int) -> Generator[None]:
        """Count `tokens` while the block runs."""
        with self._lock:
            self._tokens += tokens
        try:
            yield
        finally:
            with self._lock:
                self._tokens -= tokens
