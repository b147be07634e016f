"""What a sentence states that can be compared exactly: numbers with units, and months.

Pure; Chinese and English. Chinese numerals and English number words read as numbers, so that 三百三十米,
330 m and "three hundred and thirty metres" agree.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from generation.units import UNITS


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_WORDS = {
    word: value
    for value, word in enumerate(
        _split(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
            "sixteen seventeen eighteen nineteen"
        )
    )
}
_TENS = {w: 10 * n for n, w in enumerate(_split("twenty thirty forty fifty sixty seventy eighty ninety"), 2)}
# "first" and "second" have too many other readings.
_ORDINALS = {w: n for n, w in enumerate(_split("third fourth fifth sixth seventh eighth ninth tenth"), 3)}
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_MONTH_NAMES = _split("january february march april may june july august september october november december")
MONTHS = {
    **{name: number for number, name in enumerate(_MONTH_NAMES, 1)},
    **{name[:3]: number for number, name in enumerate(_MONTH_NAMES, 1)},
    "sept": 9,
}
_HAN_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_HAN_SCALES = {"十": 10, "百": 100, "千": 1000}
_HAN_BIG = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_HAN_NUMERAL = "零〇一二三四五六七八九十百千万萬亿億两兩"

_ARABIC = re.compile(r"(?<![A-Za-z\d.])[-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![A-Za-z\d.])[-−]?\d+(?:\.\d+)?")
_SCALE_AFTER = re.compile(r"\s*(hundred|thousand|million|billion|trillion|万亿|万|亿|千|百)(?![a-z])")
_UNIT_AFTER = re.compile(
    r"\s*-?(" + "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True)) + r")(?![a-z])"
)
_HAN_RUN = re.compile(f"(百分之)?([{_HAN_NUMERAL}]+)(?:点([零〇一二三四五六七八九]+))?")
_ENGLISH_RUN = re.compile(
    r"\b(?:(?:" + "|".join([*_WORDS, *_TENS, *_SCALES]) + r"|a(?= (?:hundred|thousand|million|billion)))"
    r"(?:[\s-]+(?:and\s+)?(?=(?:" + "|".join([*_WORDS, *_TENS, *_SCALES]) + r")\b)|\b))+"
)
_ORDINAL_WORD = re.compile(r"\b(" + "|".join(_ORDINALS) + r")\b")
_MONTH_WORD = re.compile(r"\b(" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?")
_HAN_MONTH = re.compile(f"([{_HAN_NUMERAL}]{{1,2}}|\\d{{1,2}})月")
_ISO_DATE = re.compile(r"(?<!\d)([12]\d{3})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_FRACTION_HAN = re.compile(f"([{_HAN_NUMERAL}]+|\\d+)分之([{_HAN_NUMERAL}]+|\\d+)")
# 一 inside a word counts nothing: 一些, 统一, 唯一 …
_HAN_IDIOM = re.compile(
    "一些|一般|一样|一直|一定|一起|一旦|一致|一切|一方面|一次性|进一步|统一|唯一|之一|第一|万一|同一|另一|某一|每一|任一|"
    "一种|一个|一名|一位|一座|一项|一部|一家|一款|一类|一批|十分(?!钟|之)|千万|百姓|万物|三角|四川|九龙|五金|百科|千瓦|千米|千克"
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A number (with its unit's dimension, values in the base unit) or a month.

    Attributes:
        kind: `number` or `month`.
        dimension: empty when no unit stands beside the number.
        surface: as written.
    """

    kind: str
    value: Decimal
    dimension: str
    surface: str

    def agrees_with(self, other: Fact) -> bool:
        """Same kind and value; dimensions must agree only where both have one."""
        if self.kind != other.kind:
            return False
        if self.dimension and other.dimension and self.dimension != other.dimension:
            return False
        if self.dimension and not other.dimension and self.dimension != "months":
            return False
        return abs(self.value - other.value) <= abs(other.value) * Decimal("0.000001")

    def __str__(self) -> str:
        return self.surface


_Facts = dict[tuple[str, Decimal, str], Fact]


def facts_of(text: str) -> tuple[Fact, ...]:
    """Numbers and months of a text, each value and unit once."""
    return _scanned(text)[0]


def without_facts(text: str) -> str:
    """The text, width-folded and in lower case, with its numbers, units and months blanked out."""
    return _scanned(text)[1]


@lru_cache(maxsize=16384)
def _scanned(text: str) -> tuple[tuple[Fact, ...], str]:
    folded = unicodedata.normalize("NFKC", text).lower()
    facts: _Facts = {}
    folded = _mask(folded, _iso_dates(folded, facts))
    folded = _mask(folded, _fractions(folded, facts))
    folded = _mask(folded, _months(folded, facts))
    folded = _mask(folded, _arabic(folded, facts))
    idioms = [match.span() for match in _HAN_IDIOM.finditer(folded)]
    folded = _mask(folded, _han(_mask(folded, idioms), facts))
    folded = _mask(folded, _english(folded, facts))
    return tuple(facts.values()), folded


def _note(facts: _Facts, kind: str, value: Decimal, dimension: str, surface: str) -> None:
    facts.setdefault((kind, value, dimension), Fact(kind, value, dimension, surface.strip()))


def _mask(text: str, taken: list[tuple[int, int]]) -> str:
    for start, end in taken:
        text = text[:start] + "□" * (end - start) + text[end:]
    return text


def _iso_dates(text: str, facts: _Facts) -> list[tuple[int, int]]:
    taken: list[tuple[int, int]] = []
    for match in _ISO_DATE.finditer(text):
        year, month, day = (int(part) for part in match.groups())
        if not (1 <= month <= 12 and 1 <= day <= 31):
            continue
        _note(facts, "number", Decimal(year), "", match[0])
        _note(facts, "month", Decimal(month), "", match[0])
        _note(facts, "number", Decimal(day), "", match[0])
        taken.append(match.span())
    return taken


def _fractions(text: str, facts: _Facts) -> list[tuple[int, int]]:
    """三分之二 and 10分之3, as shares; 百分之 is read with its number."""
    taken: list[tuple[int, int]] = []
    for match in _FRACTION_HAN.finditer(text):
        whole, part = (int(g) if g.isdigit() else han_number(g) for g in match.groups())
        if match[1] == "百" or not whole or part is None:
            continue
        _note(facts, "number", Decimal(part) / Decimal(whole), "share", match[0])
        taken.append(match.span())
    return taken


def _months(text: str, facts: _Facts) -> list[tuple[int, int]]:
    taken: list[tuple[int, int]] = []
    for match in _MONTH_WORD.finditer(text):
        # "may" and "march" are also words: a month has a number beside it or a preposition of time before it.
        if (
            match[1] in ("may", "march", "mar")
            and not re.search(
                r"(?:\d(?:st|nd|rd|th)?\s+(?:of\s+)?|\b(?:in|of|since|until|by|last|next|early|late)\s+)$",
                text[max(0, match.start() - 12) : match.start()],
            )
            and not re.match(r"\s+\d", text[match.end() :])
        ):
            continue
        _note(facts, "month", Decimal(MONTHS[match[1]]), "", match[1])
        taken.append(match.span())
    for match in _HAN_MONTH.finditer(text):
        number = int(match[1]) if match[1].isdigit() else han_number(match[1])
        if number is not None and 1 <= number <= 12:
            _note(facts, "month", Decimal(number), "", match[0])
            taken.append(match.span())
    return taken


def _arabic(text: str, facts: _Facts) -> list[tuple[int, int]]:
    taken: list[tuple[int, int]] = []
    for match in _ARABIC.finditer(text):
        try:
            value = Decimal(match[0].replace(",", "").replace("−", "-"))
        except InvalidOperation:
            continue
        if match[0][0] in "-−" and match.start() and text[match.start() - 1].isalnum():
            value = -value  # a hyphen between words or in a range is no sign
        end = match.end()
        scale = _SCALE_AFTER.match(text, end)
        if scale and not _UNIT_AFTER.match(text, end):
            value *= _scale(scale[1])
            end = scale.end()
        end = _with_unit(text, end, value, text[match.start() : end], facts)
        taken.append((match.start(), end))
    return taken


def _scale(word: str) -> int:
    han = {"万亿": 10**12, "万": 10**4, "亿": 10**8, "千": 1000, "百": 100}
    return han.get(word) or _SCALES[word]


def _with_unit(text: str, end: int, value: Decimal, surface: str, facts: _Facts) -> int:
    unit = _UNIT_AFTER.match(text, end)
    if unit is None:
        before = text[: max(0, end - len(surface))][-1:]
        dimension = {"$": "money_usd", "¥": "money_cny", "€": "money_eur"}.get(before, "")
        _note(facts, "number", value, dimension, surface)
        return end
    dimension, factor = UNITS[unit[1]]
    _note(facts, "number", value * factor, dimension, surface + unit[0])
    return unit.end()


def _han(text: str, facts: _Facts) -> list[tuple[int, int]]:
    taken: list[tuple[int, int]] = []
    for match in _HAN_RUN.finditer(text):
        value = han_number(match[2])
        if value is None:
            continue
        number = Decimal(value)
        if match[3]:
            number += Decimal("0." + "".join(str(_HAN_DIGITS[c]) for c in match[3]))
        end = match.end()
        if match[1]:
            _note(facts, "number", number / 100, "share", match[0])
        else:
            end = _with_unit(text, end, number, match[0], facts)
        taken.append((match.start(), end))
    return taken


def han_number(text: str) -> int | None:
    """Value of a Chinese numeral (三百三十, 二〇二四, 两万五), or None."""
    if not text:
        return None
    if all(c in _HAN_DIGITS for c in text):
        return int("".join(str(_HAN_DIGITS[c]) for c in text))
    total = section = digit = 0
    last_scale = 1
    for char in text:
        if char in _HAN_DIGITS:
            digit = _HAN_DIGITS[char]
            if char in "零〇":
                last_scale = 10
        elif char in _HAN_SCALES:
            section += (digit or 1) * _HAN_SCALES[char]
            digit, last_scale = 0, _HAN_SCALES[char]
        else:
            total = (total + section + digit or 1) * _HAN_BIG[char]
            section = digit = 0
            last_scale = _HAN_BIG[char]
    return total + section + digit * (last_scale // 10 if digit and last_scale > 10 else 1)


def _english(text: str, facts: _Facts) -> list[tuple[int, int]]:
    taken: list[tuple[int, int]] = []
    for match in _ENGLISH_RUN.finditer(text):
        value = _english_number(re.split(r"[\s-]+", match[0].strip(" -")))
        if match[0].strip() == "one" and not _UNIT_AFTER.match(text, match.end()):
            continue  # "one of the largest", "no one": not a count
        end = _with_unit(text, match.end(), Decimal(value), match[0].strip(), facts)
        taken.append((match.start(), end))
    for match in _ORDINAL_WORD.finditer(text):
        _note(facts, "number", Decimal(_ORDINALS[match[1]]), "", match[1])
        taken.append(match.span())
    return taken


def _english_number(words: list[str]) -> int:
    total = current = 0
    for word in words:
        if word in _WORDS or word in _TENS:
            current += _WORDS.get(word, _TENS.get(word, 0))
        elif word == "a":
            current = 1
        elif word == "hundred":
            current = (current or 1) * 100
        elif word in _SCALES:
            total, current = total + (current or 1) * _SCALES[word], 0
    return total + current
