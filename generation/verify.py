"""Does a passage say what a claim says? Numbers, dates, units, names, negation and words, zh and en.

Pure and quick: it runs on every claim of every answer. It errs to the safe side; a claim that it calls
supported shares its numbers, names and polarity with the sentences it cites and most of its content words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.types import Evidence, Span, Verdict
from generation.facts import Fact, facts_of
from generation.wording import content_terms, direction_of, names_of, negated, opposed
from ingest.sentences import sentences

SUPPORTED_COVER = 0.7  # share of the claim's content terms found in the cited sentences
PARTIAL_COVER = 0.45
_WINDOW = 2  # neighbouring sentences that may carry a claim together


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
        words are missing. `unsupported`: a fact is missing or contradicted, or the words are not there.
    """
    terms = content_terms(claim)
    terms = terms - content_terms(about) or terms
    if not terms:
        return Judgement(Verdict.UNSUPPORTED, "no_content", 0.0, None)
    span, cover = _best_window(terms, passage)
    if span is None or cover < PARTIAL_COVER:
        return Judgement(Verdict.UNSUPPORTED, f"words={cover:.2f}", cover, span)
    window = passage[span.start : span.end]
    wrong = _contradiction(claim, window, passage, about)
    if wrong:
        return Judgement(Verdict.UNSUPPORTED, wrong, cover / 2, span)
    if cover < SUPPORTED_COVER:
        return Judgement(Verdict.PARTIAL, f"words={cover:.2f}", cover, span)
    return Judgement(Verdict.SUPPORTED, f"words={cover:.2f}", cover, span)


def judge_all(claim: str, evidence: Sequence[Evidence]) -> list[tuple[Evidence, Judgement]]:
    """Judgements against each passage, the best first (verdict, then score, then marker)."""
    order = {Verdict.SUPPORTED: 0, Verdict.PARTIAL: 1, Verdict.UNSUPPORTED: 2}
    judged = [(e, judge(claim, e.passage.text, about(e))) for e in evidence]
    return sorted(judged, key=lambda pair: (order[pair[1].verdict], -pair[1].score, pair[0].marker))


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
    best: Span | None = None
    best_cover = 0.0
    for size in range(1, _WINDOW + 1):
        for first in range(len(spans) - size + 1):
            window = Span(spans[first].start, spans[first + size - 1].end)
            found = content_terms(passage[window.start : window.end])
            cover = len(terms & found) / len(terms)
            if cover > best_cover + (0.05 if size > 1 else 0.0):
                best, best_cover = window, cover
    return best, best_cover


def _contradiction(claim: str, window: str, passage: str, above: str) -> str:
    """The first fact of the claim that the passage does not carry, as a reason; empty when there is none."""
    near, anywhere = facts_of(window), facts_of(passage)
    for fact in facts_of(claim):
        if not _carried(fact, near) and not (fact.kind != "number" and _carried(fact, anywhere)):
            return f"{fact.kind}:{fact}"
    named = f"{above}\n{passage}".casefold()
    missing = [name for name in names_of(claim) if name.casefold() not in named]
    if missing:
        return f"name:{missing[0]}"
    if negated(claim) != negated(_closest(claim, window)):
        return "negation"
    pair = opposed(direction_of(claim), direction_of(window))
    return f"direction:{pair}" if pair else ""


def _carried(fact: Fact, known: Sequence[Fact]) -> bool:
    return any(fact.agrees_with(other) for other in known)


def _closest(claim: str, window: str) -> str:
    """The sentence of the window that shares most with the claim; polarity belongs to a sentence."""
    terms = content_terms(claim)
    parts = [window[s.start : s.end] for s in sentences(window)] or [window]
    return max(parts, key=lambda s: len(terms & content_terms(s)))
