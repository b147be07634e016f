"""What is searched for beside a question: texts that a model wrote, by policy (ADR 0037). Pure.

They are strings to search with and nothing else: no filter, no scope and no weight comes from them, routes
read them as plain words, and the rerank, the evidence's sentences and the prompt know the question alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

Kind = Literal["llm", "hyde"]
KINDS: tuple[Kind, ...] = ("llm", "hyde")

WEIGHT = 0.5  # of a variant against the question; below 1, so that it never outvotes the asker
MOST, MAX_CHARS = 4, 1000

Scored = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Variant:
    """One text.

    Attributes:
        kind: `llm`, the question in other words; `hyde`, a passage as one that answers might read.
        text: at most `MAX_CHARS` characters.
    """

    kind: Kind
    text: str

    @property
    def by_words(self) -> bool:
        """Whether the lexical route takes it. The invented facts of a passage are words of no document."""
        return self.kind == "llm"

    def as_json(self) -> dict[str, Any]:
        """For the query's row and the trace."""
        return asdict(self)


def variants_of(stored: Sequence[Mapping[str, Any]]) -> tuple[Variant, ...]:
    """The variants of a row; what is of no known kind, or has no text, is left out."""
    found = [
        Variant(cast(Kind, one["kind"]), str(one["text"])[:MAX_CHARS])
        for one in stored
        if one.get("kind") in KINDS and str(one.get("text", "")).strip()
    ]
    return tuple(found[:MOST])


def joined(own: Scored, others: Sequence[Scored], *, weight: float = WEIGHT) -> list[tuple[int, float]]:
    """One route's hits for the question, with what it found for the variants.

    score(p) = own(p) + weight · spread · share(p), the last averaged over the variants: share is p's place
    in [0, 1] between the lowest and the highest score of the variant's hits, spread the distance of these two
    for the question. What the question did not find has its lowest score for own(p). So a passage that
    variants alone found stands at most `weight` of the way up from the question's last hit to its best.

    Args:
        own: (passage id, score) for the question, best first.
        others: the same for each variant.
        weight: from 0 to 1.

    Returns:
        Best first, ties by passage id; `own` itself where no variant found anything.
    """
    others = [found for found in others if found]
    if not others:
        return list(own)
    scores = [score for _, score in own]
    floor, spread = (min(scores), max(scores) - min(scores)) if scores else (0.0, 1.0)
    total = dict(own)
    for found in others:
        low, high = min(score for _, score in found), max(score for _, score in found)
        for passage_id, score in found:
            share = (score - low) / (high - low) if high > low else 1.0
            added = weight * spread * share / len(others)
            total[passage_id] = total.get(passage_id, floor) + added
    return sorted(total.items(), key=lambda item: (-item[1], item[0]))
