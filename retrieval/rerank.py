"""Late-interaction rerank with the encoder's own token vectors, and the scores that come from it.

One pass of the encoder over the head of the ranking gives three things: the order, a calibrated relevance
per passage (refusal is decided by it), and scored sentences for `extract`.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.types import Lang
from ingest.encode import TokenVectors
from retrieval.fuse import standardized
from retrieval.relevance import Floats, Question, relevance

EncodeTokens = Callable[[Sequence[str]], Sequence[TokenVectors]]

RERANK_WEIGHT = 2.0  # of the standardized MaxSim beside the standardized fused score
BATCH = 4  # passages per encoder call: the most that a spent time budget may be overrun by


@dataclass(frozen=True, slots=True)
class Scored:
    """One reranked passage.

    Attributes:
        maxsim: mean over the question's tokens of the best cosine in the passage.
        relevance: calibrated, in [0, 1].
    """

    passage_id: int
    maxsim: float
    relevance: float
    tokens: TokenVectors


def best_matches(question: Floats, passage: Floats) -> Floats:
    """Cosine of each question token's best partner.

    Args:
        question: [q, d] unit rows.
        passage: [p, d] unit rows, p ≥ 1.

    Returns:
        [q]. The loop: `[max(dot(a, b) for b in passage) for a in question]`.

    Source: Khattab and Zaharia, ColBERT, SIGIR 2020, doi:10.1145/3397271.3401075.
    """
    return (question @ passage.T).max(axis=1)


def maxsim(question: Floats, passage: Floats) -> float:
    """Mean of `best_matches`, in [-1, 1]; 0 when either side has no tokens."""
    if not len(question) or not len(passage):
        return 0.0
    return float(best_matches(question, passage).mean())


class TokenCache:
    """Token vectors of passages, in half precision, least recently used out first.

    A passage's text never changes under its id, so an entry is never stale.

    Args:
        max_bytes: bound on the vectors kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._kept: OrderedDict[int, tuple[npt.NDArray[np.float16], npt.NDArray[np.int32]]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, passage_id: int) -> TokenVectors | None:
        """The passage's token vectors as float32, or None."""
        with self._lock:
            kept = self._kept.get(passage_id)
            if kept is None:
                return None
            self._kept.move_to_end(passage_id)
        return TokenVectors(kept[0].astype(np.float32), kept[1])

    def put(self, passage_id: int, tokens: TokenVectors) -> None:
        """Keep a passage's token vectors."""
        half = tokens.vectors.astype(np.float16)
        with self._lock:
            if passage_id in self._kept:
                return
            self._kept[passage_id] = (half, tokens.offsets)
            self._bytes += half.nbytes + tokens.offsets.nbytes
            while self._bytes > self._max_bytes and self._kept:
                _, (vectors, offsets) = self._kept.popitem(last=False)
                self._bytes -= vectors.nbytes + offsets.nbytes


def score_head(
    question: Question,
    head: Sequence[tuple[int, str, Lang]],
    *,
    encode: EncodeTokens,
    cache: TokenCache,
    budget_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Scored]:
    """Score passages in the order given until all are done or the time budget is spent.

    Cached passages cost no encoding. The rest are encoded in batches of `BATCH`; no batch begins after the
    budget, so it is overrun by at most one. The first batch always runs: there is no evidence without it.

    Args:
        question: the prepared question.
        head: (passage id, text, language), best first.
        encode: token vectors of passages.
        cache: looked up first, filled afterwards.
        budget_s: seconds from now.
        clock: monotonic seconds.

    Returns:
        One entry per scored passage, in the order of `head`.
    """
    start = clock()
    tokens = {passage_id: kept for passage_id, _, _ in head if (kept := cache.get(passage_id)) is not None}
    missing = [(passage_id, text) for passage_id, text, _ in head if passage_id not in tokens]
    for at in range(0, len(missing), BATCH):
        if at and clock() - start >= budget_s:
            break
        batch = missing[at : at + BATCH]
        for (passage_id, _), encoded in zip(batch, encode([text for _, text in batch]), strict=True):
            tokens[passage_id] = encoded
            cache.put(passage_id, encoded)
    scored: list[Scored] = []
    for passage_id, text, lang in head:
        if passage_id in tokens:
            similarity = maxsim(question.tokens, tokens[passage_id].vectors)
            found = relevance(question, similarity, text, lang)
            scored.append(Scored(passage_id, similarity, found, tokens[passage_id]))
    return scored


def final_order(
    fused: Sequence[tuple[int, float]],
    maxsims: Mapping[int, float],
    *,
    exact: Mapping[int, float] | None = None,
) -> list[tuple[int, float]]:
    """Order by both scores, each standardized over the reranked passages; the rest follow as fused.

    score(p) = z(fused(p) − exact(p)) + `RERANK_WEIGHT` · z(maxsim(p)) + exact(p). A passage that was not
    reranked never overtakes one that was: nothing is known of it but its rank.

    Args:
        fused: (passage id, fused score), best first.
        maxsims: MaxSim of the reranked ones.
        exact: the part of the fused score that no standardizing may shrink (`Fused.exact`).

    Returns:
        (passage id, final score), best first; ties by passage id. Scores below the reranked head go on
        falling by one per rank, so that they never contradict the order.
    """
    own = exact or {}
    head = [(i, score - own.get(i, 0.0)) for i, score in fused if i in maxsims]
    by_fusion = standardized([score for _, score in head])
    by_tokens = standardized([maxsims[i] for i, _ in head])
    scores = {
        i: a + RERANK_WEIGHT * b + own.get(i, 0.0)
        for (i, _), a, b in zip(head, by_fusion, by_tokens, strict=True)
    }
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    floor = min(scores.values(), default=0.0)
    tail = [i for i, _ in fused if i not in maxsims]
    return ordered + [(i, floor - rank) for rank, i in enumerate(tail, 1)]
