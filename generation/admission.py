"""Whether one more question fits what the engine can hold, and when to ask again if not. Pure.

Demand is counted in KV tokens (prompt and answer), because that is what runs out: a question that does not
fit waits for the blocks of others. Without a limit the queue grows past the deadline of those in it, and the
engine then works on answers that nobody waits for any more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SHORTEST_WAIT_S, LONGEST_WAIT_S = 1.0, 300.0
_UNKNOWN_WAIT_S = 15.0  # nothing has ended lately to measure by: the engine starts or has just begun


@dataclass(frozen=True, slots=True)
class Demand:
    """Accepted questions that have not ended, and the KV tokens that they are expected to need."""

    questions: int
    kv_tokens: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the engine holds, and how fast it works.

    Attributes:
        kv_tokens: of all its blocks; 0 while no engine has told.
        drained_per_s: KV tokens of answers ended per second of work, measured; 0 when none ended lately.
    """

    kv_tokens: int
    drained_per_s: float


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be open.

    Attributes:
        kv_share: expected KV demand of everything open, as a multiple of the engine's blocks, up to which
            interactive questions are taken in: 1 means that all of them run at once.
        questions: open questions of any priority.
    """

    kv_share: float
    questions: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Not now. `reason` is `kv`, `late` or `queue`; `retry_after_s` is when there should be room."""

    reason: str
    retry_after_s: float


def refusal(
    ahead: Demand,
    kv_tokens: int,
    capacity: Capacity,
    limits: Limits,
    *,
    open_questions: int,
    priority: str,
    deadline_s: float,
) -> Refusal | None:
    """Why a question is not taken in, or None.

    Args:
        ahead: what is open and will be worked on before it or beside it.
        kv_tokens: what it is expected to need itself.
        capacity: of the engine.
        limits: see `Limits`.
        open_questions: of all priorities.
        priority: a `batch` question waits for room, so only the queue's bound holds for it.
        deadline_s: seconds within which it has to be answered.

    Returns:
        `queue` when too many are open; for interactive questions `kv` when the demand would pass the blocks
        (an idle engine takes any), or `late` when, at the measured rate, those before it take longer than
        its deadline.
    """
    if open_questions >= limits.questions:
        return Refusal("queue", wait_s(kv_tokens * (open_questions - limits.questions + 1), capacity))
    if priority == "batch" or not ahead.questions:
        return None
    excess = ahead.kv_tokens + kv_tokens - capacity.kv_tokens * limits.kv_share
    if capacity.kv_tokens and excess > 0:
        return Refusal("kv", wait_s(excess, capacity))
    in_time = capacity.drained_per_s * deadline_s
    if capacity.drained_per_s > 0 and ahead.kv_tokens > in_time:
        return Refusal("late", wait_s(ahead.kv_tokens - in_time, capacity))
    return None


def wait_s(kv_tokens: float, capacity: Capacity) -> float:
    """Seconds until the engine has worked off so many KV tokens, from 1 to 300, whole."""
    if capacity.drained_per_s <= 0:
        return _UNKNOWN_WAIT_S
    return float(math.ceil(min(LONGEST_WAIT_S, max(SHORTEST_WAIT_S, kv_tokens / capacity.drained_per_s))))
