"""Does a passage say what a claim says? Numbers, dates, units, names, negation, direction, words; zh and en.

Pure and quick: it runs on every claim of every answer. It errs to the safe side; a claim that it calls
supported shares its numbers, names and polarity with the sentences it cites and most of its content words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.types import Evidence, Span, Verdict
from generation.antecedent import with_antecedent
from generation.exchange import exchanged, name_mixed
from generation.facts import Fact, facts_of
from generation.polarity import agreement
from generation.relations import (
    bound_changed,
    cause_reversed,
    content_overlap,
    exception_dropped,
    hedge_dropped,
    quantity_changed,
    roles_swapped,
    sole_added,
    spliced_from,
    subject_from_later,
    voice_changed,
)
from generation.wording import (
    content_terms,
    direction_of,
    name_key,
    names_of,
    negated,
    opposed,
    sides_exchanged,
)
from ingest.sentences import sentences

SUPPORTED_COVER = 0.7  # share of the claim's content terms found in the cited sentences
PARTIAL_COVER = 0.45
_WINDOW = 2  # neighbouring sentences that may carry a claim together
_TOGETHER = 3  # passages, or sentences that stand apart, that may carry a claim together
_SHARED_APART = 2  # words that each of them shares with the claim
_MOSTLY_THE_SAME = 0.6  # overlap from which the order of what a claim and its source share is compared
_NEARLY_THE_SAME = 0.8  # overlap from which a claim is its source with a word changed, if at all
_OPPOSED = -0.25  # agreement of directions from which two sentences say opposite things


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on one claim against one passage.

    Attributes:
        reason: machine-readable, e.g. `words=0.86` or `number:330 m`.
        score: coverage in [0, 1], 0 when a fact contradicts; orders passages for re-attribution.
        span: the sentences of the passage that carry it, as offsets into the passage's text, or None.
    """

    verdict: Verdict
    reason: str
    score: float
    span: Span | None


def judge(claim: str, passage: str, about: str = "") -> Judgement:
    """Compare a claim with a passage.

    Args:
        claim: one sentence without markers.
        passage: the cited text.
        about: what stands above it (document name, headings): a claim may name its subject, which the
            sentences below a heading often do not repeat.

    Returns:
        `supported`: every number, date, unit and name of the claim stands in the passage near each other, the
        polarity agrees and at least `SUPPORTED_COVER` of its words do. `partial`: no fact contradicts but
        words are missing, or the passage is less sure than the claim. `unsupported`: a fact is missing or
        contradicted, or the words are not there.
    """
    terms = content_terms(claim)
    terms = terms - content_terms(about) or terms
    if not terms:
        return Judgement(Verdict.UNSUPPORTED, "no_content", 0.0, None)
    span, cover = _best_window(terms, passage)
    if span is None or cover < PARTIAL_COVER:
        return Judgement(Verdict.UNSUPPORTED, f"words={cover:.2f}", cover, span)
    window = passage[span.start : span.end]
    return _concluded(claim, window, passage, about, cover, with_antecedent(span, passage))


def _concluded(
    claim: str, window: str, context: str, about: str, cover: float, span: Span | None
) -> Judgement:
    """The verdict once the sentences that should carry the claim are chosen."""
    wrong = contradiction(claim, window, context, about)
    if wrong:
        apart = span is not None and wrong.startswith(("number", "month")) and _apart(claim, context, about)
        verdict = Verdict.PARTIAL if apart else Verdict.UNSUPPORTED
        return Judgement(verdict, f"apart:{wrong}" if apart else wrong, cover / 2, span)
    if cover < SUPPORTED_COVER:
        return Judgement(Verdict.PARTIAL, f"words={cover:.2f}", cover, span)
    closest = closest_sentence(claim, window)
    if doubt := hedge_dropped(claim, closest):
        return Judgement(Verdict.PARTIAL, f"hedge:{doubt}", cover, span)
    if len(content_terms(claim)) == 1 and sum(f.kind == "number" for f in facts_of(claim)) > 1:
        return Judgement(Verdict.PARTIAL, "few_words", cover, span)
    if sole_added(claim, window):
        return Judgement(Verdict.PARTIAL, "sole", cover, span)
    if spliced := spliced_from(claim, closest, about):
        return Judgement(Verdict.PARTIAL, f"spliced:{spliced}", cover, span)
    if span is not None and (later := subject_from_later(claim, context, span, about)):
        return Judgement(Verdict.PARTIAL, f"spliced:{later}", cover, span)
    return Judgement(Verdict.SUPPORTED, f"words={cover:.2f}", cover, span)


def _apart(claim: str, passage: str, about: str) -> bool:
    """Whether sentences of one passage that stand apart carry the claim together.

    A number that a neighbour does not have may still be said of the same thing further on: its sentence must
    then share words with the claim beside the number.
    """
    parts = [passage[s.start : s.end] for s in sentences(passage)]
    terms = content_terms(claim)
    chosen: list[str] = []
    facts = list(facts_of(claim))
    while (terms or facts) and len(chosen) < _TOGETHER:
        best = max(parts, key=lambda p: len(terms & content_terms(p)) + 2 * _carried_by(facts, p), default="")
        if not best or len(content_terms(claim) & content_terms(best)) < _SHARED_APART:
            break
        chosen.append(best)
        parts.remove(best)
        terms, facts = terms - content_terms(best), [f for f in facts if not _carried(f, facts_of(best))]
    window = "\n".join(chosen)
    wanted = content_terms(claim)
    cover = len(wanted & content_terms(window)) / max(1, len(wanted))
    return len(chosen) > 1 and cover >= SUPPORTED_COVER and not contradiction(claim, window, passage, about)


def _carried_by(facts: Sequence[Fact], text: str) -> int:
    known = facts_of(text)
    return sum(_carried(f, known) for f in facts)


def judge_all(claim: str, evidence: Sequence[Evidence]) -> list[tuple[Evidence, Judgement]]:
    """Judgements against each passage, the best first (verdict, then score, then marker)."""
    order = {Verdict.SUPPORTED: 0, Verdict.PARTIAL: 1, Verdict.UNSUPPORTED: 2}
    judged = [(e, judge(claim, e.passage.text, about(e))) for e in evidence]
    return sorted(judged, key=lambda pair: (order[pair[1].verdict], -pair[1].score, pair[0].marker))


def judge_together(claim: str, evidence: Sequence[Evidence]) -> list[tuple[Evidence, Judgement]]:
    """Judge a claim against several passages that it cites at once: each may carry a part of it.

    Returns:
        The passages that carry a part, each with the common verdict and its own sentence as the span; empty
        when fewer than two are needed or have anything to add.
    """
    subject = " ".join(map(about, evidence))
    wanted = content_terms(claim) - content_terms(subject) or content_terms(claim)
    left, facts_left = wanted, list(facts_of(claim))
    parts: list[tuple[Evidence, Span]] = []
    while (left or facts_left) and len(parts) < _TOGETHER:
        found = _most_added(left, facts_left, [e for e in evidence if all(e is not p for p, _ in parts)])
        if found is None:
            break
        e, span = found
        parts.append(found)
        said = e.passage.text[span.start : span.end]
        left, facts_left = (
            left - content_terms(said),
            [f for f in facts_left if not _carried(f, facts_of(said))],
        )
    if len(parts) < 2:
        return []
    window = "\n".join(e.passage.text[s.start : s.end] for e, s in parts)
    cover = len(wanted & content_terms(window)) / max(1, len(wanted))
    joint = _concluded(claim, window, window, subject, cover, None)
    reason = "together;" + joint.reason
    parts.sort(key=lambda part: part[0].marker)
    return [(e, Judgement(joint.verdict, reason, joint.score, span)) for e, span in parts]


def _most_added(
    terms: frozenset[str], facts: Sequence[Fact], evidence: Sequence[Evidence]
) -> tuple[Evidence, Span] | None:
    best: tuple[Evidence, Span] | None = None
    best_gain = 0
    for e in evidence:
        for span in sentences(e.passage.text):
            said = e.passage.text[span.start : span.end]
            known = facts_of(said)
            gain = len(terms & content_terms(said)) + 2 * sum(_carried(f, known) for f in facts)
            if gain > best_gain:
                best, best_gain = (e, span), gain
    return best


def about(evidence: Evidence) -> str:
    """Document name and headings of a passage, as words."""
    stem = evidence.document_name.rpartition(".")[0] or evidence.document_name
    return " ".join((stem.replace("-", " ").replace("_", " "), *evidence.passage.heading_path))


def quote_is_exact(evidence: Evidence, quote: Span, text: str) -> bool:
    """Whether `text` stands at `quote` (offsets of the document version) inside the evidence passage."""
    place = evidence.passage.span
    if not (place.start <= quote.start <= quote.end <= place.end):
        return False
    return evidence.passage.text[quote.start - place.start : quote.end - place.start] == text


def term_weights(terms: frozenset[str], texts: Sequence[str]) -> dict[str, float]:
    """Inverse document frequency of a claim's terms over these sentences; rare and absent ones weigh most."""
    seen = Counter(t for text in texts for t in content_terms(text) & terms)
    return {t: math.log(1 + (len(texts) + 1) / (seen[t] + 0.5)) for t in terms}


def _best_window(terms: frozenset[str], passage: str) -> tuple[Span | None, float]:
    """The one or two neighbouring sentences that cover most of `terms`; fewer sentences win a tie."""
    spans = sentences(passage)
    found = [terms & content_terms(passage[s.start : s.end]) for s in spans]
    best: Span | None = None
    best_cover = 0.0
    for size in range(1, _WINDOW + 1):
        for first in range(len(spans) - size + 1):
            held = frozenset[str]().union(*found[first : first + size])
            cover = len(held) / len(terms)
            if cover > best_cover + (0.05 if size > 1 else 0.0):
                best, best_cover = Span(spans[first].start, spans[first + size - 1].end), cover
    return best, best_cover


def contradiction(claim: str, window: str, passage: str, above: str = "") -> str:
    """The first thing in which the claim differs from its source, as a reason; empty when there is none.

    Args:
        claim: one sentence.
        window: the sentences that should carry it.
        passage: all of the passage; months and names may stand anywhere in it.
        above: names above the passage.
    """
    near, anywhere = facts_of(window), facts_of(passage)
    # A month may stand in the sentence before; one that the window names itself leaves no room for another.
    elsewhere = () if any(f.kind == "month" for f in near) else ("month",)
    for fact in facts_of(claim):
        if not _carried(fact, near) and not (fact.kind in elsewhere and _carried(fact, anywhere)):
            return f"{fact.kind}:{fact}"
    named = name_key(f"{above}\n{passage}")
    missing = [name for name in names_of(claim) if name_key(name) not in named]
    if missing:
        return f"name:{missing[0]}"
    closest = closest_sentence(claim, window)
    if negated(claim) != negated(closest):
        return "negation"
    if pair := opposed(direction_of(claim), direction_of(window)):
        return f"direction:{pair}"
    return _relation(claim, closest, window, passage)


def _relation(claim: str, closest: str, window: str, passage: str) -> str:
    parts = [passage[s.start : s.end] for s in sentences(passage)]
    if agreement(claim, closest, _shares(term_weights(content_terms(claim), parts))) < _OPPOSED:
        return "direction"
    if number := bound_changed(claim, window):
        return f"bound:{number}"
    if ranks := quantity_changed(claim, closest):
        return f"quantity:{ranks}"
    if cause_reversed(claim, closest):
        return "cause"
    if names := roles_swapped(claim, closest) or voice_changed(claim, window):
        return f"roles:{names}"
    if left_out := exception_dropped(claim, closest):
        return f"exception:{left_out}"
    overlap = content_overlap(claim, closest)
    if overlap >= _MOSTLY_THE_SAME and (sides := exchanged(claim, closest)):
        return f"roles:{sides}"
    if overlap >= _MOSTLY_THE_SAME and (mixed := name_mixed(claim, closest)):
        return f"name:{mixed}"
    if overlap < _NEARLY_THE_SAME:
        return ""
    if pair := sides_exchanged(claim, closest):
        return f"direction:{pair}"
    return ""


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights that sum to the number of terms, so that a threshold means the same for any passage."""
    mean = sum(weights.values()) / max(1, len(weights)) or 1.0
    return {term: weight / mean for term, weight in weights.items()}


def _carried(fact: Fact, known: Sequence[Fact]) -> bool:
    return any(fact.agrees_with(other) for other in known)


def closest_sentence(claim: str, window: str) -> str:
    """The sentence of the window that shares most with the claim; polarity belongs to a sentence."""
    terms = content_terms(claim)
    parts = [window[s.start : s.end] for s in sentences(window)] or [window]
    return max(parts, key=lambda s: len(terms & content_terms(s)))
