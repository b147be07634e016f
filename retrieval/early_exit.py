"""When the order of the best is settled, so that the rest of the rerank would change nothing. Pure.

A passage that was not read yet can overtake the n-th best only if its late interaction is far above what the
ones before it had: they stand in fused order, so it brings less of everything else. The bound is calibrated,
not certain: an unread passage is taken to reach `REACH` deviations above the mean of those read. Chosen on
CMRC 2018 and CLAPNQ: of their first five passages .9996 and .994 are those of a whole rerank, and the first
is always the same (docs/benchmarks.md, ADR 0032).
"""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.fuse import standardized

REACH = 1.0
STEP = 4  # passages between looks; as many as the encoder takes at once


def settled(
    fused: Sequence[float], maxsims: Sequence[float], exact: Sequence[float], *, weight: float, wanted: int
) -> bool:
    """Whether none of the unread passages is taken to reach the first `wanted` places.

    Args:
        fused: scores of the whole head without `exact`, in fused order.
        maxsims: of the read ones, which stand first; at least one.
        exact: the part of the fused scores that is not standardized, for the whole head.
        weight: of MaxSim beside the fused score.
        wanted: places, at least 1.
    """
    read = len(maxsims)
    if read >= len(fused):
        return True
    if read < wanted:
        return False
    by_fusion = standardized(fused)
    seen = [f + weight * m + e for f, m, e in zip(by_fusion, standardized(maxsims), exact, strict=False)]
    reach = max(f + weight * REACH + e for f, e in zip(by_fusion[read:], exact[read:], strict=True))
    return sorted(seen, reverse=True)[wanted - 1] >= reach
