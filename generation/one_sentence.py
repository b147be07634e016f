"""A claim in other words is borne out by one sentence, not by the words of several. Pure; zh and en.

What a model makes of two sentences has the words of both and may say what neither does. A subject may come
from what stands around, as the pronoun of the sentence means it.
"""

from __future__ import annotations

import re
import unicodedata

from generation.subject import subject_of
from generation.wording import HAN_CHAR, content_terms

_HAN = re.compile(f"[{HAN_CHAR}]")
_ANYBODY = frozenset(["man", "woman", "person", "people", "one", "thing"])  # "the man who …" says no more
_HYPHENS = re.compile(r"\s*[-‐‑–]\s*")


def word_elsewhere(claim: str, sentence: str, around: str) -> str:
    """The first content word of a claim that its sentence does not have; empty when it has them all.

    Args:
        claim: the claim.
        sentence: of the source, the one that shares most with it.
        around: what its subject may be named by: headings and neighbouring sentences.
    """
    claim, sentence = _plain(claim), _plain(sentence)
    subject = _plain(subject_of(claim))
    named = content_terms(subject) & content_terms(_plain(around))
    missing = content_terms(claim) - content_terms(sentence) - named - _ANYBODY
    # Two characters that leaving words out has put side by side are no word of their own.
    known = sentence + subject if named else sentence
    missing = {term for term in missing if not (_HAN.match(term) and all(c in known for c in term))}
    return min(missing, default="", key=lambda term: (claim.lower().find(term), term))


def _plain(text: str) -> str:
    """Without the differences in spelling that say nothing: width, and words with and without a hyphen."""
    return _HYPHENS.sub(" ", unicodedata.normalize("NFKC", text))
