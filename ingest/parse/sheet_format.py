"""Spreadsheet number formats: a stored number as people see it (ECMA-376 part 1, 18.8.31 and 18.8.30)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from fractions import Fraction
from functools import lru_cache

import regex

from ingest.parse.date_format import DateCode, as_date_code

_PIECE = regex.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_(?P<pad>.)|\*(?P<fill>.)'
    r"|\[\$(?P<currency>[^\]\-]*)(?:-[^\]]*)?\]|\[(?P<bracket>[^\]]*)\]"
    r"|(?P<number>[0#?][0#?.,]*|\.[0#?]+)|(?P<exponent>[eE][+\-]0+)|(?P<percent>%)|(?P<general>General)"
    r"|(?P<text>@)|(?P<other>.)",
    regex.IGNORECASE | regex.DOTALL,
)
_CONDITION = regex.compile(r"\[(<=|>=|<>|<|>|=)(-?\d+(?:\.\d+)?)\]")
_SECTION = regex.compile(r'(?:"[^"]*"|\\.|\[[^\]]*\]|[^;])*', regex.DOTALL)
_FRACTION = regex.compile(r"([#0?]+\s+)?[#0?]+/([#0?]+|\d+)")
_EPOCH = dt.datetime(1899, 12, 30)  # noqa: DTZ001 - a sheet's dates carry no zone
_EPOCH_1904 = dt.datetime(1904, 1, 1)  # noqa: DTZ001 - a sheet's dates carry no zone
_MAX_SERIAL = 2_958_466  # 9999-12-31
_MAX_DIGITS = 340
_MAX_CODE = 255  # characters; programs take no longer codes
_COMPARE = {"<": -1, "<=": -1, ">": 1, ">=": 1}

# Formats that a style names by number alone (18.8.30). 14 and 22 follow the reader's country: shown in ISO.
BUILTIN = {
    0: "General", 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00",
    12: "# ?/?", 13: "# ??/??", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy",
    18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd hh:mm",
    27: 'yyyy"年"m"月"', 28: 'm"月"d"日"', 29: 'm"月"d"日"', 30: "m-d-yy", 31: 'yyyy"年"m"月"d"日"',
    32: 'h"时"mm"分"', 33: 'h"时"mm"分"ss"秒"', 36: 'yyyy"年"m"月"', 37: "#,##0;-#,##0",
    38: "#,##0;-#,##0", 39: "#,##0.00;-#,##0.00", 40: "#,##0.00;-#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss",
    47: "mm:ss.0", 48: "##0.0E+0", 49: "@", 50: 'yyyy"年"m"月"', 51: 'm"月"d"日"', 52: 'yyyy"年"m"月"',
    53: 'm"月"d"日"', 54: 'm"月"d"日"', 57: 'yyyy"年"m"月"', 58: 'm"月"d"日"',
}  # fmt: skip


def shown_number(raw: str, code: str, *, from_1904: bool = False) -> str:
    """A stored number as its format shows it; text that is no number is given back.

    Args:
        raw: as stored, in the invariant form (`0.125`, `1E-3`).
        code: the format code; empty means General.
        from_1904: the workbook counts days from 1904.
    """
    if len(code) > _MAX_CODE:
        code = ""
    if not code and raw.isdigit() and raw.isascii() and len(raw) < 16 and (raw[0] != "0" or raw == "0"):
        return raw  # most cells
    try:
        number = Decimal(raw.strip())
    except InvalidOperation:
        return raw
    if not number.is_finite() or number.adjusted() > _MAX_DIGITS:
        return raw
    sections = _sections(code)
    if len(sections) == 1 and sections[0].lower() in ("", "general", "@"):
        return general(number)
    section, keeps_sign = _chosen(sections, number)
    dates = as_date_code(section)
    if dates is not None:
        return _date(number, dates, from_1904) or general(number)
    with localcontext() as context:
        context.prec = _MAX_DIGITS * 2
        return _number(number if keeps_sign else abs(number), section)


def shown_text(text: str, code: str) -> str:
    """A stored text as its format shows it: the fourth section, when there is one."""
    sections = _sections(code) if len(code) <= _MAX_CODE else ()
    if len(sections) < 4 or "@" not in sections[3]:
        return text
    return "".join(text if kind == "text" else _literal(kind, p) for kind, p in _pieces(sections[3])).strip()


def general(number: Decimal) -> str:
    """The plain form: whole numbers whole, others to 11 significant digits."""
    if number == number.to_integral_value() and number.adjusted() < 21:
        return f"{number.quantize(Decimal(1)):f}" if number else "0"
    text = f"{float(number):.11g}"
    return f"{Decimal(text):f}" if "e" in text and -5 <= number.adjusted() <= 20 else text


@lru_cache(maxsize=512)
def _sections(code: str) -> tuple[str, ...]:
    found: list[str] = []
    at = 0
    while at <= len(code):
        match = _SECTION.match(code, at)
        end = match.end() if match else len(code)
        found.append(code[at:end])
        at = end + 1
    return tuple(found) or ("",)


def _chosen(sections: Sequence[str], number: Decimal) -> tuple[str, bool]:
    """The section for a number, and whether it shows the minus sign itself."""
    conditions = [_CONDITION.search(s) for s in sections]
    if any(conditions):
        for section, condition in zip(sections, conditions, strict=True):
            if condition is None or _holds(number, condition.group(1), Decimal(condition.group(2))):
                return section, True
        return sections[-1], True
    numeric = sections[:3]
    if number > 0 or len(numeric) == 1:
        return numeric[0], len(numeric) == 1
    if number < 0:
        return numeric[1], False
    return (numeric[2] if len(numeric) > 2 else numeric[0]), False


def _holds(number: Decimal, sign: str, other: Decimal) -> bool:
    if sign in ("=", "<>"):
        return (number == other) == (sign == "=")
    difference = (number > other) - (number < other)
    return difference == _COMPARE[sign] or (difference == 0 and "=" in sign)


@lru_cache(maxsize=512)
def _pieces(section: str) -> tuple[tuple[str, str], ...]:
    """The parts of a section: kind and text."""
    return tuple((m.lastgroup or "", m.group(m.lastgroup or 0) or "") for m in _PIECE.finditer(section))


def _literal(kind: str, text: str) -> str:
    if kind in ("quoted", "escaped", "currency", "other"):
        return text
    return " " if kind == "pad" and text == " " else ""


def _number(number: Decimal, section: str) -> str:
    if fraction := _FRACTION.search(section):
        return _as_fraction(number, fraction)
    pieces = _pieces(section)
    forms = [text for kind, text in pieces if kind == "number"]
    exponent = next((text for kind, text in pieces if kind == "exponent"), None)
    number *= Decimal(100) ** sum(kind == "percent" for kind, _ in pieces)
    digits = iter(_digits(number, forms, exponent))
    sign = "-" if number < 0 and forms else ""
    out: list[str] = []
    for kind, text in pieces:
        if kind == "number":
            out.append(next(digits, ""))
        elif kind == "percent":
            out.append("%")
        elif kind in ("general", "text"):
            out.append(general(number))
        else:
            out.append(_literal(kind, text))
    return (sign + "".join(out)).strip()


def _digits(number: Decimal, forms: list[str], exponent: str | None) -> list[str]:
    """The digits for each run of placeholders; the first takes the number, later ones split it (000-0000)."""
    if not forms:
        return []
    power = 0
    if exponent is not None and number:
        step = max(1, sum(c in "0#?" for c in forms[0].partition(".")[0]))
        power = (number.adjusted() // step) * step
        number = number.scaleb(-power)
    if exponent is None and len(forms) > 1 and not any("." in f or "," in f for f in forms):
        return _spread(abs(number), forms)
    form = forms[0]
    whole, _, after = form.partition(".")
    scaled = len(whole) - len(whole.rstrip(","))
    if not after and scaled:
        whole = whole.rstrip(",")
        number = number.scaleb(-3 * scaled)
    places = sum(c in "0#?" for c in after)
    least = sum(c in "0?" for c in after)
    rounded = abs(number).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    head, _, tail = f"{rounded:f}".partition(".")
    while len(tail) > least and tail.endswith("0"):
        tail = tail[:-1]
    if head == "0" and "0" not in whole:
        head = ""
    head = head.rjust(sum(c == "0" for c in whole), "0")
    if "," in whole:
        head = _grouped(head)
    text = head + (f".{tail}" if tail or (after and least) else "")
    if exponent is not None:
        mark = "-" if power < 0 else "+" if exponent[1] == "+" else ""
        text += f"E{mark}{abs(power):0{len(exponent) - 2}d}"
    return [text or ("0" if "0" in form else "")]


def _grouped(digits: str) -> str:
    head = len(digits) % 3
    groups = [digits[:head]] if head else []
    return ",".join(groups + [digits[i : i + 3] for i in range(head, len(digits), 3)])


def _spread(number: Decimal, forms: list[str]) -> list[str]:
    digits = f"{number.quantize(Decimal(1), rounding=ROUND_HALF_UP):f}"
    found: list[str] = []
    for form in reversed(forms[1:]):
        size = len(form)
        found.append(digits[-size:].rjust(form.count("0"), "0"))
        digits = digits[:-size]
    found.append(digits.rjust(forms[0].count("0"), "0"))
    return found[::-1]


def _as_fraction(number: Decimal, form: regex.Match[str]) -> str:
    sign = "-" if number < 0 else ""
    number = abs(number)
    whole = int(number) if form.group(1) else 0
    rest = number - whole
    below = form.group(2)
    if below.isdigit() and int(below):
        bottom = int(below)
        top = int((rest * bottom).to_integral_value(ROUND_HALF_UP))
    else:
        nearest = Fraction(rest).limit_denominator(10 ** min(len(below), 4) - 1)
        top, bottom = nearest.numerator, nearest.denominator
    if top == bottom and form.group(1):
        whole, top = whole + 1, 0
    if not top:
        return f"{sign}{whole}"
    return sign + (f"{whole} " if whole else "") + f"{top}/{bottom}"


def _date(number: Decimal, code: DateCode, from_1904: bool) -> str | None:
    """None outside the calendar."""
    if not 0 <= number < _MAX_SERIAL:
        return None
    early = dt.timedelta(days=number < 60)  # a sheet counts a 29 February 1900 that never was
    moment = _EPOCH_1904 if from_1904 else _EPOCH + early
    seconds = Decimal(number) * 86_400
    try:
        return code.shown(moment, seconds)
    except OverflowError:
        return None
