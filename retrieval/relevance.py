"""A question prepared for the rerank, and the calibrated relevance of a passage to it. Pure."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.types import Lang
from ingest.fold import search_fold
from retrieval.language import across

Floats = npt.NDArray[np.float32]

# Logistic fits of (MaxSim, share of the question's terms in the passage) → answerable. Chinese: CMRC 2018
# and DRCD; English: CLAPNQ; negatives are the best passage once the right one is taken out. AUROC .985,
# .947 and .890.
_RELEVANCE: Mapping[Lang, tuple[float, float, float]] = {
    Lang.ZH: (62.1, 7.1, -55.36),
    Lang.EN: (45.5, 0.64, -37.87),
    Lang.UND: (45.5, 0.64, -37.87),
}
# Across languages no term is shared and every cosine is lower. Without judged pairs to fit on, the offset is
# set from unrelated ones (CMRC and DRCD questions on CLAPNQ passages and back): three quarters of their best
# passages, MaxSim .755, stay below a relevance of .12.
_ACROSS = (45.5, -36.34)

# Prose of a passage's length deflates to .5 and more of its bytes, tables to .2; a letter or phrase over and
# over to below .05. The encoder puts such text near every question.
_FILLER_RATIO, _FILLER_BYTES = 0.08, 200

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_RUN = re.compile(rf"(?P<han>[{_HAN}]+)|[^\W_{_HAN}]+")


@dataclass(frozen=True, slots=True)
class Question:
    """A question prepared for the rerank; `tokens` without prompt, special tokens and marks between words."""

    text: str
    lang: Lang
    tokens: Floats
    vector: Floats
    terms: frozenset[str]


def terms(text: str) -> frozenset[str]:
    """Folded words and numbers; Chinese as pairs of adjacent characters."""
    found: set[str] = set()
    for match in _RUN.finditer(search_fold(text)):
        run = match.group()
        if match.lastgroup == "han" and len(run) > 1:
            found.update(run[i : i + 2] for i in range(len(run) - 1))
        else:
            found.add(run)
    return frozenset(found)


def is_filler(text: str) -> bool:
    """Whether a text of some length says one thing over and over."""
    raw = text.encode()
    return len(raw) >= _FILLER_BYTES and len(zlib.compress(raw, 1)) < _FILLER_RATIO * len(raw)


def relevance(question: Question, similarity: float, passage_text: str, passage_lang: Lang) -> float:
    """Calibrated probability that a passage of this similarity answers the question.

    A question without a single word or digit is answered by nothing, and filler answers nothing: 0.
    """
    if not question.terms or is_filler(passage_text):
        return 0.0
    if across(question.lang, passage_lang):
        slope, offset = _ACROSS
        return sigmoid(slope * similarity + offset)
    slope, by_terms, offset = _RELEVANCE[question.lang]
    shared = len(question.terms & terms(passage_text)) / len(question.terms)
    return sigmoid(slope * similarity + by_terms * shared + offset)


def sigmoid(x: float) -> float:
    """1 / (1 + e^-x) without overflow."""
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))
