"""A count as a list shows it: decimal, roman, letters, circled, Chinese."""

from __future__ import annotations

from collections.abc import Callable

_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"))
_ROMAN_SMALL = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))
_STEMS = "甲乙丙丁戊己庚辛壬癸"
_BRANCHES = "子丑寅卯辰巳午未申酉戌亥"
_DIGITS = "零一二三四五六七八九"
_FORMAL_SIMPLIFIED = ("零壹贰叁肆伍陆柒捌玖", ("", "拾", "佰", "仟"), "万")
_FORMAL_TRADITIONAL = ("零壹貳參肆伍陸柒捌玖", ("", "拾", "佰", "仟"), "萬")
_COUNTING = (_DIGITS, ("", "十", "百", "千"), "万")
_ONE_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TEN_WORDS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety"
_ONES, _TENS = _ONE_WORDS.split(), _TEN_WORDS.split()
_CYRILLIC = "абвгдежзиклмнопрстуфхцчшщыэюя"


def spelled(number: int, form: str) -> str:
    """Write a count in a form that ECMA-376 (17.18.59 ST_NumberFormat) names; unknown forms are decimal."""
    writer = _FORMS.get(form)
    if writer is None or (number < 1 and form not in ("decimalZero", "none")):
        return str(number)
    return writer(number)


def chinese(
    number: int, style: tuple[str, tuple[str, ...], str] = _COUNTING, *, short_ten: bool = True
) -> str:
    """A count in Chinese, e.g. 12 → 十二, 105 → 一百零五; above 99,999,999 decimal."""
    digits, units, myriad = style
    if not 0 <= number < 10**8:
        return str(number)
    if number >= 10_000:
        high, low = divmod(number, 10_000)
        head = chinese(high, style, short_ten=short_ten) + myriad
        gap = digits[0] if 0 < low < 1000 else ""
        return head + (gap + chinese(low, style, short_ten=False) if low else "")
    out = ""
    gap = False
    for power in (3, 2, 1, 0):
        digit = number // 10**power % 10
        if digit:
            out += (digits[0] if gap and out else "") + digits[digit] + units[power]
            gap = False
        else:
            gap = True
    if short_ten and 10 <= number < 20:
        out = out[1:]
    return out or digits[0]


def _roman(number: int) -> str:
    out = ""
    for size, letters in (*_ROMAN, *_ROMAN_SMALL):
        out += letters * (number // size)
        number %= size
    return out


def _letters(number: int) -> str:
    return _repeated("abcdefghijklmnopqrstuvwxyz")(number)


def _repeated(signs: str) -> Callable[[int], str]:
    """a…z, then aa, bb, as word processors count on."""
    return lambda number: signs[(number - 1) % len(signs)] * min(1 + (number - 1) // len(signs), 20)


def _cycled(signs: str) -> Callable[[int], str]:
    return lambda number: signs[(number - 1) % len(signs)]


def _run(first: int, last: int, otherwise: str = "{}") -> Callable[[int], str]:
    """Consecutive characters from `first`; `otherwise` past the last."""
    count = last - first + 1
    return lambda number: chr(first + number - 1) if number <= count else otherwise.format(number)


def _circled(number: int) -> str:
    if number <= 20:
        return chr(0x2460 + number - 1)
    return chr(0x3251 + number - 21) if number <= 35 else str(number)


def _digit_by_digit(number: int) -> str:
    return "".join("〇一二三四五六七八九"[int(d)] for d in str(number))


def _ordinal(number: int) -> str:
    suffix = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _words(number: int) -> str:
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, rest = divmod(number, 10)
        return _TENS[tens] + (f"-{_ONES[rest]}" if rest else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{_ONES[hundreds]} hundred" + (f" {_words(rest)}" if rest else "")
    return str(number)


def _ordinal_words(number: int) -> str:
    words = _words(number)
    for ending, new in (("one", "first"), ("two", "second"), ("three", "third"), ("five", "fifth")):
        if words.endswith(ending):
            return words.removesuffix(ending) + new
    for ending, new in (("eight", "eighth"), ("nine", "ninth"), ("twelve", "twelfth"), ("y", "ieth")):
        if words.endswith(ending):
            return words.removesuffix(ending) + new
    return words + "th" if words[-1:].isalpha() else _ordinal(number)


def _formal(style: tuple[str, tuple[str, ...], str]) -> Callable[[int], str]:
    return lambda number: chinese(number, style, short_ten=False)


_FORMS: dict[str, Callable[[int], str]] = {
    "none": lambda _: "",
    "bullet": lambda _: "",
    "decimalZero": lambda n: f"{n:02d}",
    "upperRoman": lambda n: _roman(n).upper() if n < 5000 else str(n),
    "lowerRoman": lambda n: _roman(n) if n < 5000 else str(n),
    "upperLetter": lambda n: _letters(n).upper(),
    "lowerLetter": _letters,
    "russianLower": _repeated(_CYRILLIC),
    "russianUpper": _repeated(_CYRILLIC.upper()),
    "ordinal": _ordinal,
    "cardinalText": lambda n: _words(n).capitalize(),
    "ordinalText": lambda n: _ordinal_words(n).capitalize(),
    "decimalFullWidth": lambda n: "".join(chr(0xFF10 + int(d)) for d in str(n)),
    "decimalFullWidth2": lambda n: "".join(chr(0xFF10 + int(d)) for d in str(n)),
    "decimalEnclosedCircle": _circled,
    "decimalEnclosedCircleChinese": _circled,
    "decimalEnclosedFullstop": _run(0x2488, 0x249B, "{}."),
    "decimalEnclosedParen": _run(0x2474, 0x2487, "({})"),
    "ideographEnclosedCircle": _run(0x3280, 0x3289),
    "ideographDigital": _digit_by_digit,
    "japaneseDigitalTenThousand": _digit_by_digit,
    "taiwaneseDigital": _digit_by_digit,
    "chineseCounting": chinese,
    "chineseCountingThousand": chinese,
    "japaneseCounting": chinese,
    "taiwaneseCounting": chinese,
    "taiwaneseCountingThousand": lambda n: chinese(n, (_DIGITS, ("", "十", "百", "千"), "萬")),
    "chineseLegalSimplified": _formal(_FORMAL_SIMPLIFIED),
    "ideographLegalTraditional": _formal(_FORMAL_TRADITIONAL),
    "japaneseLegal": _formal(_FORMAL_TRADITIONAL),
    "ideographTraditional": _cycled(_STEMS),
    "ideographZodiac": _cycled(_BRANCHES),
    "aiueo": _cycled(
        "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン"
    ),
    "hebrew1": _cycled("אבגדהוזחטיכלמנסעפצקרשת"),
    "numberInDash": lambda n: f"- {n} -",
}
