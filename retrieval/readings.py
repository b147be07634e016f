"""Which of several entities of one name a question means. Pure; vectors come from the caller.

The question itself tells: by what it says of the entity (`the footballer Emerson`), and by what else it
names that the same documents name (`海石科技的李伟`). Where it tells nothing, all readings stay as likely.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from ingest.disambiguate import context_terms
from retrieval.entity_names import Named

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""Cosine of one text against others, each in [-1, 1]."""

_PRIOR = 0.5  # times the log of a reading's share: people ask about the rare one too
_TERM, _TERMS_MOST = 1.5, 3.0  # per word of the question that only this reading's profile holds
_BESIDE = 2.5  # another name of the question stands in the same documents
_SIMILARITY = 50.0  # times the difference in cosine, as in linking


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of an entity: its name, a description, the organisations it belongs to."""

    name: str
    description: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A name with how likely each reading is, given the question.

    Attributes:
        shares: entity → probability; sums to 1.
        certainty: 0 when all readings are equally likely or there is one only, 1 when one is left of several.
    """

    name: Named
    shares: Mapping[str, float]
    certainty: float

    def fit(self, entity_id: str) -> float:
        """How likely the reading is against the likeliest, in [0, 1]."""
        return self.shares.get(entity_id, 0.0) / max(self.shares.values())


def weigh(
    question: str,
    names: Sequence[Named],
    profiles: Mapping[str, Profile],
    documents: Mapping[str, Set[str]],
    similarity: Similarity | None = None,
) -> list[Weighed]:
    """Weigh the readings of every name.

    Args:
        question: the text.
        names: in it, not overlapping.
        profiles: of the readings; one that is missing has nothing to say for it.
        documents: entity → ids of the visible documents that name it.
        similarity: asked only for names of which two readings or more are described.
    """
    return [_weigh(question, name, names, profiles, documents, similarity) for name in names]


def _weigh(
    question: str,
    name: Named,
    names: Sequence[Named],
    profiles: Mapping[str, Profile],
    documents: Mapping[str, Set[str]],
    similarity: Similarity | None,
) -> Weighed:
    ids = sorted(name.readings)
    if len(ids) < 2:
        return Weighed(name, dict(name.readings), 0.0)
    said = f"{question[: name.start]} {question[name.end :]}"
    matched = _matched(said, [profiles.get(i, Profile("")) for i in ids])
    others = [n for n in names if n is not name and not set(n.readings) & set(ids)]
    logits = [
        _PRIOR * math.log(name.readings[i])
        + min(_TERMS_MOST, _TERM * terms)
        + _BESIDE * _tied(i, others, documents)
        for i, terms in zip(ids, matched, strict=True)
    ]
    described = [k for k, i in enumerate(ids) if i in profiles and profiles[i].description]
    if similarity is not None and len(described) > 1:
        texts = [f"{profiles[ids[k]].name}: {profiles[ids[k]].description}" for k in described]
        cosines = similarity(question, texts)
        for k, cosine in zip(described, cosines, strict=True):
            logits[k] += _SIMILARITY * (cosine - sum(cosines) / len(cosines))
    shares = _softmax(logits)
    least = 1 / len(ids)
    return Weighed(name, dict(zip(ids, shares, strict=True)), (max(shares) - least) / (1 - least))


def _matched(said: str, profiles: Sequence[Profile]) -> list[float]:
    """Per profile: how many terms of the question it holds, the less a term counts the more hold it."""
    terms = context_terms(said)
    held = [terms & context_terms(f"{p.name} {p.description} {p.beside}") for p in profiles]
    common = Counter(t for own in held for t in own)
    least = 1 / len(profiles)
    return [sum((1 / common[t] - least) / (1 - least) for t in own) for own in held]


def _tied(entity_id: str, others: Sequence[Named], documents: Mapping[str, Set[str]]) -> float:
    """1 when each other name of the question stands in the entity's documents, 0 when none does."""
    own = documents.get(entity_id, frozenset[str]())
    known = [n for n in others if any(documents.get(i) for i in n.readings)]
    if not own or not known:
        return 0.0
    return sum(any(own & documents.get(i, frozenset[str]()) for i in n.readings) for n in known) / len(known)


def _softmax(logits: Sequence[float]) -> list[float]:
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    total = sum(weights)
    return [w / total for w in weights]
