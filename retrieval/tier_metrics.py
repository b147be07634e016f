"""What the tiers take in this process, and how its page cache does, as metrics: at most once in a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.metrics import PAGE_TOUCHES, TIER_BYTES, TIER_DEAD_SHARE
from core.types import Tier

if TYPE_CHECKING:
    from retrieval.vector_tier import TierSnapshot, TierStats

_EVERY_S = 10.0


class TierMetrics:
    """Turns the counts that snapshots keep into metrics; safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due = 0.0
        self._seen: dict[Tier, tuple[int, int]] = {}

    def tell(self, tiers: Mapping[Tier, TierSnapshot], now: float | None = None) -> bool:
        """Set the metrics unless that was done a moment ago; says whether it did."""
        now = time.monotonic() if now is None else now
        if now < self._due or not self._lock.acquire(blocking=False):
            return False
        try:
            self._due = now + _EVERY_S
            for tier, snapshot in tiers.items():
                self._one(tier, snapshot.stats())
        finally:
            self._lock.release()
        return True

    def _one(self, tier: Tier, stats: TierStats) -> None:
        for kind, size in (
            ("memory", stats.ram_bytes - stats.mapped_bytes),
            ("mapped", stats.mapped_bytes),
            ("page_cache", stats.cached_bytes),
            ("disk", stats.disk_bytes),
        ):
            TIER_BYTES.labels(tier.value, kind).set(size)
        TIER_DEAD_SHARE.labels(tier.value).set(stats.fragmentation)
        hits, misses = self._seen.get(tier, (0, 0))
        for found, count in (("cache", stats.page_hits - hits), ("disk", stats.page_misses - misses)):
            if count > 0:  # fewer than before: segments left, and their counts with them
                PAGE_TOUCHES.labels(tier.value, found).inc(count)
        self._seen[tier] = stats.page_hits, stats.page_misses


TIER_METRICS = TierMetrics()
