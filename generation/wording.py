"""How a sentence says it: names, polarity, direction and content words, in Chinese and English. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from generation.facts import MONTHS, without_facts

# -- names -------------------------------------------------------------------------------------

_NAME = re.compile(r"[A-Z][\w’'-]*(?:\.[A-Z]\.?)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d+(?:[.,]\d+)*")


@lru_cache(maxsize=2048)
def names_of(text: str) -> tuple[str, ...]:
    """Capitalised words that are no sentence opening, and Latin words inside Chinese text."""
    names: list[str] = []
    for match in _NAME.finditer(text):
        before = text[: match.start()].rstrip(" \t\"'“‘(（")
        opening = not before or before[-1] in ".!?。！？:\n"
        word = re.sub(r"['’]s$", "", match[0]).rstrip("'’-.")
        lowered = word.lower()
        if lowered in MONTHS or lowered in STOP_WORDS or len(word) < 2:
            continue
        if opening and not (word.isupper() or any(c.isupper() for c in word[1:])):
            continue
        names.append(word)
    return tuple(dict.fromkeys(names))


def name_key(text: str) -> str:
    """A text with case, hyphens, dots and apostrophes folded away: mi-RNA, miRNA and U.S. meet US."""
    return re.sub(r"[-‐-―.'’/]", "", text.casefold())


def name_stands(name: str, text: str) -> bool:
    """Whether a name stands in a text.

    A name in capitals must stand alone, for XL is no part of XLIX; others may have an ending.
    """
    if not (name.isalpha() and name.isupper()):
        return name_key(name) in name_key(text)
    alone = re.compile(rf"(?<![A-Z]){name}(?![A-Z])|(?<![^\W_])(?i:{name})(?:e?s)?(?![^\W_])")
    return any(alone.search(form) for form in _forms(text))


@lru_cache(maxsize=2048)
def _forms(text: str) -> tuple[str, str]:
    """A text without dots and apostrophes, with what hyphens join as one word and as several."""
    bare = re.sub(r"[.'’]", "", text)
    return re.sub("[-‐-―/]", "", bare), re.sub("[-‐-―/]", " ", bare)


# -- polarity and direction --------------------------------------------------------------------

_NEGATION_EN = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without|unable|fail(?:s|ed)? to)\b"
    r"|\black(?:s|ed)?\b"
    r"|n['’]t\b"
)
_NEUTRAL_EN = re.compile(
    r"\bnot only\b|\bno longer than\b|\bno more than\b|\bno less than\b|\bno\. ?\d|\bno doubt\b"
)
_NEGATION_ZH = re.compile("不|没|未|无|非|否认|拒绝|禁止|勿|别再|缺乏")
_NEUTRAL_ZH = re.compile(
    "不仅|不但|不只|不光|不断|不同|不过|不管|不论|不久|不少|不错|不超过|不少于|不低于|不高于|不得不|无论|无数|无疑|无线|无机|"
    "非常|非洲|非凡|并非不|未来|未婚|无锡|除非|差不多|对不起|没收|沉没|淹没|南无"
)
_PAIRS = """
increase increased increases increasing rose rise rises risen grew grow growth
    | decrease decreased decreases decreasing fell fall falls fallen declined decline shrank drop dropped
more higher larger greater longer above exceeds exceeded | fewer lower smaller less shorter below
before earlier prior | after later following
north northern | south southern
east eastern | west western
win won wins winning | lose lost loses losing
open opened opens | close closed closes
begin began begins started starts start | end ended ends finished stopped
maximum highest largest most | minimum lowest smallest least
first | last
over | under
allow allowed allows permitted | forbid forbidden forbids prohibited banned
"""
_OPPOSITES = tuple(
    tuple(frozenset(side.split()) for side in line.split("|"))
    for line in _PAIRS.strip().replace("\n    ", " ").splitlines()
)
_OPPOSITES_ZH: tuple[tuple[str, str], ...] = (
    ("增加|上升|增长|提高|上涨", "减少|下降|降低|缩减|下跌"),
    ("高于|大于|多于|超过", "低于|小于|少于|不足"),
    ("之前|以前", "之后|以后"),
    ("最高|最大|最多|最长", "最低|最小|最少|最短"),
    ("允许|可以", "禁止|不得|不可"),
    ("开启|打开|启动", "关闭|停止"),
)


@lru_cache(maxsize=2048)
def negated(sentence: str) -> bool:
    """Whether the sentence denies (an odd number of negations)."""
    lowered = sentence.lower()
    english = len(_NEGATION_EN.findall(_NEUTRAL_EN.sub(" ", lowered)))
    chinese = len(_NEGATION_ZH.findall(_NEUTRAL_ZH.sub("□", sentence)))
    return (english + chinese) % 2 == 1


@lru_cache(maxsize=2048)
def direction_of(text: str) -> frozenset[str]:
    """Sides of opposite pairs that the text takes (`up:en0`); a text that has both takes none."""
    words = set(_WORD.findall(text.lower()))
    sides: set[str] = set()
    for number, (up, down) in enumerate(_OPPOSITES):
        _side(sides, f"en{number}", bool(words & up), bool(words & down))
    for number, (up, down) in enumerate(_OPPOSITES_ZH):
        _side(sides, f"zh{number}", bool(re.search(up, text)), bool(re.search(down, text)))
    return frozenset(sides)


def sides_exchanged(claim: str, sentence: str) -> str:
    """The pair of opposites of which a claim has one more on one side and one less on the other.

    Only for a claim that is otherwise the sentence itself: then a word was exchanged.
    """
    ours, theirs = words_of(claim), words_of(sentence)
    for number, (up, down) in enumerate(_OPPOSITES):
        first = sum(w in up for w in ours) - sum(w in up for w in theirs)
        second = sum(w in down for w in ours) - sum(w in down for w in theirs)
        if first * second < 0:
            return f"en{number}"
    for number, (up, down) in enumerate(_OPPOSITES_ZH):
        first = len(re.findall(up, claim)) - len(re.findall(up, sentence))
        second = len(re.findall(down, claim)) - len(re.findall(down, sentence))
        if first * second < 0:
            return f"zh{number}"
    return ""


def words_of(text: str) -> list[str]:
    """Words of a text in lower case; a run of Chinese is one word."""
    return _WORD.findall(text.lower())


def _side(sides: set[str], pair: str, up: bool, down: bool) -> None:
    if up != down:
        sides.add(("up" if up else "down") + ":" + pair)


def opposed(ours: frozenset[str], theirs: frozenset[str]) -> str:
    """The pair on which two texts take opposite sides, or the empty string."""
    for side in sorted(ours):
        direction, pair = side.split(":")
        if ("down:" if direction == "up" else "up:") + pair in theirs and side not in theirs:
            return pair
    return ""


# -- terms -------------------------------------------------------------------------------------

_STOP_WORD_LINES = """
a an the of in on at to for from by with and or but as is are was were be been being am it its this that
these those he she they we you i his her their our your them him us who whom which what when where why
how there here do does did has have had having will would can could shall should may might must not no
nor so than then too very also into about over under after before between during such both each any all
some if while because until up down out off again once only own same just more most other one according
passage answer question
"""
STOP_WORDS = frozenset(_STOP_WORD_LINES.split())
HAN_CHAR = "\u3400-\u9fff\uf900-\ufaff"
_HAN_SEQUENCE = re.compile(f"[{HAN_CHAR}]+")
_HAN_STOP = re.compile("[的了是在和与及或也都就而并且对于把被将让从到由向以为所其这那之等着过吗呢吧啊]")


@lru_cache(maxsize=16384)
def content_terms(text: str) -> frozenset[str]:
    """Stemmed content words of Latin text, and character bigrams of Chinese without function characters."""
    # Numbers are compared as facts, so that 330 m and "three hundred and thirty metres" cost no words.
    terms: set[str] = set()
    for word in _WORD.findall(without_facts(text)):
        if not _HAN_SEQUENCE.search(word):
            if word not in STOP_WORDS and not word[0].isdigit():
                terms.add(stem(word))
            continue
        for run in _HAN_SEQUENCE.findall(word):
            for piece in _HAN_STOP.split(run):
                terms.update(piece[i : i + 2] for i in range(len(piece) - 1))
                if len(piece) == 1:
                    terms.add(piece)
    return frozenset(terms)


_ENDINGS = (("ing", 6), ("edly", 7), ("ed", 5), ("ly", 6), ("ies", 5), ("es", 5), ("s", 4), ("e", 5))


def stem(word: str) -> str:
    """A light stem: plural, possessive and the commonest verb endings."""
    word = re.sub(r"['’]s?$", "", word).replace(",", "")
    for ending, least in _ENDINGS:
        if len(word) >= least and word.endswith(ending) and not word.endswith("ss"):
            root = word[: -len(ending)]
            return root + "y" if ending == "ies" else root
    return word
