from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import REGISTRY

from core.types import Tier
from retrieval.tier_metrics import TierMetrics
from retrieval.vector_tier import TierStats


@dataclass
class Snapshot:
    """A tier whose counts a test sets."""

    hits: int = 0
    misses: int = 0

    def stats(self) -> TierStats:
        return TierStats(
            Tier.COLD, live=75, dead=25, ram_bytes=300, mapped_bytes=200, disk_bytes=4000,
            page_hits=self.hits, page_misses=self.misses, cached_bytes=64,
        )  # fmt: skip


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def touches() -> tuple[float, float]:
    return tuple(value("geo_page_touches_total", tier="cold", found=f) for f in ("cache", "disk"))  # type: ignore[return-value] - two of them


def test_sizes_are_told_and_touches_count_up_even_when_segments_leave() -> None:
    metrics, tier = TierMetrics(), Snapshot(hits=10, misses=4)
    before = touches()
    assert metrics.tell({Tier.COLD: tier}, now=100)  # type: ignore[dict-item] - what is used of a snapshot
    assert value("geo_tier_bytes", tier="cold", kind="memory") == 100
    assert value("geo_tier_bytes", tier="cold", kind="page_cache") == 64
    assert value("geo_tier_dead_share", tier="cold") == 0.25
    assert touches() == (before[0] + 10, before[1] + 4)
    tier.hits = 15
    assert not metrics.tell({Tier.COLD: tier}, now=105), "a moment ago"
    assert metrics.tell({Tier.COLD: tier}, now=111)
    tier.hits, tier.misses = 3, 0  # a rebuild replaced the segments
    assert metrics.tell({Tier.COLD: tier}, now=130)
    tier.hits = 5
    assert metrics.tell({Tier.COLD: tier}, now=150)
    assert touches() == (before[0] + 17, before[1] + 4)
