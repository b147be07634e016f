"""A summary of one document: divided into sections, each gives the sentence that stands for it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.types import Claim, Evidence, SentenceScore, Span
from generation.answer import extract
from generation.untrusted import instructs
from generation.wording import content_terms
from ingest.sentences import sentences

MAX_PASSAGES = 400  # of one document that are looked at
_LEAST_TERMS = 4  # of a sentence that can stand for a section
_LONG_TERMS = 40  # past it a sentence says too much at once
_LEAD = 0.15  # how much the first sentences of a section are preferred


def document_of(filters: Mapping[str, Any]) -> str | None:
    """The one document that a filter names, by itself or beside a policy's sources; else None."""
    for body in (filters, *filters.get("all", ())):
        named = body.get("documents") if isinstance(body, dict) else None
        if isinstance(named, list | tuple) and len(named) == 1:
            return str(named[0])
    return None


def sections(evidence: Sequence[Evidence], *, at_most: int) -> list[tuple[Evidence, ...]]:
    """Divide a document, in order, into at most so many sections.

    Headings divide where there are enough of them; the shallowest level that gives two sections or more is
    taken. Neighbours are joined, the shortest first, until few enough are left; a document without headings
    is cut into equal parts.
    """
    groups = _by_heading(evidence)
    if len(groups) == 1:
        size = max(1, -(-len(evidence) // at_most))
        return [tuple(evidence[i : i + size]) for i in range(0, len(evidence), size)]
    while len(groups) > at_most:
        lengths = [sum(len(e.passage.text) for e in group) for group in groups]
        joined = min(range(len(groups) - 1), key=lambda i: lengths[i] + lengths[i + 1])
        groups[joined : joined + 2] = [groups[joined] + groups[joined + 1]]
    return groups


def _by_heading(evidence: Sequence[Evidence]) -> list[tuple[Evidence, ...]]:
    deepest = max((len(e.passage.heading_path) for e in evidence), default=0)
    for depth in range(1, deepest + 1):
        groups: list[list[Evidence]] = []
        for e in evidence:
            path = e.passage.heading_path[:depth]
            if groups and groups[-1][0].passage.heading_path[:depth] == path:
                groups[-1].append(e)
            else:
                groups.append([e])
        if len(groups) > 1:
            return [tuple(group) for group in groups]
    return [tuple(evidence)]


def with_central_sentences(section: Sequence[Evidence], document: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The section's passages with a score in [0, 1] for each sentence: how well it stands for the section.

    A sentence is central when its words are those that the section's other sentences use, and the document's
    other sections do not; the first ones are preferred a little.
    """
    here = _spread(section)
    everywhere = _spread(document)
    scored: list[Evidence] = []
    place = 0
    total = sum(len(sentences(e.passage.text)) for e in section)
    for e in section:
        start = e.passage.span.start
        own: list[SentenceScore] = []
        for span in sentences(e.passage.text):
            text = e.passage.text[span.start : span.end]
            score = 0.0 if instructs(text) else _centrality(text, here, everywhere)
            score *= 1 - _LEAD * place / max(1, total)
            own.append(SentenceScore(Span(start + span.start, start + span.end), round(score, 6)))
            place += 1
        scored.append(replace(e, sentences=tuple(own), score=max((s.score for s in own), default=0.0)))
    return tuple(scored)


def whole_sentences(
    document: Sequence[Evidence], parts: Sequence[Sequence[Evidence]], *, at_most: int
) -> tuple[Claim, ...]:
    """The sentences that stand for the whole document, each of another section, in the document's order.

    Args:
        document: all passages, which say what is central.
        parts: the passages of each section that may be cited.
        at_most: sentences. A document of one section has none beside that section's.
    """
    if len(parts) < 2:
        return ()
    scored = {e.marker: e for e in with_central_sentences(document, document)}
    chosen: list[Claim] = []
    by_centrality = sorted(
        ([scored[e.marker] for e in part] for part in parts), key=lambda part: -max(e.score for e in part)
    )
    for part in by_centrality:
        if len(chosen) < at_most:
            chosen.extend(extract("", part, max_sentences=1, shown=[c.text for c in chosen]))
    chosen.sort(key=lambda c: c.citations[0].marker)
    return tuple(replace(c, reason=f"{c.reason};whole_document") for c in chosen)


def _spread(evidence: Sequence[Evidence]) -> Counter[str]:
    """In how many sentences each term stands."""
    counts: Counter[str] = Counter()
    for e in evidence:
        for span in sentences(e.passage.text):
            counts.update(content_terms(e.passage.text[span.start : span.end]))
    return counts


def _centrality(text: str, here: Counter[str], everywhere: Counter[str]) -> float:
    terms = content_terms(text)
    if len(terms) < _LEAST_TERMS or not text.rstrip().endswith(tuple('.!?。！？”"）)')):
        return 0.01 * bool(terms)
    weight = sum((here[t] - 1) * (0.5 + here[t] / (2 * everywhere[t])) for t in terms)
    mean = weight / max(len(terms), 8)
    return mean / (mean + 1) * min(1.0, _LONG_TERMS / len(terms))
