"""What each part of the ranking counts, by the language of the question. Pure.

Chosen on CLAPNQ for English and on CMRC 2018 for Chinese (nDCG@10), never on a set that is only reported;
questions in other languages are ranked like English ones. Across languages only the encoder speaks, so its
token vectors count for more and look at more: chosen on those Chinese questions about English paragraphs of
XQuAD whose hash is even (20 passages at weight 2 .863, 50 at 4 .879, 100 at 8 .877; without the means of the
languages, ADR 0036, 50 at 4 .907; with the dense route asked again, ADR 0041, .918).

nDCG@10 by lexical weight, MaxSim at 1: CLAPNQ .25 .9855, .5 .9879, .75 .9855, 1 .9831; CMRC .25 .9872,
.5 .9891, .75 .9908, 1 .9916. MaxSim at 2 instead: CLAPNQ .9855, CMRC .9917; at 0: .9831 and .9922. DRCD had
gained .006 of recall@1 by MaxSim at 2 (ADR 0008), so Chinese takes 2. With the tokens of ADR 0039 and MaxSim
at 2, CMRC says of the lexical weight: .75 .9907, 1 .9912, 1.5 .9928, 2 .9934, 3 .9939.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.types import Lang, Route


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
_CHINESE = Weights({Route.DENSE: 1.0, Route.LEXICAL: 1.5}, 2.0)
_BY_LANGUAGE: Mapping[Lang, Weights] = {Lang.ZH: _CHINESE, Lang.EN: _ENGLISH, Lang.UND: _ENGLISH}
ACROSS_TOKENS = 4.0
ACROSS_HEAD = 50  # passages that are reranked at least
ASKED_AGAIN = frozenset({Lang.ZH})  # ADR 0041: English questions about Chinese passages lose by it


def weights_for(question: Lang) -> Weights:
    """The weights of a question in this language."""
    return _BY_LANGUAGE[question]
