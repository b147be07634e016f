"""How probable it is that a link is right. Pure.

The weights were fitted, not set: a logistic regression on mentions whose entity is known, with those among
them whose entity no catalogue has (`benchmarks/link_calibration.py`, docs/benchmarks.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LEAD_MOST = 4.0
_COSINE_MOST = 4.0
_EVEN = 2.0  # hundredths between the right one of a name and the wrong one, on the ambiguous set


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for the best reading of a name.

    Attributes:
        own: log-odds by spelling, type and the rest of the document.
        lead: log-odds over the next reading, at most `LEAD_MOST`; that much where there is no other.
        overlap: share of the description's terms that the text holds, in [0, 1].
        cosine: nearness of text and description (`ingest/similarity.py`), as `hundredths` gives it; None: not
            asked.
        rivals: other readings spelled as well as the best one.
        differs: the recogniser's type is not the catalogue's.
    """

    own: float
    lead: float
    overlap: float = 0.0
    cosine: float | None = None
    rivals: int = 0
    differs: bool = False


def hundredths(nearness: float) -> float:
    """What the encoder says, in hundredths and bounded."""
    return max(-_COSINE_MOST, min(_COSINE_MOST, 100 * nearness - _EVEN))


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
WEIGHTS = (-2.059, 0.609, 1.051, 3.421, 1.729, -0.595, -0.253)


# Set by hand: the judged mentions come without a recogniser's types.
_DIFFERS = -2.3


def probability(evidence: Evidence) -> float:
    """Probability that the best reading is right, in (0, 1)."""
    log_odds = sum(w * t for w, t in zip(WEIGHTS, terms(evidence), strict=True))
    return 1 / (1 + math.exp(-(log_odds + (_DIFFERS if evidence.differs else 0.0))))
