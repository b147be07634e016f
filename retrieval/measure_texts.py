"""Passages for measurements where none are named: half English, half Chinese, words as often as in text."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import accumulate

_ONSETS = tuple("b c d f g h l m n p r s t v w br cl dr gr pl st tr".split())  # noqa: SIM905 - legible
_RIMES = tuple("a e i o u an en in on un ar er or al el ing ate ion ery ment".split())  # noqa: SIM905 - legible
# Common characters; two make a word, as most Chinese words have two.
_HAN = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多定行"
    "学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都两体制机当使点从业本去把性好应开它合还因由其些然"
    "前外天政四日那社义事平形相全表间样与关各重新线内数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建月公无"
)


def made_passages(
    count: int, *, seed: int, shortest: int = 20, longest: int = 110, words: int = 8000, first: int = 0
) -> list[str]:
    """Different passages of `shortest` to `longest` out of `words` words, English and Chinese in turn.

    Parts of one corpus differ in `first`, the number of their first passage, and share their words; so they
    can be made beside each other.
    """
    source = random.Random(seed)  # noqa: S311 - filler text, no secret
    english = [_word(source) for _ in range(words)]
    chinese = ["".join(source.choices(_HAN, k=2)) for _ in range(words)]
    rank = list(accumulate(1 / (n + 3) for n in range(words)))  # Zipf
    if first:
        source = random.Random(f"{seed}/{first}")  # noqa: S311 - filler text, no secret
    passages: list[str] = []
    for number in range(first, first + count):
        language, length = (english, chinese)[number % 2], source.randint(shortest, longest)
        words_ = source.choices(language, cum_weights=rank, k=length)
        passages.append(_sentences(words_, source, *((" ", ". "), ("", "。"))[number % 2]) + f" {number}")
    return passages


def made_questions(passages: Sequence[str], count: int, *, seed: int) -> list[str]:
    """A few words of a passage each: three to seven English ones, or six to fourteen Chinese characters."""
    source = random.Random(seed)  # noqa: S311 - filler text, no secret
    questions: list[str] = []
    while len(questions) < count:
        passage = passages[source.randrange(len(passages))]
        words = list(dict.fromkeys(re.findall(r"[a-z]{2,}", passage)))
        if len(words) > 7:
            questions.append(" ".join(source.sample(words, source.randint(3, 7))))
        elif len(passage) > 20:
            start = source.randrange(len(passage) - 16)
            questions.append(passage[start : start + source.randint(6, 14)])
    return questions


def _word(source: random.Random) -> str:
    syllables = source.choice((1, 2, 2, 3))
    return "".join(source.choice(_ONSETS) + source.choice(_RIMES) for _ in range(syllables))


def _sentences(words: Sequence[str], source: random.Random, between: str, end: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(words):
        length = source.randint(6, 18)
        parts.append(between.join(words[at : at + length]) + end)
        at += length
    return "".join(parts)
