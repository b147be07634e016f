"""Which catalogue names a surface may stand for, and how well each fits by spelling alone. Pure.

Names are found by their whole form, by initials in both directions, by shared tokens, by shared beginnings of
tokens (plurals, demonyms) and by edit distance; a score in [0, 1] orders them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import regex
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from ingest.name_forms import NameForm, name_form

_HAN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_PREFIX = 4  # letters that two forms of one word share at least
_FUZZY_MIN = 5  # shorter words have too many neighbours
_FUZZY = 0.8
_HEAD_COVER = 0.75  # `Springfield` names most of `Springfield, Ohio`
_MAX_POSTINGS = 4000  # a token in more names than this finds nothing by itself


class Spelling(StrEnum):
    """How a surface matched a name, strongest first."""

    EXACT = "exact"  # character for character
    FOLDED = "folded"  # after width, case, script variant, accents and punctuation
    CORE = "core"  # without titles, legal forms and function words
    ACRONYM = "acronym"
    PARTIAL = "partial"  # some tokens
    FUZZY = "fuzzy"  # by edit distance or a shared beginning


@dataclass(frozen=True, slots=True)
class NameMatch:
    """One name of the index that fits a surface.

    Attributes:
        name: number of the name, in the order it was added.
        mention_cover, name_cover: weighted share of the surface's and of the name's tokens that meet, [0, 1].
        missing: tokens of the name that the surface lacks.
        leads: the surface shares a word with the head of the name, as a shortened name does.
    """

    name: int
    spelling: Spelling
    mention_cover: float
    name_cover: float
    missing: tuple[str, ...] = ()
    leads: bool = True


class NameIndex:
    """Names → what finds them. Grows only; a changed catalogue builds a new one."""

    def __init__(self, names: Iterable[str]) -> None:
        self._spellings: list[str] = []
        self._forms: list[NameForm] = []
        self._by_key: dict[str, list[int]] = {}
        self._by_core: dict[str, list[int]] = {}
        self._by_initials: dict[str, list[int]] = {}
        self._by_cut_initials: dict[str, list[int]] = {}  # `US` for United States of America
        self._by_token: dict[str, list[int]] = {}
        for name in names:
            self._add(name)
        self._by_prefix: dict[str, list[str]] = {}
        for token in self._by_token:
            if not _HAN.match(token) and len(token) >= _PREFIX:
                self._by_prefix.setdefault(token[:_PREFIX], []).append(token)
        self._vocabulary = [t for t in self._by_token if len(t) >= _FUZZY_MIN and not _HAN.match(t)]
        self._near = lru_cache(maxsize=4096)(self._near_tokens)

    def __len__(self) -> int:
        return len(self._forms)

    def weight(self, token: str) -> float:
        """Inverse document frequency of a token among the names, at least 1."""
        return 1.0 + math.log((1 + len(self._forms)) / (1 + len(self._by_token.get(token, ()))))

    def find(self, surface: str, limit: int = 50) -> list[NameMatch]:
        """Up to `limit` names, best spelling first; ties by number."""
        form = name_form(surface)
        if not form.tokens:
            return []
        found = [self._match(form, surface, number) for number in self._reached(form)]
        found = [m for m in found if m.mention_cover > 0]
        found.sort(key=lambda m: (-strength(m), m.name))
        return found[:limit]

    def _add(self, name: str) -> None:
        number, form = len(self._forms), name_form(name)
        self._spellings.append(name)
        self._forms.append(form)
        self._by_key.setdefault(form.key, []).append(number)
        self._by_core.setdefault(form.core, []).append(number)
        for letters in form.initials:
            self._by_initials.setdefault(letters, []).append(number)
        if len(form.tokens) >= 3:
            cut = "".join(t[0] for t in form.tokens[:-1])
            self._by_cut_initials.setdefault(cut, []).append(number)
        for token in {t for word in form.tokens for t in _units(word)}:
            self._by_token.setdefault(token, []).append(number)

    def _reached(self, form: NameForm) -> set[int]:
        reached = {*self._by_key.get(form.key, ()), *self._by_core.get(form.core, ())}
        if len(form.tokens) == 1:
            reached.update(self._by_initials.get(form.tokens[0], ()))
            reached.update(self._by_cut_initials.get(form.tokens[0], ()))
        for letters in form.initials:
            reached.update(self._by_key.get(letters, ()))
        for word in form.tokens:
            for unit in _units(word):
                for token in (unit, *self._near(unit)):
                    numbers = self._by_token.get(token, ())
                    if len(numbers) <= _MAX_POSTINGS:
                        reached.update(numbers)
        return reached

    def _near_tokens(self, token: str) -> tuple[str, ...]:
        """Other tokens that may be a form of `token` or a slip of it."""
        if _HAN.match(token) or len(token) < _PREFIX:
            return ()
        near = [t for t in self._by_prefix.get(token[:_PREFIX], ()) if _word_match(token, t) > 0]
        if len(token) >= _FUZZY_MIN:
            near += [
                found
                for found, _, _ in process.extract(
                    token,
                    self._vocabulary,
                    scorer=Levenshtein.normalized_similarity,
                    score_cutoff=_FUZZY,
                    limit=8,
                )
            ]
        return tuple(dict.fromkeys(t for t in near if t != token))

    def _match(self, form: NameForm, surface: str, number: int) -> NameMatch:
        other = self._forms[number]
        if self._spellings[number] == surface:
            return NameMatch(number, Spelling.EXACT, 1.0, 1.0)
        if other.key == form.key or other.key.replace(" ", "") == form.key.replace(" ", ""):
            return NameMatch(number, Spelling.FOLDED, 1.0, 1.0)
        if other.core == form.core:
            return NameMatch(number, Spelling.CORE, 1.0, 1.0)
        share = _acronym(form, other, surface) or _acronym(other, form, self._spellings[number])
        if share:
            return NameMatch(number, Spelling.ACRONYM, 1.0, share)
        return self._aligned(form, other, number)

    def _aligned(self, form: NameForm, other: NameForm, number: int) -> NameMatch:
        best: dict[int, float] = {}
        got = total = 0.0
        whole = True
        for word in form.tokens:
            scores = [_word_match(word, t) for t in other.tokens]
            at = max(range(len(scores)), key=scores.__getitem__) if scores else -1
            score = scores[at] if at >= 0 else 0.0
            weight = self.weight(word)
            total += weight
            got += weight * score
            if score > 0:
                best[at] = max(best.get(at, 0.0), score)
            whole = whole and score in (0.0, 1.0)
        weights = [self.weight(t) for t in other.tokens]
        covered = sum(w * best.get(i, 0.0) for i, w in enumerate(weights)) / sum(weights)
        missing = tuple(t for i, t in enumerate(other.tokens) if best.get(i, 0.0) < 0.5)
        leads = any(other.tokens[i] in other.head for i in best)
        if other.head <= {other.tokens[i] for i in best}:
            covered = max(covered, _HEAD_COVER)
        spelling = Spelling.PARTIAL if whole else Spelling.FUZZY
        return NameMatch(number, spelling, got / total, covered, missing, leads)


def strength(match: NameMatch) -> float:
    """How well the spelling fits, in [0, 1]; a name must hold what the surface says more than vice versa."""
    base = {Spelling.EXACT: 1.0, Spelling.FOLDED: 0.97, Spelling.CORE: 0.93}.get(match.spelling)
    if base is not None:
        return base
    if match.spelling is Spelling.ACRONYM:
        return 0.75 * match.name_cover
    if not match.missing:  # every word has its like
        return 0.9 * match.mention_cover * match.name_cover
    return 0.9 * match.mention_cover**2 * (0.45 + 0.55 * match.name_cover) * (1.0 if match.leads else 0.8)


def _units(word: str) -> Sequence[str]:
    """What a word is found by: itself; a Han run by its bigrams as well."""
    if not _HAN.match(word) or len(word) < 3:
        return (word,)
    return (word, *(word[i : i + 2] for i in range(len(word) - 1)))


def _acronym(short: NameForm, long: NameForm, spelling: str) -> float:
    """Share of the long name's words that the letters of the short one stand for; 0 when it is none."""
    if len(short.tokens) != 1 or len(long.tokens) < 2 or spelling.upper() != spelling:
        return 0.0
    letters = short.tokens[0]
    if not 2 <= len(letters) <= 8 or not letters.isalpha():
        return 0.0
    if letters in long.initials:
        return 1.0
    core = "".join(t[0] for t in long.tokens)
    return len(letters) / len(core) if core.startswith(letters) and len(core) == len(letters) + 1 else 0.0


@lru_cache(maxsize=1 << 16)
def _word_match(one: str, other: str) -> float:
    """How far two words can be forms of one, in [0, 1]."""
    if one == other:
        return 1.0
    if _HAN.match(one) or _HAN.match(other):
        return _han_match(one, other)
    if len(one) == 1 or len(other) == 1:
        return 0.5 if one[0] == other[0] and one.isalpha() and other.isalpha() else 0.0
    short, long = sorted((one, other), key=len)
    if any(long == short + ending for ending in ("s", "es")) or (
        short[-1] == "y" and long == short[:-1] + "ies"
    ):
        return 0.95
    same = _common_prefix(one, other)
    if same >= _PREFIX and same >= len(short) - 2 and len(long) - same <= 4:
        return 0.5 + 0.4 * same / len(long)
    if len(short) >= _FUZZY_MIN and not (one.isdigit() or other.isdigit()):
        near = Levenshtein.normalized_similarity(one, other)
        if near >= _FUZZY:
            return near
    return 0.0


def _han_match(one: str, other: str) -> float:
    short, long = sorted((one, other), key=len)
    if len(short) < 2 or not _HAN.match(short):
        return 0.0
    if short in long:
        return 0.4 + 0.5 * len(short) / len(long)
    pairs = Counter(short[i : i + 2] for i in range(len(short) - 1)) & Counter(
        long[i : i + 2] for i in range(len(long) - 1)
    )
    share = sum(pairs.values()) / max(1, len(long) - 1)
    return 0.8 * share if share >= 0.5 else 0.0


def _common_prefix(one: str, other: str) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
