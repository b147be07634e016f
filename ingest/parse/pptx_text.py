"""DrawingML text bodies → paragraphs and list items with their labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import regex

from ingest.parse.findings import Findings
from ingest.parse.formula import linear
from ingest.parse.model import Block, BlockKind, Fragment
from ingest.parse.number_words import spelled
from ingest.parse.ooxml import MC, A, chosen, local

_TINY = 100  # hundredths of a point: 1 pt
_SCHEME = regex.compile(
    r"(?P<form>arabicDbl|arabic|alphaLc|alphaUc|romanLc|romanUc|ea1Chs|ea1Cht|ea1JpnChs|ea1JpnKor|circleNum\w\w?)"
    r"(?P<mark>PeriodDb|Period|ParenR|ParenBoth|Plain|Minus|DbPlain|WdBlackPlain|WdWhitePlain)?"
)
_FORMS = {
    "arabicDbl": "decimalFullWidth",
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
    "ea1Chs": "chineseCounting",
    "ea1Cht": "taiwaneseCountingThousand",
    "ea1JpnChs": "japaneseCounting",
    "ea1JpnKor": "japaneseCounting",
}
_MARKS = {"Period": "{}.", "PeriodDb": "{}.", "ParenR": "{})", "ParenBoth": "({})", "Minus": "{} -"}
_FURNITURE_FIELDS = ("slidenum",)


@dataclass(slots=True)
class TextReader:
    """Reads text bodies of one slide; counts text that nobody sees."""

    findings: Findings
    page: int
    keep_hidden: bool = False
    _numbers: dict[int, tuple[str, int]] = field(default_factory=dict)

    def blocks(self, body: Any, *, bulleted: bool) -> Iterator[Block]:
        """Blocks of a text body; `bulleted` when its paragraphs are list items unless they say otherwise."""
        self._numbers = {}
        for paragraph in body.iter(A + "p"):
            text = self.paragraph(paragraph)
            properties = paragraph.find(A + "pPr")
            depth = _depth(properties)
            label = self._label(properties, depth) if text else None
            if not text:
                continue
            fragments = (Fragment(text, " ", page=self.page),)
            if label:
                fragments = (Fragment(label, "", page=self.page), *fragments)
            if label is not None or _is_item(properties, bulleted):
                yield Block(BlockKind.LIST_ITEM, fragments, level=depth)
            else:
                yield Block(BlockKind.PARAGRAPH, fragments)

    def line(self, body: Any) -> str:
        """All text of a body on one line."""
        return " ".join(t for t in (self.paragraph(p) for p in body.iter(A + "p")) if t)

    def paragraph(self, paragraph: Any) -> str:
        """Text of an `a:p` on one line."""
        parts: list[str] = []
        self._collect(paragraph, parts)
        return " ".join("".join(parts).split())

    def _collect(self, parent: Any, parts: list[str]) -> None:
        for child in parent:
            name = local(child)
            if name == "r":
                parts.append(self._run(child))
            elif name == "fld":
                if child.get("type") not in _FURNITURE_FIELDS:
                    parts.append(self._run(child))
            elif name == "br":
                parts.append(" ")
            elif name in ("oMath", "oMathPara"):
                parts.append(linear(child))
            elif name == "m":
                self._collect(child, parts)
            elif child.tag == MC + "AlternateContent":
                self._collect(chosen(child), parts)

    def _run(self, run: Any) -> str:
        text = "".join(t.text or "" for t in run.iter(A + "t")).replace("\v", " ")
        if not _is_hidden(run.find(A + "rPr")):
            return text
        code = "hidden_text_kept" if self.keep_hidden else "hidden_text"
        self.findings.count(code, len(text.strip()), self.page)
        return text if self.keep_hidden else ""

    def _label(self, properties: Any | None, depth: int) -> str | None:
        """Label of an automatically numbered paragraph; None for one that is not."""
        number = None if properties is None else properties.find(A + "buAutoNum")
        for deeper in [d for d in self._numbers if d > depth]:
            del self._numbers[deeper]
        if number is None:
            if properties is None or properties.find(A + "buNone") is None:
                self._numbers.pop(depth, None)
            return None
        scheme = number.get("type") or "arabicPeriod"
        start = number.get("startAt") or "1"
        first = int(start) if start.isdigit() and len(start) < 6 else 1
        last = self._numbers.get(depth)
        count = last[1] + 1 if last is not None and last[0] == f"{scheme} {first}" else first
        self._numbers[depth] = (f"{scheme} {first}", count)
        return auto_number(count, scheme)


def auto_number(count: int, scheme: str) -> str:
    """A label of ST_TextAutonumberScheme (ECMA-376 part 1, 20.1.10.61), e.g. `romanUcPeriod` → `IV.`."""
    match = _SCHEME.fullmatch(scheme)
    if match is None:
        return f"{count}."
    form = match.group("form")
    form = "decimalEnclosedCircle" if form.startswith("circleNum") else _FORMS.get(form, "decimal")
    return _MARKS.get(match.group("mark") or "", "{}").format(spelled(count, form))


def _depth(properties: Any | None) -> int:
    level = (None if properties is None else properties.get("lvl")) or "0"
    return int(level) if level.isdigit() and len(level) == 1 else 0


def _is_item(properties: Any | None, bulleted: bool) -> bool:
    if properties is None:
        return bulleted
    if properties.find(A + "buNone") is not None:
        return False
    return bulleted or properties.find(A + "buChar") is not None or properties.find(A + "buBlip") is not None


def _is_hidden(properties: Any | None) -> bool:
    """1 pt or less, or wholly transparent."""
    if properties is None:
        return False
    size = properties.get("sz") or ""
    if size.isdigit() and int(size) <= _TINY:
        return True
    alpha = properties.find(f"{A}solidFill//{A}alpha")
    return alpha is not None and alpha.get("val") in ("0", "0%")
