"""What measurements come to: their spread, how they grow with the size, how well they tell apart. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence


def spread(values: Sequence[float], digits: int = 3) -> dict[str, float]:
    """Median, smallest and largest of at least one value."""
    return {
        "median": round(statistics.median(values), digits),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
    }


def growth_exponent(by_size: Mapping[int, float]) -> float | None:
    """Slope of log value over log size, by least squares; None for fewer than two sizes."""
    if len(by_size) < 2:
        return None
    points = [(math.log(size), math.log(value)) for size, value in by_size.items()]
    slope, _ = statistics.linear_regression(*zip(*points, strict=True))
    return round(slope, 3)


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """Chance that a positive scores above a negative, ties counted half; None when a side is empty."""
    if not positive or not negative:
        return None
    ranked = sorted([(s, True) for s in positive] + [(s, False) for s in negative])
    rank_sum, at = 0.0, 0
    while at < len(ranked):
        end = at
        while end < len(ranked) and ranked[end][0] == ranked[at][0]:
            end += 1
        rank_sum += sum(is_positive for _, is_positive in ranked[at:end]) * (at + 1 + end) / 2
        at = end
    pairs = len(positive) * len(negative)
    return (rank_sum - len(positive) * (len(positive) + 1) / 2) / pairs
