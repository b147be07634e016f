"""Words that ask: they say what kind of answer is wanted, and nothing of what it is about. Pure.

A passage that has `which` or `什么` in it is no likelier to answer. Such words are rare in texts that tell,
and would weigh much by their rarity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

_ASKING = "what which who whom whose when where why how do does did"
_ASKS_EN = frozenset(_ASKING.split())
_MEASURE = "[个些种年位家里儿项次所座名部本支条间届国类款天月日岁张首股块门件处]"
# Of a word as the segmenter gives it. `哪吒` (folded: `哪咤`) and the surname `何` are names;
# `几何` and `几乎` do not ask.
_ASKS_ZH = re.compile(
    f"[是有叫由在]?(?:哪(?![吒咤]).{{0,3}}|[什甚]么(?:样|时候|地方)?|多少.?|谁来?|第?几(?:{_MEASURE}.?)?|怎.{{0,2}})"
    "|为什么|[如为因有]何|何[时地人处种年月日故]|是否|是不是|有没有|[能可]否|请问|[吗呢]"
)
# The word after one of these may be what is counted or chosen among, or belong to it.
_LEADS = re.compile("哪|哪一|第?几|多少|什么|何")
_LED = re.compile(f"一?{_MEASURE}|时候|地方|样")
_ACRONYM = re.compile(r"\b[A-Z]{2,}\b")


def asking(text: str) -> frozenset[str]:
    """The English words that ask, folded, but for names such as `WHO` in a text that is not all capitals."""
    if text.isupper():
        return _ASKS_EN
    return _ASKS_EN.difference(map(str.lower, _ACRONYM.findall(text)))


def is_asking(word: str, text: str) -> bool:
    """Whether a folded English word of this text asks. Most words are no such word: the text is not read."""
    plain = word.removesuffix("'s")
    return plain in _ASKS_EN and plain in asking(text)


@lru_cache(maxsize=20_000)  # words repeat
def _asks_zh(word: str) -> bool:
    return _ASKS_ZH.fullmatch(word) is not None


def without_asking(words: Sequence[str]) -> Iterator[list[str]]:
    """The parts of a run of Chinese words that are left between those that ask."""
    part: list[str] = []
    led = False
    for word in words:
        if _asks_zh(word) or (led and _LED.fullmatch(word)):
            led = _LEADS.fullmatch(word) is not None
            if part:
                yield part
            part = []
        else:
            led = False
            part.append(word)
    if part:
        yield part
