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
from ingest.calibration import LEAD_MOST, Evidence, hundredths, probability
from ingest.candidates import Spelling
from ingest.catalogue import Candidate, Catalogue, CatalogueEntity, alias_key
from ingest.fold import search_fold
from ingest.name_forms import name_form, tokens_of
from ingest.values import Mention

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""Cosine of one context against candidate descriptions, each in [-1, 1]."""

# Log-odds that a name alone means the entity, by how it is spelled.
_OWN = {Spelling.EXACT: 2.0, Spelling.FOLDED: 1.6, Spelling.CORE: 1.1, Spelling.ACRONYM: 0.2}
_PART, _PART_EVEN = 6.0, 0.6  # a part of a name: slope over its strength, and the strength that is even
_PART_OF_PERSON = 0.6  # people are called by a part of their name …
_PART_OF_OTHER = -1.2  # … places and organisations are not: `Antilles` is not the Netherlands Antilles
_PART_MOST = 1.5  # however much of it the text supports, a part says less than the whole name
_MISSING = 2.5  # times the share of the name's missing words that the document holds
_LOWER_CASE = -0.8  # `apple` is not Apple
_TYPE_AGREES, _TYPE_DIFFERS = 0.7, -1.6
_PRIOR = 1.0  # times the log-ratio of the priors
_CONTEXT = 4.0  # times the difference in the share of description terms that the context holds
_SIMILARITY = 50.0  # times the difference in cosine: e5's useful range is a tenth wide
_COHERENCE = 2.0
_CERTAIN = 0.8  # a link of this score helps the other names of its document
_CLOSE = 12  # candidates that are weighed against the text
_PLAUSIBLE = 4.0  # log-odds behind the best at which the encoder is not asked any more
_WINDOW = 240  # characters to each side of a name that the encoder is given
_SUPPORT_MOST = 2.0  # how much the text can say for a part of a name
_PART_ODDS = 1.6  # one over the probability by spelling and text from which a part of a name is linked …
# … and a whole one: any when it is written as it stands, more when words of it were set apart.
_WRITTEN_OTHERWISE = {Spelling.EXACT: math.inf, Spelling.FOLDED: math.inf, Spelling.CORE: 1.45}
_LEAST_LEAD = 0.25  # log-odds between the best and the next below which nothing tells them apart
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


@dataclass(frozen=True, slots=True)
class _Document:
    """What the mentions of one document share."""

    catalogue: Catalogue
    id: str
    words: Mapping[int, frozenset[str]]  # of each passage
    threshold: float
    similarity: Similarity | None
    abstain: bool
    certain: Mapping[str, frozenset[str]]  # entity → keys of the names that mean it for sure


@dataclass(frozen=True, slots=True)
class Resolved:
    """A link with the best candidate and what speaks for it, whether it was linked or not."""

    link: LinkedMention
    best: str | None = None
    evidence: Evidence | None = None


def link(
    mentions: Sequence[Mention],
    contexts: Mapping[int, Context],
    catalogue: Catalogue,
    *,
    document_id: str,
    threshold: float,
    similarity: Similarity | None = None,
    abstain: bool = True,
) -> list[LinkedMention]:
    """Resolve the mentions of one document.

    Args:
        mentions: of the whole document, because they help each other.
        contexts: by passage id.
        catalogue: the tenant's.
        document_id: for names that a person split by document.
        threshold: below this score a mention stays NIL.
        similarity: asked only for mentions with two or more plausible candidates; None leaves it out.
        abstain: leave doubtful mentions NIL; False takes the best candidate, for a closed list of entities.

    Returns:
        One link per mention, in order. `score` is the probability that the link is right (for NIL: of the
        best candidate); `reason` tells how it came to be. The order of the mentions does not matter.
    """
    return [
        one.link
        for one in resolve(
            mentions,
            contexts,
            catalogue,
            document_id=document_id,
            threshold=threshold,
            similarity=similarity,
            abstain=abstain,
        )
    ]


def resolve(
    mentions: Sequence[Mention],
    contexts: Mapping[int, Context],
    catalogue: Catalogue,
    *,
    document_id: str,
    threshold: float,
    similarity: Similarity | None = None,
    abstain: bool = True,
) -> list[Resolved]:
    """What `link` does, with the evidence."""
    options = {
        name: catalogue.candidates(name) for name in {n for m in mentions for n in (m.name, m.surface)}
    }
    words = {number: frozenset(tokens_of(c.text)) for number, c in contexts.items()}
    document = _Document(catalogue, document_id, words, threshold, None, abstain, {})
    first = [_resolve(m, _options(m, options), contexts[m.passage_id].text, document) for m in mentions]
    certain = _certain([one.link for one in first])
    document = _Document(catalogue, document_id, words, threshold, similarity, abstain, certain)
    return [
        found
        if found.link.entity_id is None and not _options(m, options)
        else _resolve(m, _options(m, options), contexts[m.passage_id].text, document)
        for m, found in zip(mentions, first, strict=True)
    ]


def _options(mention: Mention, options: Mapping[str, list[Candidate]]) -> list[Candidate]:
    """Candidates of the full name where the mention is short for one that the catalogue knows."""
    full = options[mention.name]
    return full if any(c.named for c in full) else options[mention.surface]


def _certain(links: Sequence[LinkedMention]) -> dict[str, frozenset[str]]:
    names: dict[str, set[str]] = {}
    for found in links:
        if found.entity_id is not None and found.score >= _CERTAIN:
            names.setdefault(found.entity_id, set()).add(alias_key(found.surface))
    return {entity: frozenset(keys) for entity, keys in names.items()}


def _resolve(mention: Mention, options: Sequence[Candidate], context: str, document: _Document) -> Resolved:
    if not options:
        return Resolved(_linked(mention, None, 0.0, "nil=unknown_name"))
    pinned = next((c for c in options if c.pinned), None)
    if pinned is not None:
        return Resolved(_linked(mention, pinned.entity.id, 0.99, "override=pinned" + _via(pinned)))
    for candidate in options:
        decided = document.catalogue.splits.get((candidate.entity.id, document.id))
        if candidate.named and decided in document.catalogue.entities:
            origin = "" if decided == candidate.entity.id else f";split_from={candidate.entity.id}"
            return Resolved(_linked(mention, decided, 0.99, "override=split" + origin))
    best = _best(mention, options[:_CLOSE], context, document)
    score = probability(best.evidence)
    if document.abstain and best.evidence.lead < _LEAST_LEAD:
        return Resolved(
            _linked(mention, None, score, f"nil=ambiguous;{best.detail}"),
            best.candidate.entity.id,
            best.evidence,
        )
    if document.abstain and (score < document.threshold or not _likely_part(best)):
        return Resolved(
            _linked(mention, None, score, f"nil=below_threshold;{best.detail}"),
            best.candidate.entity.id,
            best.evidence,
        )
    entity_id = best.candidate.entity.id
    return Resolved(
        _linked(mention, entity_id, score, best.detail + _via(best.candidate)), entity_id, best.evidence
    )


@dataclass(frozen=True, slots=True)
class _Best:
    """The likeliest candidate, what speaks for it, and how it came to be."""

    candidate: Candidate
    evidence: Evidence
    detail: str


def _best(mention: Mention, options: Sequence[Candidate], context: str, document: _Document) -> _Best:
    # A whole name of several words stands for itself, whoever shares a part of it.
    whole = len(name_form(mention.surface).tokens) > 1 and any(c.named for c in options)
    own = [_own_log_odds(mention, c, document, c.named or (c.leads and not whole)) for c in options]
    if len(options) == 1:
        return _Best(
            options[0],
            Evidence(own[0], LEAD_MOST, differs=_differs(mention, options[0])),
            _reason(options[0], mention),
        )
    fits = [_overlap(c.entity, context) for c in options]
    logits = [
        odds + _PRIOR * math.log(c.prior) + _CONTEXT * fit
        for odds, c, fit in zip(own, options, fits, strict=True)
    ]
    near = _near(context, mention.surface)
    cosines = _cosines(options, logits, near, document.similarity)
    lowest = min(cosines.values(), default=0.0)
    logits = [logit + _SIMILARITY * (cosines.get(i, lowest) - lowest) for i, logit in enumerate(logits)]
    first, second = sorted(range(len(options)), key=lambda i: (-logits[i], options[i].entity.id))[:2]
    chosen, lead = options[first], logits[first] - logits[second]
    detail = f"{_reason(chosen, mention)};context={fits[first]:.2f}"
    cosine = None
    if first in cosines and chosen.entity.description:
        cosine = hundredths(cosines[first])
        detail += f";similarity={cosines[first]:.3f}"
    rivals = sum(c.strength >= chosen.strength for c in options) - 1
    evidence = Evidence(
        own[first], min(LEAD_MOST, lead), fits[first], cosine, rivals, _differs(mention, chosen)
    )
    return _Best(chosen, evidence, f"{detail};candidates={len(options)};lead={lead:.2f}")


def _likely_part(best: _Best) -> bool:
    """Whether a name that is not written out may be linked: a part of a name is first another name."""
    most = _WRITTEN_OTHERWISE.get(best.candidate.spelling, _PART_ODDS)
    evidence = best.evidence
    support = min(_SUPPORT_MOST, 2 * evidence.overlap + max(0.0, evidence.cosine or 0.0))
    return (1 + math.exp(-evidence.lead)) * (1 + math.exp(-(evidence.own + support))) <= most


def _near(context: str, surface: str) -> str:
    """The part of a context around a name: what the encoder is asked about, cheaper than the whole."""
    at = context.find(surface)
    if at < 0 or len(context) <= 2 * _WINDOW:
        return context
    return context[max(0, at - _WINDOW) : at + len(surface) + _WINDOW]


def _cosines(
    options: Sequence[Candidate], logits: Sequence[float], context: str, similarity: Similarity | None
) -> dict[int, float]:
    """Cosine of the context with each plausible candidate's description; empty where nobody asked.

    Bare names are not compared: they say nothing that the spelling does not.
    """
    top = max(logits)
    asked = [i for i, logit in enumerate(logits) if top - logit < _PLAUSIBLE]
    if similarity is None or len(asked) < 2 or not any(options[i].entity.description for i in asked):
        return {}
    return dict(zip(asked, similarity(context, [_described(options[i].entity) for i in asked]), strict=True))


def _own_log_odds(mention: Mention, candidate: Candidate, document: _Document, helped: bool) -> float:
    """Log-odds that this name means this entity, other readings aside.

    `helped`: the rest of the document may speak for the candidate.
    """
    odds = _OWN.get(candidate.spelling)
    if odds is None:
        odds = _PART * (candidate.strength - _PART_EVEN)
        if candidate.missing:
            held = _held(candidate, document.words[mention.passage_id])
            person = _KINDS.get(candidate.entity.type.upper()) == "person" and candidate.leads
            odds += _MISSING * held + (_PART_OF_PERSON if person else _PART_OF_OTHER * (1 - held))
        odds = min(odds, _PART_MOST)
    agreement = _agreement(mention.type, candidate.entity.type)
    odds += _TYPE_AGREES if agreement == 1 else _TYPE_DIFFERS if agreement == -1 else 0.0
    if not name_form(mention.surface).capitalised and name_form(candidate.entity.name).capitalised:
        odds += _LOWER_CASE
    if helped and document.certain.get(candidate.entity.id, frozenset()) - {alias_key(mention.surface)}:
        odds += _COHERENCE
    return odds


def _held(candidate: Candidate, words: frozenset[str]) -> float:
    """How far the text makes up for the words that the surface lacks, in [0, 1]."""
    return sum(w in words for w in candidate.missing) / len(candidate.missing) if candidate.leads else 0.0


def _agreement(label: str, kind: str) -> int:
    """1 when both types are known and the same, -1 when they differ, 0 when one is unknown."""
    left, right = _KINDS.get(label.upper()), _KINDS.get(kind.upper())
    if left is None or right is None:
        return 0
    return 1 if left == right else -1


def _differs(mention: Mention, candidate: Candidate) -> bool:
    return _agreement(mention.type, candidate.entity.type) == -1


def _described(entity: CatalogueEntity) -> str:
    """What the encoder compares: not the name, which all candidates share and the text may shorten."""
    return entity.description or entity.name


def context_terms(text: str) -> set[str]:
    """What of a text tells entities apart: folded words of four letters and more, bigrams of CJK runs."""
    return _terms(search_fold(text))


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
    return f"alias={candidate.spelling};prior={candidate.prior:.2f};type={agreement}"


def _via(candidate: Candidate) -> str:
    return f";merged_from={candidate.via}" if candidate.via else ""


def _linked(mention: Mention, entity_id: str | None, score: float, reason: str) -> LinkedMention:
    return LinkedMention(
        mention.passage_id,
        mention.span,
        mention.surface,
        entity_id,
        round(score, 4),
        reason,
        mention.type,
        mention.stands_for,
    )
