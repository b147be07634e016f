"""Near-duplicate passages. Pure.

Two passages say the same when their character shingles agree and so do their numbers, codes and
negations: "330 metres" beside "320 metres" is a contradiction that the reader must see, not a repeat.
"""

from __future__ import annotations

import heapq
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


class Seen:
    """Fingerprints looked at so far, to find near-duplicates among without comparing with each.

    Sets whose Jaccard index is at least `SAME` share one of their first (1 − `SAME`) · size + 1 members in
    any order common to both (here that of hashes), so only those that do are compared.

    Source: Bayardo, Ma, Srikant, WWW 2007, doi:10.1145/1242572.1242591.
    """

    def __init__(self) -> None:
        self._marks: list[Fingerprint] = []
        self._by_member: dict[tuple[tuple[str, ...], str], list[int]] = {}

    def add(self, mark: Fingerprint) -> int:
        """Remember a fingerprint; returns its number, from 0."""
        number = len(self._marks)
        self._marks.append(mark)
        for member in _prefix(mark):
            self._by_member.setdefault((mark.decisive, member), []).append(number)
        return number

    def twins(self, mark: Fingerprint) -> list[int]:
        """Numbers of the near-duplicates, ascending."""
        near = {n for member in _prefix(mark) for n in self._by_member.get((mark.decisive, member), ())}
        return sorted(n for n in near if near_duplicates(mark, self._marks[n]))


def _prefix(mark: Fingerprint) -> list[str]:
    # Shorter ones among near-duplicates need no more members than the longer one, so its own size will do.
    wanted = int((1 - SAME) * len(mark.shingles) + 1e-9) + 1
    return heapq.nsmallest(wanted, mark.shingles, key=hash)
