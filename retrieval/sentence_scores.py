"""Score the sentences of the evidence for `extract`, from token vectors that the rerank already has. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.types import SentenceScore, Span
from ingest.encode import TokenVectors
from ingest.fold import search_fold
from ingest.sentences import sentences
from retrieval.fuse import standardized
from retrieval.relevance import Question, sigmoid, terms

_DIGITS = re.compile(r"\d+")
_ASKS_NUMBER = re.compile(
    r"多少|几|哪一?年|何时|什么时候|多[大长高远久重]|\bwhen\b|\bwhat (?:year|date|percentage|number)\b"
    r"|\bhow (?:many|much|long|old|far|big|large|high|tall)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Sentence:
    passage: int
    span: Span
    similarity: float
    context: float
    shared: float
    number: float
    passage_similarity: float


def score_sentences(
    question: Question, passages: Sequence[tuple[str, TokenVectors, int]]
) -> list[tuple[SentenceScore, ...]]:
    """Score every sentence of the evidence against the question, comparable across its passages.

    A sentence is seen through its tokens as the encoder saw them inside the passage. The parts, each
    standardized over all sentences of the evidence: MaxSim over the sentence's tokens, cosine of their mean
    with the question, share of the question's terms, the passage's own MaxSim; a question that asks for a
    number prefers sentences with a number that it does not contain itself. Chosen on CMRC 2018 and CLAPNQ.

    Args:
        question: the prepared question.
        passages: (text, token vectors, offset of the text in its document version), best first.

    Returns:
        Per passage its sentences in text order, spans in the document version, scores in [0, 1].
    """
    rows = [
        row
        for number, (text, tokens, offset) in enumerate(passages)
        for row in _sentence_rows(question, number, text, tokens, offset)
    ]
    parts = (
        (1.0, [row.similarity for row in rows]),
        (0.5, [row.context for row in rows]),
        (1.0, [row.shared for row in rows]),
        (1.0, [row.passage_similarity for row in rows]),
    )
    totals = [1.5 * row.number for row in rows]
    for weight, values in parts:
        totals = [t + weight * z for t, z in zip(totals, standardized(values), strict=True)]
    scored: list[list[SentenceScore]] = [[] for _ in passages]
    for row, total in zip(rows, totals, strict=True):
        scored[row.passage].append(SentenceScore(row.span, sigmoid(total)))
    return [tuple(own) for own in scored]


def _sentence_rows(
    question: Question, number: int, text: str, tokens: TokenVectors, offset: int
) -> list[_Sentence]:
    if not len(tokens.vectors) or not len(question.tokens):
        return []
    similarity = question.tokens @ tokens.vectors.T
    passage_similarity = float(similarity.max(axis=1).mean())
    starts, ends = tokens.offsets[:, 0], tokens.offsets[:, 1]
    asks_number = _ASKS_NUMBER.search(question.text) is not None
    given = set(_DIGITS.findall(search_fold(question.text)))
    rows: list[_Sentence] = []
    for span in sentences(text):
        inside = np.flatnonzero((starts < span.end) & (ends > span.start) & (ends > starts))
        if not len(inside):
            continue
        shown = text[span.start : span.end]
        mean = tokens.vectors[inside].mean(axis=0)
        own = search_fold(shown)
        rows.append(
            _Sentence(
                passage=number,
                span=Span(offset + span.start, offset + span.end),
                similarity=float(similarity[:, inside].max(axis=1).mean()),
                context=float(mean @ question.vector / (np.linalg.norm(mean) + 1e-9)),
                shared=len(question.terms & terms(shown)) / max(1, len(question.terms)),
                number=float(asks_number and bool(set(_DIGITS.findall(own)) - given)),
                passage_similarity=passage_similarity,
            )
        )
    return rows
