"""How deep a question needs its evidence: conditional computation by a small calibrated router. Pure.

After the first `PROBE` passages of the fused order are reranked, the router estimates for each shallow depth
how likely it loses an answer that the full depth would have. The depth with the lowest cost, a loss counted
at the operator's price, is taken (ADR 0031). What is not clear goes the whole way.

Logistic fits on CMRC 2018 and DRCD (docs/benchmarks.md), whose questions are not reported; whether an answer
is lost is whether a gold answer stands in what the depth gives: for `extract` two sentences of one passage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum

import regex

from retrieval.relevance import sigmoid

AUTO = "auto"  # asks the router; any `Depth` may be asked for by name
PROBE = 5  # passages that are reranked before it is decided
_CERTAIN = 3.0  # the margin of a passage that stands alone


class Depth(StrEnum):
    """What an answer draws on: sentences of one passage (no model), one, a few, or all the evidence."""

    EXTRACT = "extract"
    ONE = "one"
    FEW = "few"
    FULL = "full"


EVIDENCE: Mapping[Depth, int] = {Depth.EXTRACT: 1, Depth.ONE: 1, Depth.FEW: 2}
"""Passages of evidence; the full depth has as many as the profile says."""

MOST = 1_000  # above every bound on evidence

COST: Mapping[Depth, float] = {Depth.EXTRACT: 0.125, Depth.ONE: 0.33, Depth.FEW: 0.46, Depth.FULL: 1.0}
"""Mean of the shares of the rerank and of the prompt that a depth takes, measured on CMRC 2018."""

_NUMBER = regex.compile(
    r"多少|几|何时|什么时候|哪一?年|\bhow (?:many|much|long|old|far)\b|\bwhen\b|\bwhich year\b",
    regex.IGNORECASE,
)
_WIDE = regex.compile(
    r"为什么|为何|如何|怎么|怎样|哪些|区别|比较|原因|列举|分别"
    r"|\bwhy\b|\bcompare\b|\bdifferen|\blist\b|\bwhat are\b|\bhow (?!many|much|long|old|far|tall|big)",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Signals:
    """What the router goes by, of the probe's best passage unless said otherwise.

    Attributes:
        relevance: calibrated, in [0, 1].
        margin: of its final score over the next one's, on the standardized scale.
        relevance_margin: over the most relevant other one.
        dense_first, lexical_first: whether the route has it at rank 1.
        number, wide: whether the question asks for a number; for reasons, ways, or several things.
        sentences: how many it has, as ln(1 + n).
    """

    relevance: float
    margin: float
    relevance_margin: float
    dense_first: bool
    lexical_first: bool
    number: bool
    wide: bool
    sentences: float


# In the order of `Signals`, then the offset.
_LOSS: Mapping[Depth, Sequence[float]] = {
    Depth.EXTRACT: (-0.41, -0.04, -1.30, 0.10, -1.17, -0.24, 0.70, 0.93, -1.57),
    Depth.ONE: (-0.47, -0.27, -3.65, -0.87, -1.46, -0.53, 0.47, -0.10, 1.12),
    Depth.FEW: (-2.08, -0.07, -1.36, -1.03, -2.50, 0.20, 0.40, -0.04, -0.35),
}


def asks_number(question: str) -> bool:
    """Whether a number, an amount or a date is asked for."""
    return _NUMBER.search(question) is not None


def asks_widely(question: str) -> bool:
    """Whether reasons, ways or several things are asked for, which one passage may not hold."""
    return _WIDE.search(question) is not None


def margin_of(scores: Sequence[float]) -> float:
    """Between the two best of the final scores."""
    best = sorted(scores, reverse=True)[:2]
    return best[0] - best[1] if len(best) > 1 else _CERTAIN


def losses(signals: Signals) -> dict[Depth, float]:
    """Chance, in [0, 1], that a depth loses the answer of the full depth; a deeper one loses no more."""
    values = [float(v) for v in astuple(signals)]
    found: dict[Depth, float] = {}
    least = 1.0
    for depth, (*weights, offset) in _LOSS.items():
        chance = sigmoid(sum(w * v for w, v in zip(weights, values, strict=True)) + offset)
        least = found[depth] = min(least, chance)
    return {**found, Depth.FULL: 0.0}


def decide(signals: Signals, *, price: float, threshold: float = 0.0) -> Depth:
    """The depth with the lowest cost; a lost answer costs `price` times a whole answer at full depth.

    Where the best of the probe is below `threshold`, perhaps nothing answers: a refusal looks at everything.
    """
    if signals.relevance < threshold:
        return Depth.FULL
    chances = losses(signals)
    return min(chances, key=lambda depth: (COST[depth] + price * chances[depth], -COST[depth]))
