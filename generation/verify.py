"""Does a passage say what a claim says? Numbers, dates, units, names, negation, direction, words; zh and en.

Pure and quick: it runs on every claim of every answer. It errs to the safe side; a claim that it calls
supported shares its numbers, names and polarity with the sentences it cites, and one of them has its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.types import Evidence, Span, Verdict
from generation.antecedent import with_antecedent
from generation.contradiction import carried, closest_sentence, contradiction
from generation.facts import Fact, facts_of
from generation.limits import limit_dropped
from generation.number_places import borrowed_number, rivalled_year
from generation.one_sentence import word_elsewhere
from generation.relations import hedge_dropped, sole_added
from generation.relatives import taken_from_relative
from generation.reported import object_dropped, person_changed, report_dropped
from generation.slots import above_used, added, misquoted, slot_replaced, subject_replaced, subject_unnamed
from generation.splicing import name_elsewhere, spliced_from, subject_from_later
from generation.subject import subject_of
from generation.wording import content_terms
from ingest.sentences import sentences

SUPPORTED_COVER = 0.7  # share of the claim's content terms in the cited sentences; see also `one_sentence`
PARTIAL_COVER = 0.45
_WINDOW = 2  # neighbouring sentences that may carry a claim together
_TOGETHER = 3  # passages, or sentences that stand apart, that may carry a claim together
_SHARED_APART = 2  # words that each of them shares with the claim


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
        about: what stands above it (document name, headings): a claim may take its subject from there, which
            the sentences below a heading often do not repeat, and nothing else.

    Returns:
        `supported`: every number, date, unit and name of the claim stands in the passage near each other, the
        polarity agrees and one sentence has its words. `partial`: no fact contradicts but words are missing
        or of another sentence, or the passage is less sure than the claim. `unsupported`: a fact is missing
        or contradicted, or the words are not there.
    """
    terms = _to_be_found(claim, about)
    if not terms:
        return Judgement(Verdict.UNSUPPORTED, "no_content", 0.0, None)
    span, cover = _best_window(terms, passage)
    if span is None or cover < PARTIAL_COVER:
        return Judgement(Verdict.UNSUPPORTED, f"words={cover:.2f}", cover, span)
    window = passage[span.start : span.end]
    return _concluded(claim, window, passage, about, cover, with_antecedent(span, passage))


def _to_be_found(claim: str, about: str) -> frozenset[str]:
    """Terms of a claim that its passage must have: all but a subject that stands above the passage."""
    subject = subject_of(claim)
    above = content_terms(subject) & content_terms(about)
    if not above:
        return content_terms(claim)
    # Chinese terms reach across the end of the subject: they go with it.
    parted = content_terms(subject) | content_terms(claim.replace(subject, "，", 1))
    return parted - above or content_terms(claim)


def _concluded(
    claim: str, window: str, context: str, about: str, cover: float, span: Span | None
) -> Judgement:
    """The verdict once the sentences that should carry the claim are chosen."""
    wrong = contradiction(claim, window, context, about)
    if wrong:
        apart = (
            span is not None
            and wrong.startswith(("number", "month"))
            and not rivalled_year(claim, context[span.start : span.end])
            and _apart(claim, context, about)
        )
        verdict = Verdict.PARTIAL if apart else Verdict.UNSUPPORTED
        return Judgement(verdict, f"apart:{wrong}" if apart else wrong, cover / 2, span)
    if cover < SUPPORTED_COVER:
        return Judgement(Verdict.PARTIAL, f"words={cover:.2f}", cover, span)
    if doubt := _doubt(claim, window, context, about, span):
        return Judgement(Verdict.PARTIAL, doubt, cover, span)
    return Judgement(Verdict.SUPPORTED, f"words={cover:.2f}", cover, span)


def _doubt(claim: str, window: str, context: str, about: str, span: Span | None) -> str:
    """Why a claim that nothing contradicts is not wholly borne out; empty when it is."""
    closest = closest_sentence(claim, window)
    if doubt := hedge_dropped(claim, closest):
        return f"hedge:{doubt}"
    if told := report_dropped(claim, closest):
        return f"hedge:{told}"
    if len(content_terms(claim)) == 1 and sum(f.kind == "number" for f in facts_of(claim)) > 1:
        return "few_words"
    if sole_added(claim, window):
        return "sole"
    if limit := limit_dropped(claim, closest):
        return f"limit:{limit}"
    if named := above_used(claim, context, about):
        return f"above:{named}"
    carrying = window if span is None else context[span.start : span.end]
    if name := name_elsewhere(claim, carrying, about):
        return f"spliced:{name}"
    later = "" if span is None else subject_from_later(claim, context, span, about)
    if spliced := spliced_from(claim, closest, window) or subject_replaced(claim, closest) or later:
        return f"spliced:{spliced}"
    if number := borrowed_number(claim, closest, window):
        return f"spliced:{number}"
    if meant := taken_from_relative(claim, closest):
        return f"relative:{meant}"
    if unnamed := subject_unnamed(claim, closest, f"{about}\n{context}"):
        return f"subject:{unnamed}"
    if put := slot_replaced(claim, closest, f"{about}\n{context}"):
        return f"place:{put}"
    if person := person_changed(claim, carrying) or object_dropped(claim, closest):
        return f"pronoun:{person}"
    if words := misquoted(claim, f"{about}\n{context}"):
        return f"quotation:{words}"
    if more := added(claim, closest, f"{about}\n{context}"):
        return f"added:{more}"
    one = span is not None  # passages that carry a claim together each have a part of its words
    if one and (word := word_elsewhere(claim, closest, about, carrying)):
        return f"elsewhere:{word}"
    return ""


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
        terms, facts = terms - content_terms(best), [f for f in facts if not carried(f, facts_of(best))]
    window = "\n".join(chosen)
    wanted = content_terms(claim)
    cover = len(wanted & content_terms(window)) / max(1, len(wanted))
    return len(chosen) > 1 and cover >= SUPPORTED_COVER and not contradiction(claim, window, passage, about)


def _carried_by(facts: Sequence[Fact], text: str) -> int:
    known = facts_of(text)
    return sum(carried(f, known) for f in facts)


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
    wanted = _to_be_found(claim, subject)
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
            [f for f in facts_left if not carried(f, facts_of(said))],
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
            gain = len(terms & content_terms(said)) + 2 * sum(carried(f, known) for f in facts)
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
