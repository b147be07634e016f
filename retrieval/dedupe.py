"""Near-duplicate passages. Pure.

Two passages say the same when their character shingles agree and so do their numbers, codes, negations and
names: "330 metres" beside "320 metres", or "in Tampa" beside "in Glendale", is a contradiction that the
reader must see, not a repeat.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import regex

from ingest.fold import search_fold
from ingest.sentences import sentences
from retrieval.identifiers import code_texts

SHINGLE = 5  # characters; short enough for Chinese words, long enough that common syllables do not collide
SAME = 0.85  # Jaccard similarity of the shingle sets from which two passages count as one

_LETTERS = regex.compile(r"[\p{L}\p{M}\p{N}]+")
# Numbers and codes, and the words that turn a statement round.
_DECISIVE = regex.compile(
    r"\p{Nd}[\p{Nd}.,:/-]*|\b(?:not|no|never|none|without|cannot)\b|n't\b|[不没無无未非勿莫否]"
)
_NAME = regex.compile(r"(?<![\p{L}\p{N}])\p{Lu}\p{Ll}[\p{L}\p{M}]+")
_HAN_RUN = regex.compile(r"\p{Han}+")
_MOST_CHANGED = 3  # sentences in which two passages that say the same but for a name may differ
_HAN_NAME = range(2, 7)  # characters of a Chinese name or word that took another's place


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What two passages are compared by; `text` is the original, in which names have their capitals."""

    shingles: frozenset[str]
    decisive: tuple[str, ...]
    text: str = ""


def fingerprint(text: str) -> Fingerprint:
    """Shingles of the folded letters and digits, and the decisive tokens in sorted order."""
    folded = search_fold(text)
    letters = "".join(_LETTERS.findall(folded))
    shingles = frozenset(letters[i : i + SHINGLE] for i in range(max(1, len(letters) - SHINGLE + 1)))
    decisive = [token.rstrip(".,:/-") for token in _DECISIVE.findall(folded)]
    return Fingerprint(shingles, tuple(sorted((*decisive, *code_texts(text)))), text)


def near_duplicates(a: Fingerprint, b: Fingerprint, *, same: float = SAME) -> bool:
    """Whether one of the two passages adds nothing to the other."""
    if a.decisive != b.decisive:
        return False
    small, large = sorted((len(a.shingles), len(b.shingles)))
    if small < same * large:  # the overlap cannot be large enough
        return False
    shared = len(a.shingles & b.shingles)
    return shared >= same * (small + large - shared) and not name_exchanged(a.text, b.text)


def name_exchanged(one: str, other: str) -> bool:
    """Whether two nearly equal passages differ in a name: a word that took another's place in a sentence.

    Latin names are told by their capitals; in Chinese any 2 to 6 characters for 2 to 6 quite other ones
    count. Passages that differ in more sentences, or in marks, capitals, width, script alone, have none.
    """
    ours, theirs = _own_sentences(one), _own_sentences(other)
    ours, theirs = [s for s in ours if s not in theirs], [s for s in theirs if s not in ours]
    if len(ours) != len(theirs) or not 0 < len(ours) <= _MOST_CHANGED:
        return False
    return any(name_between(a, b) for a, b in zip(ours, theirs, strict=True))


def _own_sentences(text: str) -> list[str]:
    return [text[s.start : s.end] for s in sentences(text)]


def name_between(one: str, other: str) -> bool:
    """Whether two sentences are alike but for a name; see `name_exchanged`."""
    names, others = set(_NAME.findall(one)), set(_NAME.findall(other))
    folded = {search_fold(n) for n in names}, {search_fold(n) for n in others}
    if folded[0] - folded[1] and folded[1] - folded[0]:
        return not _respelt(one, other)
    ours, theirs = _middle(search_fold(one), search_fold(other))
    han = all(_HAN_RUN.fullmatch(m) and len(m) in _HAN_NAME for m in (ours, theirs))
    return han and not set(ours) & set(theirs)


def _respelt(one: str, other: str) -> bool:
    """Whether the letters are the same and only capitals, marks or spaces differ."""
    return _LETTERS.findall(search_fold(one).replace(" ", "")) == _LETTERS.findall(
        search_fold(other).replace(" ", "")
    )


def common_start(one: str, other: str) -> int:
    """Characters that two texts begin with alike."""
    least = min(len(one), len(other))
    return next((i for i in range(least) if one[i] != other[i]), least)


def _middle(one: str, other: str) -> tuple[str, str]:
    """What is left of two texts without their common beginning and end."""
    start = common_start(one, other)
    one, other = one[start:], other[start:]
    ends = next(
        (i for i, (a, b) in enumerate(zip(one[::-1], other[::-1], strict=False)) if a != b),
        min(len(one), len(other)),
    )
    return one[: len(one) - ends], other[: len(other) - ends]


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
