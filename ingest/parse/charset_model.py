"""How well decoded text reads as a language, in nats: what tells one encoding from another.

A wrong table turns everyday letters into rare ones, so the right reading is the most probable text. Each
candidate decodes the same bytes, therefore the sums compare directly: log P(text | language) + log prior.
`char_frequency.tsv` holds the frequencies: Chinese characters as counted in jieba's dictionary (traditional
forms by OpenCC), the letters and syllables of other languages as counted in the translations and manual pages
of free software. A line is a language, a bucket b and its characters, each with probability exp(-b / 2).
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from string import ascii_lowercase

import regex

CONTROL_COST = 12.0
ASCII_COST = 3.5  # of an ASCII sign; the same in most readings of the same bytes
_ANY_LETTER_COST = 3.4  # of a Latin letter where the language is not written in them
_RARE_LETTER_COST = 10.0
BROKEN_COST = 16.0  # of a byte that the table does not know

_CHINESE = ("zh", "zht")
_WEST = ("en", "de", "fr", "es", "pt", "it", "nl", "sv", "da", "fi", "is", "ca")
_EAST = ("pl", "cs", "sk", "hu", "ro", "hr", "sl")
_BALTIC = ("lt", "lv", "et")
_LATIN = frozenset((*_WEST, *_EAST, *_BALTIC, "tr"))
_CYRILLIC = ("ru", "uk", "bg", "sr")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An encoding, the languages that are written in it, and the cost of choosing it at all."""

    name: str
    languages: tuple[str, ...]
    cost: float = 0.0


CANDIDATES = (
    Candidate("gb18030", (*_CHINESE, "ja"), 0.0),
    Candidate("big5hkscs", ("zht", "zh"), 0.5),
    Candidate("cp950", ("zht", "zh"), 1.5),
    Candidate("cp932", ("ja",), 0.5),
    Candidate("euc_jp", ("ja",), 1.5),
    Candidate("cp949", ("ko",), 1.0),
    Candidate("utf-16-le", (*_CHINESE, "ja", "ko", *_WEST, *_EAST, *_CYRILLIC), 2.0),
    Candidate("utf-16-be", (*_CHINESE, "ja", "ko", *_WEST, *_EAST, *_CYRILLIC), 2.5),
    Candidate("cp1252", _WEST, 0.0),
    Candidate("cp1250", _EAST, 1.0),
    Candidate("cp1251", _CYRILLIC, 0.5),
    Candidate("cp1253", ("el",), 1.0),
    Candidate("cp1254", ("tr",), 1.0),
    Candidate("cp1255", ("he",), 1.5),
    Candidate("cp1256", ("ar",), 1.5),
    Candidate("cp1257", _BALTIC, 1.5),
    Candidate("cp874", ("th",), 1.5),
    Candidate("koi8_r", ("ru", "bg"), 1.5),
    Candidate("koi8_u", ("uk", "ru"), 2.5),
    Candidate("iso8859_15", _WEST, 2.5),
    Candidate("iso8859_2", _EAST, 2.0),
    Candidate("iso8859_5", _CYRILLIC, 3.0),
    Candidate("iso8859_7", ("el",), 2.0),
    Candidate("cp866", _CYRILLIC, 2.0),
    Candidate("mac_roman", _WEST, 3.0),
    Candidate("mac_cyrillic", _CYRILLIC, 3.5),
    Candidate("cp850", _WEST, 3.0),
    Candidate("cp852", _EAST, 3.5),
    Candidate("cp437", _WEST, 4.0),
)

_CJK_MARKS = {
    **dict.fromkeys("，。、", 3.5),
    **dict.fromkeys("：；！？（）《》“”「」・ー", 5.0),
    **dict.fromkeys("『』‘’【】…—～·〈〉〔〕％＋－／＝　", 6.5),
}
_MARKS = {
    **dict.fromkeys("’“”‘„–—…«»\u00a0", 6.0),
    **dict.fromkeys("•·°€£©®™§±²³½¿¡‚‹›µ№×º", 8.0),
}
_WIDE = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\u3000-\u303f\uff00-\uffef"
_OTHER_ALPHABET = r"\p{Cyrillic}\p{Greek}\p{Hebrew}\p{Arabic}\p{Thai}"
_SPACED = regex.compile(rf"[A-Za-z](?=[{_WIDE}])|[{_WIDE}](?=[A-Za-z])")
_CASE = regex.compile(r"\p{Ll}(?=\p{Lu})|(?<=\p{Lu})\p{Lu}(?=\p{Ll})")
_MIXED = regex.compile(rf"\p{{Latin}}(?=[{_OTHER_ALPHABET}])|[{_OTHER_ALPHABET}](?=\p{{Latin}})")
_INSIDE = regex.compile(r"(?<=\p{L})[^\p{L}\p{M}\p{Z}\p{P}\x00-\x7f](?=\p{L})")
_ASCII_LETTER = regex.compile(r"[A-Za-z]")
_SPACED_COST, _CASE_COST, _MIXED_COST, _INSIDE_COST = 1.5, 3.0, 4.0, 3.0
_UPPER_COST = 2.5  # a capital is rarer than its small letter


@lru_cache(maxsize=1)
def _frequencies() -> Mapping[str, Mapping[str, float]]:
    tables: dict[str, dict[str, float]] = {}
    stored = files("ingest.parse").joinpath("char_frequency.tsv").read_text(encoding="utf-8")
    for line in stored.splitlines():
        language, bucket, characters = line.split("\t")
        cost = int(bucket) / 2
        table = tables.setdefault(language, {})
        for c in characters:
            table[c] = cost
            upper = c.upper()
            if len(upper) == 1 and upper != c:
                table.setdefault(upper, cost + _UPPER_COST)
    for language, table in tables.items():
        marks = _CJK_MARKS if language in ("zh", "zht", "ja", "ko") else _MARKS
        for c, cost in marks.items():
            table.setdefault(c, cost)
        if language in _LATIN:
            for c in ascii_lowercase:
                table.setdefault(c, _RARE_LETTER_COST)
    return tables


def cost_of(text: str, candidate: Candidate) -> float:
    """-log P of the characters of `text` in nats, for the language of the candidate that fits best.

    In languages that are not written in Latin letters the share of Latin letters is taken as it is: a text
    of two thousand of them and one Cyrillic letter is an odd Russian text.
    """
    counts = Counter(text)
    common = 0.0
    latin: list[tuple[str, int]] = []
    others: list[tuple[str, int, float]] = []
    for c, n in counts.items():
        if c >= "\x80":
            others.append((c, n, _floor(c)))
        elif c.isalpha():
            latin.append((c.lower(), n))
        else:
            common += n * (ASCII_COST if c >= " " or c in "\t\r\n" else CONTROL_COST)
    letters, native = sum(n for _, n in latin), sum(n for _, n, _ in others)
    mixture = _mixture(letters, native) + letters * _ANY_LETTER_COST
    tables = _frequencies()
    best = math.inf
    for language in candidate.languages:
        table = tables[language]
        cost = sum(n * table.get(c, floor) for c, n, floor in others)
        cost += sum(n * table[c] for c, n in latin) if language in _LATIN else mixture
        best = min(best, cost)
    return candidate.cost + common + best


def _mixture(first: int, second: int) -> float:
    """Nats to say which of the two kinds each character is, when their shares are known."""
    total = first + second
    return sum(-n * math.log(n / total) for n in (first, second) if n)


def cost_of_neighbours(text: str) -> float:
    """Nats for characters side by side that words do not have: changes of script or case, signs inside."""
    return (
        _SPACED_COST * len(_SPACED.findall(text))
        + _CASE_COST * sum(1 for m in _CASE.finditer(text) if not text[m.start() : m.start() + 2].isascii())
        + _MIXED_COST * len(_MIXED.findall(text))
        + _INSIDE_COST * len(_INSIDE.findall(text))
    )


@lru_cache(maxsize=8192)
def _floor(c: str) -> float:
    """Cost of a character that the language's table does not hold."""
    point = ord(c)
    if c == "\ufffd":
        return BROKEN_COST
    category = unicodedata.category(c)
    if category in ("Cc", "Co", "Cn", "Cs"):
        return 20.0
    if 0x4E00 <= point <= 0x9FFF:
        return 14.5
    if 0x3040 <= point <= 0x30FF:
        return 10.0
    if 0xFF01 <= point <= 0xFF5E:
        return 9.0
    if 0xFF61 <= point <= 0xFF9F:
        return 15.0
    if 0x3400 <= point <= 0x4DBF or point >= 0x20000 or 0xF900 <= point <= 0xFAFF:
        return 19.0
    return 13.0 if category[0] in "PZ" else 15.0
