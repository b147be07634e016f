"""Whether a claim is its source with two things in each other's place. Pure; Chinese and English.

`Acme bought Bolt` and `Bolt bought Acme` have the same words: only their order tells them apart. The claim
is laid over the sentence word by word (Chinese character by character). What stands in one place of the
claim and in another of the sentence was moved; two pieces that took each other's place were exchanged. A
phrase that moved alone (`In 1990 …` / `… in 1990`), and members of a list, say the same in any order.
"""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import combinations, pairwise

from generation.facts import MONTHS
from generation.wording import HAN_CHAR, STOP_WORDS, names_of

_TOKEN = re.compile(
    rf"[{HAN_CHAR}]|[^\W_{HAN_CHAR}]+(?:['’.-][^\W_{HAN_CHAR}]+)*|[,，、;；:：&/]", re.UNICODE
)
SEPARATORS = frozenset([",", "，", "、", "&", "/", "and", "or", "和", "与", "及", "或", "跟", "以"])
_SILENT = frozenset(["the", "a", "an", ",", "，", "、", "的"])
_COPULAS = frozenset(["is", "are", "was", "were", "be", "called", "named", "是", "为", "叫"])
_PASSIVE = frozenset(["by", "被", "由"])
_ITEM_WORDS, _ITEM_HAN = 4, 8  # most that a member of a list has
_LEAST_HAN = 2  # characters of a piece that says something
SYMMETRIC = re.compile(
    r"\b(?:meets?|met|marr(?:y|ies|ied)|equals?|borders?|bordered|versus|vs|adjacent|same as|similar"
    r"|different|differs?|resembles?|parallel)\b|相邻|接壤|相同|不同|结婚|等于|相似"
)
_SYMMETRIC_WORDS = 6  # most between two pieces that a symmetric verb joins


@lru_cache(maxsize=8192)
def tokens_of(text: str) -> tuple[str, ...]:
    """Words, Chinese characters and the marks that part them, in lower case."""
    return tuple(_TOKEN.findall(text.lower().replace("’s", "").replace("'s", "")))


def exchanged(claim: str, sentence: str) -> str:
    """The two pieces that changed places between a sentence and a claim that is otherwise nearly the same.

    Returns:
        `one/other` as the claim has them in order, or the empty string.
    """
    ours, theirs = tokens_of(claim), tokens_of(sentence)
    moved = (Counter(ours) & Counter(theirs)).total() - _in_order(ours, theirs)
    if not moved or bool(_PASSIVE & set(ours)) != bool(_PASSIVE & set(theirs)):
        return ""
    return _crossed(ours, theirs) or _turned(ours, theirs) or _displaced(ours, theirs, claim)


@lru_cache(maxsize=64)
def steps(ours: tuple[str, ...], theirs: tuple[str, ...]) -> list[tuple[str, int, int, int, int]]:
    """Steps from the sentence to the claim: kind, place in the sentence, place in the claim."""
    return list(SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes())


def _in_order(ours: tuple[str, ...], theirs: tuple[str, ...]) -> int:
    return sum(end - start for kind, start, end, _, _ in steps(ours, theirs) if kind == "equal")


def _crossed(ours: tuple[str, ...], theirs: tuple[str, ...]) -> str:
    """One piece replaced by another, and further on that one by the first."""
    replaced = [
        (theirs[a:b], ours[c:d], a, b) for kind, a, b, c, d in steps(ours, theirs) if kind == "replace"
    ]
    for (out, into, _, end), (second_out, second_into, start, _) in combinations(replaced, 2):
        one, other = _said(out), _said(into)
        if not one or not other or one != _said(second_into) or other != _said(second_out):
            continue
        between = theirs[end:start]
        if not _listed(between) and not _same_thing(between, theirs):
            return f"{_shown(into)}/{_shown(second_into)}"
    return ""


def _turned(ours: tuple[str, ...], theirs: tuple[str, ...]) -> str:
    """A piece that stayed while what stood on its one side stands on the other, turned round.

    Laid over each other, `A1 A2 bought B` and `B bought A1 A2` agree in `A1 A2`: `B bought` is put in before
    it and `bought B` taken out behind. The same order on both sides is a phrase that moved as a whole.
    """
    codes = steps(ours, theirs)
    for before, kept, after in zip(codes, codes[1:], codes[2:], strict=False):
        if kept[0] != "equal" or {before[0], after[0]} != {"insert", "delete"}:
            continue
        first, second = (
            ours[c[3] : c[4]] if c[0] == "insert" else theirs[c[1] : c[2]] for c in (before, after)
        )
        piece, between = _turned_round(first, second)
        stayed = ours[kept[3] : kept[4]]
        if _said(piece) and _said(stayed) and not _listed(between) and not _same_thing(between, theirs):
            return f"{_shown(piece)}/{_shown(stayed)}"
    return ""


def _displaced(ours: tuple[str, ...], theirs: tuple[str, ...], claim: str) -> str:
    """A bare name that went from one place to another; what may move takes its preposition along."""
    codes = steps(ours, theirs)
    names = {token for name in names_of(claim) for token in tokens_of(name)}
    put = {ours[c:d]: (c, d) for kind, _, _, c, d in codes if kind == "insert"}
    for kind, a, b, _, _ in codes:
        piece = theirs[a:b]
        if kind != "delete" or piece not in put or not names.issuperset(piece):
            continue
        c, d = put[piece]
        beside = {*theirs[max(0, a - 1) : a], *theirs[b : b + 1], *ours[max(0, c - 1) : c], *ours[d : d + 1]}
        if not beside & SEPARATORS:
            return f"{_shown(piece)}/{_shown(theirs[b : b + 2])}"
    return ""


def _turned_round(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`piece, between` where the first is piece + between and the second between + piece; else empty ones."""
    if len(first) == len(second) and first != second:
        for size in range(1, len(first)):
            piece, between = first[:-size], first[-size:]
            if second == between + piece:
                return piece, between
    return (), ()


def _same_thing(between: tuple[str, ...], sentence: tuple[str, ...]) -> bool:
    """Whether both orders say the same: `Paris is the capital`, `the capital is Paris`; `P equals Q`."""
    if all(t in _COPULAS for t in between):
        return bool({"the", "的", "唯", "最"} & set(sentence))
    joined = _shown(between) if len(between) <= _SYMMETRIC_WORDS else ""
    return SYMMETRIC.search(joined) is not None


def _said(piece: tuple[str, ...]) -> tuple[str, ...]:
    """The piece without articles and marks; empty when nothing is left that names or states something."""
    rest = tuple(t for t in piece if t not in _SILENT)
    telling = [t for t in rest if t not in STOP_WORDS and t not in SEPARATORS]
    han = sum("\u3400" <= t[0] <= "\u9fff" for t in telling)
    return rest if len(telling) > han or han >= _LEAST_HAN else ()


def _listed(between: tuple[str, ...]) -> bool:
    """Whether what stands between two pieces is a list's: separators around short members, or one alone."""
    if not between or between[0] not in SEPARATORS or between[-1] not in SEPARATORS:
        return False
    item = 0
    for token in between:
        item = 0 if token in SEPARATORS else item + 1
        if item > (_ITEM_HAN if "\u3400" <= token[0] <= "\u9fff" else _ITEM_WORDS):
            return False
    return True


def _shown(piece: tuple[str, ...]) -> str:
    gap = "" if any("\u3400" <= t[0] <= "\u9fff" for t in piece) else " "
    return gap.join(_said(piece) or piece)


# -- names put together wrongly ----------------------------------------------------------------

_RUN = re.compile(
    r"[A-Z][\w’'-]*(?:\.[A-Z]\.?)*(?:\s+(?:(?:of|the|de|von|van|al|bin)\s+)*[A-Z][\w’'-]*(?:\.[A-Z]\.?)*)*"
)


@lru_cache(maxsize=4096)
def _name_runs(text: str) -> tuple[tuple[str, ...], ...]:
    """Names of several words, each as its words in lower case."""
    runs = (tuple(re.sub(r"['’]s$", "", w) for w in run.lower().split()) for run in _RUN.findall(text))
    return tuple(run for run in runs if len(run) > 1)


def name_mixed(claim: str, sentence: str) -> str:
    """Two words that stand together in a name of the claim and in different names of the sentence.

    `Pittsburgh Broncos` of a sentence that has `Pittsburgh Steelers` and `Denver Broncos`; `Bowl Super`.
    """
    runs = _name_runs(sentence)
    inside = {word: [run for run in runs if word in run] for run in runs for word in run}
    words = set(tokens_of(sentence))
    for run in _name_runs(claim):
        for one, other in pairwise(run):
            if {one, other} & (STOP_WORDS | MONTHS.keys()) or not {one, other} <= words:
                continue
            homes = [*inside.get(one, ()), *inside.get(other, ())]
            if not homes or any(_in_this_order(one, other, home) for home in homes):
                continue
            if one in inside and other in inside:
                return f"{one} {other}"
    return ""


def _in_this_order(one: str, other: str, run: tuple[str, ...]) -> bool:
    return one in run and other in run and run.index(one) < len(run) - 1 - run[::-1].index(other)
