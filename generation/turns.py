"""Whose turn it is at the engine: first come, first served, with a head start for those who wait. Pure.

Each request gets one fixed number, the moment it was asked plus, for a batch request, the head start that
interactive ones have over it. The engine takes the lowest number first. Because the number never changes,
a second server agrees on the order after a failover, and nothing at the engine starves: what is asked more
than a head start later can no longer overtake. How many batch requests are at the engine is limited before
it (`generation/batch_room.py`, `core/aging.py`), so a long queue of them does not stop interactive ones.
"""

from __future__ import annotations

from datetime import datetime

_MS = 1000


def engine_priority(asked_at: datetime, priority: str, *, head_start_s: float) -> int:
    """The number by which the engine orders waiting requests, lowest first.

    Args:
        asked_at: when the question was accepted, aware. A retry keeps it, so it does not lose its place.
        priority: `interactive` or `batch`.
        head_start_s: seconds by which an interactive question may come later and still go first.

    Returns:
        Milliseconds since 1970, which fit into the engine's 64-bit field.
    """
    behind_s = head_start_s if priority == "batch" else 0.0
    return int((asked_at.timestamp() + behind_s) * _MS)
