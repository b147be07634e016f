"""Score the sentences of the evidence for `extract`, from token vectors that the rerank already has. Pure."""

from __future__ import annotations

import math
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
# A Chinese numeral counts as a number where a measure word or a unit follows: 一些 counts nothing.
_HAN_NUMBER = re.compile(
    "[一二三四五六七八九十百千万亿两]+(?=[年月日个名人次位种条座台家元米岁天])|[一二三四五六七八九]公里|百分之"
)
_ASKS_NUMBER = re.compile(
    r"多少|几|哪一?年|何时|什么时候|多[大长高远久重]|\bwhen\b|\bwhat (?:year|date|percentage|number)\b"
    r"|\bhow (?:many|much|long|old|far|big|large|high|tall)\b",
    re.IGNORECASE,
)


# Chosen on CMRC 2018, DRCD and CLAPNQ (both languages share them) by a listwise logistic fit.
_SIMILARITY, _CONTEXT, _SHARED, _RELEVANCE, _NUMBER = 0.6, 0.8, 0.75, 0.6, 2.0


@dataclass(frozen=True, slots=True)
class _Sentence:
    passage: int
    span: Span
    similarity: float
    context: float
    terms: frozenset[str]
    number: float


def score_sentences(
    question: Question, passages: Sequence[tuple[str, TokenVectors, int, float]]
) -> list[tuple[SentenceScore, ...]]:
    """Score every sentence of the evidence against the question, comparable across its passages.

    A sentence is seen through its tokens as the encoder saw them inside the passage. The parts, each
    standardized over all sentences of the evidence: MaxSim over the sentence's tokens, cosine of their mean
    with the question, share of the question's terms weighted by their rarity among these sentences (what all
    of them share tells none apart), the passage's relevance; a question that asks for a number prefers
    sentences with a number that it does not contain itself.

    Args:
        question: the prepared question.
        passages: (text, token vectors, offset of the text in its document version, relevance), best first.

    Returns:
        Per passage its sentences in text order, spans in the document version, scores in [0, 1].
    """
    rows = [
        row
        for number, (text, tokens, offset, _) in enumerate(passages)
        for row in _sentence_rows(question, number, text, tokens, offset)
    ]
    parts = (
        (_SIMILARITY, [row.similarity for row in rows]),
        (_CONTEXT, [row.context for row in rows]),
        (_SHARED, _rare_shares(question.terms, [row.terms for row in rows])),
        (_RELEVANCE, [passages[row.passage][3] for row in rows]),
    )
    totals = [_NUMBER * row.number for row in rows]
    for weight, values in parts:
        totals = [t + weight * z for t, z in zip(totals, standardized(values), strict=True)]
    scored: list[list[SentenceScore]] = [[] for _ in passages]
    for row, total in zip(rows, totals, strict=True):
        scored[row.passage].append(SentenceScore(row.span, sigmoid(total)))
    return [tuple(own) for own in scored]


def _rare_shares(asked: frozenset[str], found: Sequence[frozenset[str]]) -> list[float]:
    """Share of the question's terms in each sentence, a term weighing as much as it is rare among them."""
    n = len(found)
    weights = {t: math.log((n + 1) / (sum(t in own for own in found) + 0.5)) for t in asked}
    whole = sum(weights.values()) or 1.0
    return [sum(weights[t] for t in asked & own) / whole for own in found]


def _sentence_rows(
    question: Question, number: int, text: str, tokens: TokenVectors, offset: int
) -> list[_Sentence]:
    if not len(tokens.vectors) or not len(question.tokens):
        return []
    similarity = question.tokens @ tokens.vectors.T
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
                terms=terms(shown),
                number=float(asks_number and _has_other_number(own, given)),
            )
        )
    return rows


def _has_other_number(sentence: str, given: set[str]) -> bool:
    return bool(set(_DIGITS.findall(sentence)) - given) or _HAN_NUMBER.search(sentence) is not None
