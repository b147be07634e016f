"""A claim in other words is borne out by one sentence, not by the words of several. Pure; zh and en.

What a model makes of two sentences has the words of both and may say what neither does. A subject may come
from what stands around, as the pronoun of the sentence means it, or "the bridge".
"""

from __future__ import annotations

import re
import unicodedata

from generation.antecedent import opens_with_pronoun
from generation.subject import subject_of
from generation.wording import HAN_CHAR, content_terms

_HAN = re.compile(f"[{HAN_CHAR}]")
_HAN_SUBJECT = 12  # characters within which a Chinese claim names what it speaks of
_ANYBODY = frozenset(["man", "woman", "person", "people", "one", "thing"])  # "the man who …" says no more
_HYPHENS = re.compile(r"\s*[-‐‑–]\s*")


def word_elsewhere(claim: str, sentence: str, about: str, beside: str = "") -> str:
    """The first content word of a claim that its sentence does not have; empty when it has them all.

    Args:
        claim: the claim.
        sentence: of the source, the one that shares most with it.
        about: headings, which may name its subject.
        beside: the sentences around, which may name it where this one does so by a pronoun or in fewer words.
    """
    claim, sentence = _plain(claim), _plain(sentence)
    subject = _plain(subject_of(claim))
    terms = content_terms(subject)
    short = opens_with_pronoun(sentence) or _in_fewer_words(sentence, claim, terms)
    named = terms & content_terms(_plain(f"{about}\n{beside}" if short else about))
    missing = content_terms(claim) - content_terms(sentence) - named - _ANYBODY
    # Two characters that leaving words out has put side by side are no word of their own.
    known = sentence + subject if named else sentence
    missing = {term for term in missing if not (_HAN.match(term) and all(c in known for c in term))}
    return min(missing, default="", key=lambda term: (claim.lower().find(term), term))


def _in_fewer_words(sentence: str, claim: str, subject: frozenset[str]) -> bool:
    """Whether a sentence speaks of the claim's subject by a part of its name: `the bridge`, 大桥."""
    if _HAN.match(sentence):
        return claim.find(sentence[:2], 1, _HAN_SUBJECT) > 0
    return content_terms(subject_of(sentence)) <= subject


def _plain(text: str) -> str:
    """Without the differences in spelling that say nothing: width, and words with and without a hyphen."""
    return _HYPHENS.sub(" ", unicodedata.normalize("NFKC", text))
