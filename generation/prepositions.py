"""Whether a claim puts behind a preposition what its source has elsewhere, and the other way round. Pure.

`sold ships to the navy` told as `the navy sold ships to the company`, 从锅炉传到水箱 as 从水箱传到锅炉: the
words are the same, and where a claim leaves some out its order alone shows little (`exchange.py`). What
stands right behind a preposition, or in Chinese before 的, is compared instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from generation.exchange import SYMMETRIC
from generation.subject import ends_noun
from generation.wording import HAN_CHAR, STOP_WORDS, stem

# Not `with`, `near`, `between`: both orders say the same; not `in`, `on`, `for`: they say where and when.
_PREPOSITIONS = frozenset(("of", "to", "from", "into", "onto", "by", "than", "against", "after", "before"))
_SAME = {"into": "to", "onto": "to"}
_ADVERBS = frozenset(("soon", "later", "again", "then", "now", "today", "back", "away", "shortly"))
_TOKEN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d[\d.,]*|[^\w\s]")
_LONGEST = 6  # words of an object
_HAN = re.compile(f"[{HAN_CHAR}]")
_HAN_AFTER = re.compile(
    f"(?P<word>[从自向给往到至入对比被把由于将])[了着过一该其这那]?(?P<object>[{HAN_CHAR}]{{2,4}})"
)
_HAN_BEFORE = re.compile(f"(?P<object>[{HAN_CHAR}]{{2}})(?P<word>的)")
_HAN_PREPOSITIONS = re.compile("[从自向给往到至入对比被把由于将的]")


@dataclass(frozen=True, slots=True)
class _Object:
    """What stands behind a preposition: its terms, and of these the name's, where it has one."""

    terms: frozenset[str]
    core: frozenset[str]

    def __str__(self) -> str:
        return " ".join(sorted(self.terms))


def objects_exchanged(claim: str, sentence: str, window: str = "") -> str:
    """`one/other` where one thing stands behind a preposition in place of another; else the empty string.

    Both must be said by both: the claim has the other thing as well, but not behind that preposition, and
    so has the sentence the claim's. Chinese and English.

    Args:
        claim: one sentence.
        sentence: the source's sentence nearest to it.
        window: the sentences around it, which may have the claim's own order.
    """
    if SYMMETRIC.search(claim.lower()):
        return ""
    ours, theirs, around = _objects(claim), _objects(sentence), _objects(window)
    said, has = _terms(claim), _terms(sentence)
    for word, mine in ours.items():
        its = theirs.get(word, [])
        held = frozenset[str]().union(*(o.terms for o in mine))
        known = frozenset[str]().union(*(o.terms for o in (*its, *around.get(word, []))))
        for thing in mine:
            if thing.terms & known or not thing.terms <= has:
                continue
            other = next((o for o in its if o.core <= said and not o.terms & held), None)
            if other:
                return f"{thing}/{other}"
    return ""


@lru_cache(maxsize=8192)
def _objects(text: str) -> dict[str, list[_Object]]:
    """What stands behind each preposition of a text (before 的), as terms, in order."""
    return _chinese(text) if _HAN.search(text) else _english(text)


def _english(text: str) -> dict[str, list[_Object]]:
    words = _TOKEN.findall(text)
    found: dict[str, list[_Object]] = {}
    for i, word in enumerate(words):
        lowered = word.lower()
        if lowered not in _PREPOSITIONS:
            continue
        end = i + 1
        while end < min(len(words), i + 1 + _LONGEST) and not ends_noun(words, end):
            end += 1
        terms = frozenset[str]().union(*map(_term, words[i + 1 : end]))
        named = frozenset[str]().union(*(_term(w) for w in words[i + 1 : end] if w[0].isupper()))
        if terms:
            found.setdefault(_SAME.get(lowered, lowered), []).append(_Object(terms, named or terms))
    return found


def _chinese(text: str) -> dict[str, list[_Object]]:
    """Two characters behind a preposition, or before 的, stand for the thing."""
    found: dict[str, list[_Object]] = {}
    for pattern, part in ((_HAN_AFTER, slice(0, 2)), (_HAN_BEFORE, slice(-2, None))):
        for match in pattern.finditer(text):
            thing = match["object"][part]
            if not _HAN_PREPOSITIONS.search(thing):
                found.setdefault(match["word"], []).append(_Object(frozenset([thing]), frozenset([thing])))
    return found


@lru_cache(maxsize=8192)
def _terms(text: str) -> frozenset[str]:
    if _HAN.search(text):
        return frozenset(text[i : i + 2] for i in range(len(text) - 1))
    return frozenset[str]().union(*map(_term, _TOKEN.findall(text)))


def _term(word: str) -> frozenset[str]:
    lowered = word.lower()
    telling = lowered[0].isalpha() and lowered not in STOP_WORDS and lowered not in _ADVERBS
    return frozenset([stem(lowered)]) if telling else frozenset()
