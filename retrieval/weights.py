"""What each part of the ranking counts, by the language of the question. Pure.

Chosen on CLAPNQ for English and on CMRC 2018 for Chinese (nDCG@10), never on a set that is only reported;
questions in other languages are ranked like English ones. Across languages only the encoder speaks, so its
token vectors count for more: there were no judged pairs to choose on, and twice the weight is a judgement.

nDCG@10 by lexical weight, MaxSim at 1: CLAPNQ .25 .9855, .5 .9879, .75 .9855, 1 .9831; CMRC .25 .9872,
.5 .9891, .75 .9908, 1 .9916. MaxSim at 2 instead: CLAPNQ .9855, CMRC .9917; at 0: .9831 and .9922.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.types import Lang, Route
from retrieval.language import across


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of standardized scores.

    Attributes:
        routes: of the routes that are standardized.
        tokens: of MaxSim beside the fused score.
    """

    routes: Mapping[Route, float]
    tokens: float


_ENGLISH = Weights({Route.DENSE: 1.0, Route.LEXICAL: 0.5}, 1.0)
_CHINESE = Weights({Route.DENSE: 1.0, Route.LEXICAL: 1.0}, 1.0)
_BY_LANGUAGE: Mapping[Lang, Weights] = {Lang.ZH: _CHINESE, Lang.EN: _ENGLISH, Lang.UND: _ENGLISH}
ACROSS_TOKENS = 2.0


def weights_for(question: Lang) -> Weights:
    """The weights of a question in this language."""
    return _BY_LANGUAGE[question]


def tokens_weight(question: Lang, passages: Sequence[Lang]) -> float:
    """Weight of MaxSim for a head of these passages: most of them in another language, or not."""
    if 2 * sum(1 for lang in passages if across(question, lang)) > len(passages):
        return ACROSS_TOKENS
    return weights_for(question).tokens
