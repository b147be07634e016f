"""Which entity a mention means, or none (NIL). Pure: values in, values out; vectors come from the caller.

A mention's candidates are scored by how the name is spelled, how often it means each of them, whether the
recogniser's type agrees, how well the surrounding text fits what the catalogue says, and whether the document
names the entity elsewhere by a name that is not ambiguous. Two candidates that the text cannot tell apart
leave the mention NIL: a wrong link is worse than none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import regex

from core.types import LinkedMention
from ingest.catalogue import Candidate, Catalogue, CatalogueEntity, alias_key
from ingest.fold import search_fold
from ingest.values import Mention

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""Cosine of one context against candidate descriptions, each in [-1, 1]."""

_BASE = 1.2  # log-odds of a link for an unambiguous, folded match without type: 0.77
_EXACT = 0.8
_TYPE_AGREES, _TYPE_DIFFERS = 0.7, -1.6
_PRIOR = 1.0  # times the log-ratio of the priors
_CONTEXT = 4.0  # times the difference in the share of description terms that the context holds
_SIMILARITY = 25.0  # times the difference in cosine: e5's useful range is a tenth wide
_COHERENCE = 2.0
_MARGIN = 0.25  # the best must lead the next by this much of the probability
_TERM = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]+|[\p{L}\p{N}]{2,}")
_KINDS = {
    "PERSON": "person",
    "HUMAN": "person",
    "ORG": "org",
    "ORGANIZATION": "org",
    "ORGANISATION": "org",
    "COMPANY": "org",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
    "PLACE": "place",
    "LOCATION": "place",
    "CITY": "place",
    "COUNTRY": "place",
}


@dataclass(frozen=True, slots=True)
class Context:
    """What stands around a mention: its passage, the headings above it, the document's title."""

    text: str


def link(
    mentions: Sequence[Mention],
    contexts: Mapping[int, Context],
    catalogue: Catalogue,
    *,
    document_id: str,
    threshold: float,
    similarity: Similarity | None = None,
) -> list[LinkedMention]:
    """Resolve the mentions of one document.

    Args:
        mentions: of the whole document, because they help each other.
        contexts: by passage id.
        catalogue: the tenant's.
        document_id: for names that a person split by document.
        threshold: below this score a mention stays NIL.
        similarity: asked only for mentions with two or more candidates; None leaves it out.

    Returns:
        One link per mention, in order. `score` is the probability that the link is right (for NIL: of the
        best candidate); `reason` tells how it came to be.
    """
    options = [catalogue.candidates(alias_key(m.surface), m.surface) for m in mentions]
    certain = {o[0].entity.id for o in options if len(o) == 1}
    return [
        _resolve(m, o, contexts[m.passage_id].text, catalogue, document_id, threshold, certain, similarity)
        for m, o in zip(mentions, options, strict=True)
    ]


def _resolve(
    mention: Mention,
    options: Sequence[Candidate],
    context: str,
    catalogue: Catalogue,
    document_id: str,
    threshold: float,
    certain: set[str],
    similarity: Similarity | None,
) -> LinkedMention:
    if not options:
        return _linked(mention, None, 0.0, "nil=unknown_name")
    pinned = next((c for c in options if c.pinned), None)
    if pinned is not None:
        return _linked(mention, pinned.entity.id, 0.99, "override=pinned" + _via(pinned))
    for candidate in options:
        decided = catalogue.splits.get((candidate.entity.id, document_id))
        if decided in catalogue.entities:
            origin = "" if decided == candidate.entity.id else f";split_from={candidate.entity.id}"
            return _linked(mention, decided, 0.99, "override=split" + origin)
    chosen, score, reason = _best(mention, options, context, certain, similarity)
    if chosen is None:
        return _linked(mention, None, score, reason)
    if score < threshold:
        return _linked(mention, None, score, f"nil=below_threshold;{reason}")
    return _linked(mention, chosen.entity.id, score, reason + _via(chosen))


def _best(
    mention: Mention,
    options: Sequence[Candidate],
    context: str,
    certain: set[str],
    similarity: Similarity | None,
) -> tuple[Candidate | None, float, str]:
    base = [_own_log_odds(mention, c) for c in options]
    if len(options) == 1:
        return options[0], _sigmoid(base[0]), _reason(options[0], mention)
    fits = [_overlap(c.entity, context) for c in options]
    cosines = (
        list(similarity(context, [_described(c.entity) for c in options]))
        if similarity
        else [0.0] * len(options)
    )
    logits = [
        odds
        + _PRIOR * math.log(c.prior)
        + _CONTEXT * fit
        + _SIMILARITY * cosine
        + (_COHERENCE if c.entity.id in certain else 0.0)
        for odds, c, fit, cosine in zip(base, options, fits, cosines, strict=True)
    ]
    shares = _softmax(logits)
    order = sorted(range(len(options)), key=lambda i: (-shares[i], options[i].entity.id))
    first, second = order[0], order[1]
    chosen = options[first]
    score = shares[first] * _sigmoid(base[first])
    detail = f"{_reason(chosen, mention)};context={fits[first]:.2f}"
    if similarity:
        detail += f";similarity={cosines[first]:.3f}"
    detail += f";candidates={len(options)};margin={shares[first] - shares[second]:.2f}"
    if shares[first] - shares[second] < _MARGIN:
        return None, score, f"nil=ambiguous;{detail}"
    return chosen, score, detail


def _own_log_odds(mention: Mention, candidate: Candidate) -> float:
    agreement = _agreement(mention.type, candidate.entity.type)
    return (
        _BASE
        + (_EXACT if candidate.exact else 0.0)
        + (_TYPE_AGREES if agreement == 1 else _TYPE_DIFFERS if agreement == -1 else 0.0)
    )


def _agreement(label: str, kind: str) -> int:
    """1 when both types are known and the same, -1 when they differ, 0 when one is unknown."""
    left, right = _KINDS.get(label.upper()), _KINDS.get(kind.upper())
    if left is None or right is None:
        return 0
    return 1 if left == right else -1


def _described(entity: CatalogueEntity) -> str:
    return f"{entity.name}: {entity.description}" if entity.description else entity.name


def _overlap(entity: CatalogueEntity, context: str) -> float:
    """Share of the description's terms (words; bigrams of CJK runs) that the context holds, in [0, 1]."""
    own = _terms(search_fold(entity.name))
    terms = _terms(search_fold(entity.description)) - own
    if not terms:
        return 0.0
    folded = search_fold(context)
    return sum(1 for t in terms if t in folded) / len(terms)


def _terms(folded: str) -> set[str]:
    terms: set[str] = set()
    for match in _TERM.finditer(folded):
        run = match.group()
        if run.isascii() or not regex.match(r"[\p{Han}\p{Hiragana}\p{Katakana}]", run):
            if len(run) > 3 or any(c.isdigit() for c in run):
                terms.add(run)  # short words are mostly of the kind that stands everywhere
        else:
            terms.update(run[i : i + 2] for i in range(max(1, len(run) - 1)))
    return terms


def _reason(candidate: Candidate, mention: Mention) -> str:
    agreement = {1: "agrees", -1: "differs", 0: "unknown"}[_agreement(mention.type, candidate.entity.type)]
    spelled = "exact" if candidate.exact else "folded"
    return f"alias={spelled};prior={candidate.prior:.2f};type={agreement}"


def _via(candidate: Candidate) -> str:
    return f";merged_from={candidate.via}" if candidate.via else ""


def _linked(mention: Mention, entity_id: str | None, score: float, reason: str) -> LinkedMention:
    return LinkedMention(
        mention.passage_id, mention.span, mention.surface, entity_id, round(score, 4), reason, mention.type
    )


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _softmax(logits: Sequence[float]) -> list[float]:
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    total = sum(weights)
    return [w / total for w in weights]
