"""How probable it is that a link is right. Pure.

The weights were fitted, not set: a logistic regression on mentions whose entity is known, with those among
them whose entity no catalogue has (`benchmarks/link_calibration.py`, docs/benchmarks.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import regex

_HAN = regex.compile(r"\p{Han}")
# Whether text and description are Chinese → the cosine of the two between that of the right one of a name and
# that of the wrong one: .020 to .025 above the mean of unrelated ones on the ambiguous set.
_BASE_COSINE = {(True, True): 0.890, (False, False): 0.801, (True, False): 0.785, (False, True): 0.751}
LEAD_MOST = 4.0
_COSINE_MOST = 4.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for the best reading of a name.

    Attributes:
        own: log-odds by spelling, type and the rest of the document.
        lead: log-odds over the next reading, at most `LEAD_MOST`; that much where there is no other.
        overlap: share of the description's terms that the text holds, in [0, 1].
        cosine: of text and description above what unrelated ones have, in hundredths; None: not asked.
        rivals: other readings spelled as well as the best one.
        differs: the recogniser's type is not the catalogue's.
    """

    own: float
    lead: float
    overlap: float = 0.0
    cosine: float | None = None
    rivals: int = 0
    differs: bool = False


def above_base(cosine: float, text: str, description: str) -> float:
    """A cosine against that of unrelated texts of the same languages, in hundredths."""
    base = _BASE_COSINE[_HAN.search(text) is not None, _HAN.search(description) is not None]
    return max(-_COSINE_MOST, min(_COSINE_MOST, 100 * (cosine - base)))


def terms(evidence: Evidence) -> tuple[float, ...]:
    """What the regression sees, an intercept first."""
    asked = evidence.cosine is not None
    return (
        1.0,
        max(-4.0, min(4.0, evidence.own)),
        min(LEAD_MOST, evidence.lead),
        evidence.overlap,
        evidence.cosine or 0.0,
        float(asked),
        float(min(3, evidence.rivals) if not asked else 0),
    )


# In the order of `terms`: a bias, spelling, lead, terms held, cosine, whether it was asked, rivals otherwise.
WEIGHTS = (-2.003, 0.592, 1.036, 3.627, 1.222, -0.282, -0.264)


# Set by hand: the judged mentions come without a recogniser's types.
_DIFFERS = -2.3


def probability(evidence: Evidence) -> float:
    """Probability that the best reading is right, in (0, 1)."""
    log_odds = sum(w * t for w, t in zip(WEIGHTS, terms(evidence), strict=True))
    return 1 / (1 + math.exp(-(log_odds + (_DIFFERS if evidence.differs else 0.0))))
