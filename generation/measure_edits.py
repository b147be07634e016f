"""Sentences of a source, changed in one thing: what the verifier must not call supported any more. Pure.

A sentence that stands in its source word for word is supported by construction, and so is not the same
sentence with another number, name or direction. That gives counts per kind of error in both languages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from generation.facts import MONTHS
from generation.relations import CAUSE_FIRST, EFFECT_FIRST
from generation.wording import names_of


@dataclass(frozen=True, slots=True)
class Edit:
    """One kind of change; `apply` returns None where the sentence offers no place for it."""

    kind: str
    apply: Callable[[str], str | None]


def _swapper(pairs: Mapping[str, str], *, behind: str = "", before: str = "") -> Callable[[str], str | None]:
    words = "|".join(
        rf"\b{re.escape(word)}\b" if word[0].isascii() else re.escape(word)
        for word in sorted(pairs, key=len, reverse=True)
    )
    pattern = re.compile(f"{behind}(?:{words}){before}")

    def apply(sentence: str) -> str | None:
        match = pattern.search(sentence)
        return (
            None if match is None else sentence[: match.start()] + pairs[match[0]] + sentence[match.end() :]
        )

    return apply


def _both_ways(text: str) -> dict[str, str]:
    pairs = [pair.split("/") for pair in text.split(";")]
    return {a: b for one, other in pairs for a, b in ((one, other), (other, one))}


_HAN_DIGIT = dict(zip("一二三四五六七八九", "二三四五六七八九一", strict=True))


def _number(sentence: str) -> str | None:
    match = re.search(r"(?<![\w.])\d+", sentence)
    if match is not None:
        return sentence[: match.start()] + str(int(match[0]) + 3) + sentence[match.end() :]
    han = re.search("[一二三四五六七八九](?=[十百千万年月日个名台次])", sentence)
    return None if han is None else sentence[: han.start()] + _HAN_DIGIT[han[0]] + sentence[han.end() :]


def _name(sentence: str) -> str | None:
    name = next((n for n in names_of(sentence) if n.isalpha() and len(n) > 3), None)
    return None if name is None else re.sub(rf"\b{name}\b", "Quorvane", sentence, count=1)


def _negation(sentence: str) -> str | None:
    for pattern, change in (
        (r"\b(is|are|was|were|can|could|will|would|has|have|does|do|did) not\b", r"\1"),
        (r"\b(is|are|was|were|can|could|will|would)\b", r"\1 not"),
        (r"不(?=[是能会可需得存])", ""),
        (r"(?<![不就只但还可总便或若正于像如凡])(?=是)|(?<![不只可])(?=能够|可以|会在|需要)", "不"),
    ):
        changed = re.sub(pattern, change, sentence, count=1)
        if changed != sentence:
            return changed
    return None


def _month(sentence: str) -> str | None:
    names = [name for name in MONTHS if len(name) > 3 and name not in ("march", "sept")]
    for index, name in enumerate(names):
        if re.search(rf"\b{name.capitalize()}\b", sentence):
            return sentence.replace(name.capitalize(), names[(index + 5) % len(names)].capitalize(), 1)
    match = re.search(r"(?<!\d)(\d{1,2})月", sentence)
    if match is None:
        return None
    return sentence[: match.start()] + f"{int(match[1]) % 12 + 1}月" + sentence[match.end() :]


def _cause(sentence: str) -> str | None:
    match = EFFECT_FIRST.search(sentence) or CAUSE_FIRST.search(sentence)
    if match is None or match.start() < 12 or len(sentence) - match.end() < 12:
        return None
    before, after = sentence[: match.start()].strip(), sentence[match.end() :].strip(" .。")
    return f"{after} {match[0]} {before}" + ("。" if "。" in sentence else ".")


def _roles(sentence: str) -> str | None:
    names = [n for n in names_of(sentence) if n.isalpha()]
    if len(names) < 2:
        return None
    one, other = names[0], names[1]
    return sentence.replace(one, "\0", 1).replace(other, one, 1).replace("\0", other, 1)


def _year(sentence: str) -> str | None:
    """One of two years in the other's place: both stand in the source, each with something else."""
    years = list(dict.fromkeys(re.findall(r"(?<![\d.,])[12]\d{3}(?![\d,])", sentence)))
    return re.sub(rf"(?<!\d){years[0]}(?!\d)", years[1], sentence) if len(years) == 2 else None


_ROLES = {
    "built": "operated",
    "operated": "built",
    "designed": "owned",
    "owned": "designed",
    "wrote": "published",
    "written": "translated",
    "published": "translated",
    "founded": "bought",
    "bought": "founded",
    "acquired": "founded",
    "directed by": "composed by",
    "invented": "funded",
    "discovered": "funded",
    "appointed": "elected",
    "elected": "appointed",
    "运营": "建造",
    "建造": "运营",
    "设计": "资助",
    "创办": "收购",
    "创立": "收购",
    "成立": "收购",
    "收购": "创办",
    "出版": "翻译",
    "翻译": "出版",
    "导演": "作曲",
    "发明": "资助",
    "任命": "选举",
}

_UNITS = _both_ways(
    "metres/feet;meters/miles;kilometers/yards;km/cm;kg/pounds;公里/英里;米/英尺;公斤/吨;hours/days;小时/天;"
    "million/billion"
)
_DIRECTIONS = _both_ways(
    "increased/decreased;increase/decrease;higher/lower;rose/fell;more than/less than;larger/smaller;"
    "before/after;first/last;won/lost;north/south;east/west;增加/减少;上升/下降;高于/低于;最大/最小;最高/最低;"
    "以前/以后;之前/之后;多于/少于;提高/降低"
)
_BOUNDS = _both_ways("at least/at most;more than/fewer than;up to/at least;至少/至多;超过/不到") | {
    "不超过": "至少"
}
_QUANTITIES = dict.fromkeys(("some", "many", "several"), "all") | {
    "often": "always",
    "usually": "always",
    "sometimes": "always",
    "一些": "所有",
    "许多": "所有",
    "部分": "全部",
    "有些": "所有",
    "常常": "总是",
    "经常": "总是",
}
_SOLE = {a: f"{a.split()[0]} the only" for a in ("is a", "was a", "are the", "was the", "is the")} | {
    "是一个": "是唯一的",
    "是一": "是唯一的一",
}
_HEDGES = {"might be": "is", "may be": "is", "may have": "has"} | dict.fromkeys(
    ("possibly ", "reportedly ", "可能", "据称", "也许"), ""
)

EDITS = (
    Edit("number", _number),
    Edit("unit", _swapper(_UNITS, behind=r"(?<=\d[ 0-9])")),
    Edit("month", _month),
    Edit("name", _name),
    Edit("negation", _negation),
    Edit("direction", _swapper(_DIRECTIONS)),
    Edit("bound", _swapper(_BOUNDS, before=r"(?=[ 有]?\d)")),
    Edit("quantity", _swapper(_QUANTITIES)),
    Edit("sole", _swapper(_SOLE)),
    Edit("hedge", _swapper(_HEDGES)),
    Edit("cause", _cause),
    Edit("roles", _roles),
    Edit("role", _swapper(_ROLES)),
    Edit("year", _year),
)
