"""Date and time format codes of spreadsheets (ECMA-376 part 1, 18.8.31)."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

import regex

_TOKEN = regex.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_.|\*.|\[(?P<elapsed>h+|m+|s+)\]|\[\$(?P<currency>[^\]\-]*)[^\]]*\]'
    r"|\[[^\]]*\]|(?P<half>AM/PM|A/P|上午/下午)|(?P<fraction>\.0+)|(?P<field>y+|e+|m+|d+|h+|s+|a{3,4})"
    r"|(?P<other>.)",
    regex.IGNORECASE | regex.DOTALL,
)
_MONTH_NAMES = "January February March April May June July August September October November December"
_DAY_NAMES = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_MONTHS, _DAYS = _MONTH_NAMES.split(), _DAY_NAMES.split()
_CHINESE_DAYS = "一二三四五六日"


@dataclass(frozen=True, slots=True)
class DateCode:
    """A parsed code: (`field`, form) pairs; the form of a literal is its text."""

    tokens: tuple[tuple[str, str], ...]

    def shown(self, epoch: dt.datetime, seconds: Decimal) -> str:
        """The moment `seconds` after `epoch`, in this form.

        Raises:
            OverflowError: outside the calendar.
        """
        places = max((len(form) - 1 for kind, form in self.tokens if kind == "fraction"), default=0)
        seconds = seconds.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
        moment = epoch + dt.timedelta(seconds=int(seconds))
        twelve = any(kind == "half" for kind, _ in self.tokens)
        out = [_shown(kind, form, moment, seconds, twelve) for kind, form in self.tokens]
        return "".join(out).strip()


@lru_cache(maxsize=512)
def as_date_code(section: str) -> DateCode | None:
    """Parse a section of a number format; None when it formats no date."""
    tokens: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(section):
        kind = match.lastgroup
        if kind is None:
            continue
        form = match.group(kind) or ""
        if kind in ("quoted", "escaped", "currency", "other"):
            if kind == "other" and form in "0#?%@":
                return None
            tokens.append(("literal", form))
        elif kind == "field":
            tokens.append((form[0].lower(), form))
        else:
            tokens.append((kind, form))
    kinds = {kind for kind, _ in tokens}
    if not kinds & set("ymdhsae") and "elapsed" not in kinds:
        return None
    if "general" in section.lower():
        return None
    return DateCode(tuple(_with_minutes(tokens)))


def _with_minutes(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """`m` next to hours or seconds means minutes."""
    fields = [i for i, (kind, _) in enumerate(tokens) if kind not in ("literal", "half", "fraction")]
    for at, index in enumerate(fields):
        kind, form = tokens[index]
        before = tokens[fields[at - 1]] if at else ("", "")
        after = tokens[fields[at + 1]] if at + 1 < len(fields) else ("", "")
        hours_before = before[0] == "h" or (before[0] == "elapsed" and before[1][0] in "hH")
        if kind == "m" and len(form) < 3 and (hours_before or after[0] == "s"):
            tokens[index] = ("minute", form)
    return tokens


def _shown(kind: str, form: str, moment: dt.datetime, seconds: Decimal, twelve: bool) -> str:
    if kind == "literal":
        return form
    if kind == "elapsed":
        size = {"h": 3600, "m": 60, "s": 1}[form[0].lower()]
        return f"{int(seconds) // size:0{len(form)}d}"
    if kind == "fraction":
        return f"{seconds % 1:f}"[1:] if seconds % 1 else form
    if kind == "half":
        return ("上午", "下午")[moment.hour >= 12] if "午" in form else ("AM", "PM")[moment.hour >= 12]
    if kind in ("y", "e"):
        return f"{moment.year:04d}" if len(form) > 2 or kind == "e" else f"{moment.year % 100:02d}"
    if kind == "m":
        return _month(moment, len(form))
    if kind == "d":
        return f"{moment.day:0{len(form)}d}" if len(form) < 3 else _day(moment, len(form))
    if kind == "a":
        return ("周", "星期")[len(form) > 3] + _CHINESE_DAYS[moment.weekday()]
    hour = (moment.hour % 12 or 12) if twelve else moment.hour
    number = {"h": hour, "minute": moment.minute, "s": moment.second}[kind]
    return f"{number:0{min(len(form), 2)}d}"


def _month(moment: dt.datetime, size: int) -> str:
    name = _MONTHS[moment.month - 1]
    return {3: name[:3], 4: name, 5: name[0]}.get(size, f"{moment.month:0{min(size, 2)}d}")


def _day(moment: dt.datetime, size: int) -> str:
    name = _DAYS[moment.weekday()]
    return name[:3] if size == 3 else name
