"""Near-duplicate passages. Pure.

Two passages say the same when their character shingles agree and so do their numbers, codes and
negations: "330 metres" beside "320 metres" is a contradiction that the reader must see, not a repeat.
"""

from __future__ import annotations

from dataclasses import dataclass

import regex

from ingest.fold import search_fold
from retrieval.identifiers import code_texts

SHINGLE = 5  # characters; short enough for Chinese words, long enough that common syllables do not collide
SAME = 0.85  # Jaccard similarity of the shingle sets from which two passages count as one

_LETTERS = regex.compile(r"[\p{L}\p{M}\p{N}]+")
# Numbers and codes, and the words that turn a statement round.
_DECISIVE = regex.compile(
    r"\p{Nd}[\p{Nd}.,:/-]*|\b(?:not|no|never|none|without|cannot)\b|n't\b|[不没無无未非勿莫否]"
)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What two passages are compared by."""

    shingles: frozenset[str]
    decisive: tuple[str, ...]


def fingerprint(text: str) -> Fingerprint:
    """Shingles of the folded letters and digits, and the decisive tokens in sorted order."""
    folded = search_fold(text)
    letters = "".join(_LETTERS.findall(folded))
    shingles = frozenset(letters[i : i + SHINGLE] for i in range(max(1, len(letters) - SHINGLE + 1)))
    decisive = [token.rstrip(".,:/-") for token in _DECISIVE.findall(folded)]
    return Fingerprint(shingles, tuple(sorted((*decisive, *code_texts(text)))))


def near_duplicates(a: Fingerprint, b: Fingerprint, *, same: float = SAME) -> bool:
    """Whether one of the two passages adds nothing to the other."""
    if a.decisive != b.decisive:
        return False
    small, large = sorted((len(a.shingles), len(b.shingles)))
    if small < same * large:  # the overlap cannot be large enough
        return False
    shared = len(a.shingles & b.shingles)
    return shared >= same * (small + large - shared)
