"""Late-interaction rerank with the encoder's own token vectors, and the scores that come from it.

The token vectors were made with the passages' own (`retrieval/token_codec.py`). They give three things: the
order, a calibrated relevance per passage (refusal is decided by it), and scored sentences for `extract`.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.types import Lang
from retrieval.centres import Centres, without
from retrieval.fuse import standardized
from retrieval.relevance import Floats, Question, relevance
from retrieval.token_codec import StoredTokens, similarities, unpack_tokens

LoadTokens = Callable[[Sequence[int]], Mapping[int, bytes]]
EncodeTokens = Callable[[Sequence[str]], Sequence[bytes]]

# The best of many estimates is more often too high than too low. Measured against whole vectors on CMRC 2018
# (.0088) and CLAPNQ (.0087 to .0092), deviation .005; what relevance is fitted on are whole vectors.
ESTIMATE_BIAS = 0.009
_SHARPNESS = 3.0
BATCH = 4  # passages per encoder call: the most that a spent time budget may be overrun by


@dataclass(frozen=True, slots=True)
class Scored:
    """One reranked passage.

    Attributes:
        maxsim: mean over the question's tokens of the best cosine in the passage.
        closeness: what the order goes by: MaxSim, or across languages what is left of it without the parts
            that all texts of a language share (`centred_closeness`).
        relevance: calibrated, in [0, 1].
    """

    passage_id: int
    maxsim: float
    closeness: float
    relevance: float
    tokens: StoredTokens


def mean_of_best(similarities: Floats) -> float:
    """MaxSim: mean over the question's tokens of the best cosine in the passage; 0 when a side has no tokens.

    Args:
        similarities: [q, t] cosines. The loop: `mean([max(row) for row in similarities])`.

    Source: Khattab and Zaharia, ColBERT, SIGIR 2020, doi:10.1145/3397271.3401075.
    """
    return float(similarities.max(axis=1).mean()) if similarities.size else 0.0


def centred_closeness(
    question: Question, passages: Sequence[tuple[StoredTokens, Lang]], centres: Centres
) -> list[float]:
    """Closeness of passages in whatever language: the mean over the question's tokens of e^(3 · best cosine).

    Cosines are those of vectors without the mean of their language. The exponent lets the tokens that a
    passage has an answer to count for more than the average ones; `retrieval/weights.py` says what it was
    chosen on.

    Args:
        question: prepared; `tokens` are unit rows.
        passages: token vectors and language.
        centres: of the same encoder.
    """
    left = without(question.tokens, centres.questions[question.lang])
    langs = sorted({lang for _, lang in passages})
    middles = np.stack([centres.passages[lang] for lang in langs])
    rows = np.concatenate([left, middles])
    found: list[float] = []
    for (_, lang), cosines in zip(passages, similarities(rows, [p for p, _ in passages]), strict=True):
        own = langs.index(lang)
        middle = middles[own]
        # |p − c|² of unit rows p; an estimate may come out a little below what is possible.
        length = np.sqrt(np.maximum(1.0 - 2.0 * cosines[len(left) + own] + float(middle @ middle), 1e-2))
        best = (cosines[: len(left)] - (left @ middle)[:, None]) / length
        found.append(float(np.exp(_SHARPNESS * best.max(axis=1)).mean()) if best.size else 0.0)
    return found


class TokenCache:
    """Packed token vectors of passages, least recently used out first.

    A passage's text never changes under its id, so an entry is never stale.

    Args:
        max_bytes: bound on what is kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, passage_id: int) -> bytes | None:
        """The passage's packed token vectors, or None."""
        with self._lock:
            kept = self._kept.get(passage_id)
            if kept is not None:
                self._kept.move_to_end(passage_id)
            return kept

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def put(self, passage_id: int, packed: bytes) -> None:
        """Keep a passage's packed token vectors."""
        with self._lock:
            if passage_id in self._kept:
                return
            self._kept[passage_id] = packed
            self._bytes += len(packed)
            while self._bytes > self._max_bytes and self._kept:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= len(oldest)


@dataclass(frozen=True, slots=True)
class Head:
    """What was scored, in the order given, and the token vectors that had to be made for it."""

    scored: list[Scored]
    made: dict[int, bytes]


def score_head(
    question: Question,
    head: Sequence[tuple[int, str, Lang]],
    *,
    load: LoadTokens,
    encode: EncodeTokens,
    cache: TokenCache,
    budget_s: float,
    centres: Centres | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Head:
    """Score passages in the order given until all are done or the time budget is spent.

    Cached and stored token vectors cost no encoding. The rest are encoded in batches of `BATCH`; no batch
    begins after the budget, so it is overrun by at most one. When nothing is stored the first batch always
    runs: there is no evidence without it.

    Args:
        question: the prepared question.
        head: (passage id, text, language), best first.
        load: stored token vectors of these passages, packed; what is not stored is left out.
        encode: packed token vectors of texts.
        cache: looked up first, filled afterwards.
        budget_s: seconds from now.
        centres: given when the passages are mostly in another language than the question.
        clock: monotonic seconds.

    Returns:
        One entry per scored passage, in the order of `head`.
    """
    start = clock()
    packed = {passage_id: kept for passage_id, _, _ in head if (kept := cache.get(passage_id)) is not None}
    if unknown := [passage_id for passage_id, _, _ in head if passage_id not in packed]:
        packed.update(load(unknown))
    made: dict[int, bytes] = {}
    missing = [(passage_id, text) for passage_id, text, _ in head if passage_id not in packed]
    for at in range(0, len(missing), BATCH):
        if (at or packed) and clock() - start >= budget_s:
            break
        batch = missing[at : at + BATCH]
        for (passage_id, _), tokens in zip(batch, encode([text for _, text in batch]), strict=True):
            made[passage_id] = tokens
    packed.update(made)
    known = [(passage_id, text, lang) for passage_id, text, lang in head if passage_id in packed]
    for passage_id, _, _ in known:
        cache.put(passage_id, packed[passage_id])
    tokens = [unpack_tokens(packed[passage_id]) for passage_id, _, _ in known]
    maxsims = [mean_of_best(c) - ESTIMATE_BIAS for c in similarities(question.tokens, tokens)]
    close = maxsims
    if centres is not None and known:
        langs = [lang for _, _, lang in known]
        close = centred_closeness(question, list(zip(tokens, langs, strict=True)), centres)
    scored = [
        Scored(passage_id, maxsim, closeness, relevance(question, maxsim, text, lang), own)
        for (passage_id, text, lang), own, maxsim, closeness in zip(
            known, tokens, maxsims, close, strict=True
        )
    ]
    return Head(scored, made)


def final_order(
    fused: Sequence[tuple[int, float]],
    maxsims: Mapping[int, float],
    *,
    weight: float,
    exact: Mapping[int, float] | None = None,
) -> list[tuple[int, float]]:
    """Order by both scores, each standardized over the reranked passages; the rest follow as fused.

    score(p) = z(fused(p) − exact(p)) + weight · z(maxsim(p)) + exact(p). A passage that was not
    reranked never overtakes one that was: nothing is known of it but its rank.

    Args:
        fused: (passage id, fused score), best first.
        maxsims: MaxSim of the reranked ones.
        weight: of MaxSim.
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
        i: a + weight * b + own.get(i, 0.0) for (i, _), a, b in zip(head, by_fusion, by_tokens, strict=True)
    }
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    floor = min(scores.values(), default=0.0)
    tail = [i for i, _ in fused if i not in maxsims]
    return ordered + [(i, floor - rank) for rank, i in enumerate(tail, 1)]
