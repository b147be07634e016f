"""Whom a pronoun at the head of a quote means: the sentence before it belongs to the quote. Pure."""

from __future__ import annotations

import re

from core.types import Span
from generation.wording import STOP_WORDS
from ingest.sentences import sentences

_PRONOUN = re.compile(r"(?:He|She|It|They|His|Her|Its|Their|This|These|Those)\b|[他她它其该此]|这")


def opens_with_pronoun(sentence: str) -> bool:
    """Whether a sentence begins by pointing at what the one before it names."""
    return _PRONOUN.match(sentence.lstrip()) is not None


def with_antecedent(span: Span, passage: str) -> Span:
    """The sentences with the one before, where they open with a pronoun: a reader must see whom it means."""
    if not _PRONOUN.match(passage, span.start):
        return span
    before = [s for s in sentences(passage) if s.end <= span.start]
    if not before or not _names_somebody(passage[before[-1].start : before[-1].end]):
        return span
    return Span(before[-1].start, span.end)


def _names_somebody(sentence: str) -> bool:
    """Whether a sentence names something that a pronoun of the next one may stand for."""
    words = re.findall(r"[A-Z]\w+", sentence)
    return not sentence.isascii() or any(w.lower() not in STOP_WORDS for w in words)
