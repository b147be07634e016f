"""The last stage of the rerank, where a cross-encoder is configured: it reads both texts together."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError
from core.packs import pack_path
from core.settings import get_settings
from retrieval.fuse import standardized

log = logging.getLogger(__name__)

ScorePairs = Callable[[str, Sequence[str]], npt.NDArray[np.float32]]

BATCH = 4  # pairs per call: the most that a spent time budget may be overrun by
CROSS_WEIGHT = 3.0
"""Of its standardized score beside that of the order before, which never saw both texts at once."""


@lru_cache(maxsize=1)
def configured_reranker() -> ScorePairs | None:
    """The configured pack, loaded once; None when none is configured.

    A pack that cannot be loaded is a warning, not a failed query: the stages before it have ranked already.
    """
    name = get_settings().packs.reranker
    if not name:
        return None
    from ingest.pair_network import PairScorer

    try:
        return PairScorer(pack_path(name))
    except ConfigError as error:
        log.warning("reranker_pack_not_loaded", extra={"pack": name, "detail": error.detail})
        return None


def cross_scores(
    question: str,
    head: Sequence[tuple[int, str]],
    score: ScorePairs,
    *,
    budget_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, float]:
    """Score passages in the order given, a batch at a time, until the time budget is spent.

    No batch begins after the budget, so it is overrun by at most one. Texts of a batch are padded to the
    longest one only.

    Args:
        question: as asked.
        head: (passage id, text), best first.
        score: raw scores of pairs.
        budget_s: seconds from now; nothing is scored when it is not above 0.
        clock: monotonic seconds.
    """
    start = clock()
    found: dict[int, float] = {}
    for at in range(0, len(head), BATCH):
        if clock() - start >= budget_s:
            break
        batch = head[at : at + BATCH]
        scores = score(question, [text for _, text in batch])
        found.update((i, float(s)) for (i, _), s in zip(batch, scores, strict=True))
    return found


def cross_order(
    order: Sequence[tuple[int, float]], cross: Mapping[int, float], exact: Mapping[int, float]
) -> list[tuple[int, float]]:
    """Order the scored passages by both scores, each standardized over them; the rest follow as before.

    score(p) = z(before(p) − exact(p)) + `CROSS_WEIGHT` · z(cross(p)) + exact(p). Fewer than two scored
    passages leave the order as it is.

    Args:
        order: (passage id, score), best first.
        cross: raw scores of some of them.
        exact: the part of a score that no standardizing may shrink (`Fused.exact`).
    """
    if len(cross) < 2:
        return list(order)
    head = [(i, score - exact.get(i, 0.0)) for i, score in order if i in cross]
    before = standardized([score for _, score in head])
    read = standardized([cross[i] for i, _ in head])
    scores = {
        i: a + CROSS_WEIGHT * b + exact.get(i, 0.0) for (i, _), a, b in zip(head, before, read, strict=True)
    }
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    floor = min(scores.values())
    tail = [i for i, _ in order if i not in cross]
    return ordered + [(i, floor - rank) for rank, i in enumerate(tail, 1)]
