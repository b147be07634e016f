"""DOCX numbering: the label that a program shows before a numbered paragraph (ECMA-376 part 1, 17.9)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import regex

from ingest.parse.docx_styles import W, value
from ingest.parse.number_words import spelled
from ingest.parse.ooxml import is_true

_LEVELS = 9
_PLACE = regex.compile(r"%([1-9])")


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a list: `text` with `%n` for the number of level n, counted from `start`."""

    form: str = "decimal"
    text: str = ""
    start: int = 1
    restart: int | None = None
    style: str | None = None
    decimal_only: bool = False

    @property
    def is_bullet(self) -> bool:
        """Whether its mark is a sign rather than a number."""
        return self.form in ("bullet", "none") and not _PLACE.search(self.text)


class Numbering:
    """All lists of a document, and how far each has been counted."""

    def __init__(self, root: Any | None) -> None:
        self._lists: dict[str, dict[int, Level]] = {}
        self._abstract: dict[str, str] = {}
        self._starts: dict[str, dict[int, int]] = {}
        self._counters: dict[str, list[int | None]] = {}
        self._begun: set[str] = set()
        if root is not None:
            self._read(root)

    def level_of_style(self, number: str, style: str) -> int | None:
        """The level that a paragraph style takes in a list, when the list names it."""
        levels = self._lists.get(number, {})
        return next((depth for depth, level in levels.items() if level.style == style), None)

    def label(self, number: str, depth: int) -> str | None:
        """Count one paragraph of a list and return its label; empty for a bullet, None for no such list."""
        levels = self._lists.get(number)
        if levels is None or not 0 <= depth < _LEVELS:
            return None
        level = levels.get(depth, Level(form="none"))
        counters = self._counters.setdefault(self._abstract[number], [None] * _LEVELS)
        if number not in self._begun:
            self._begun.add(number)
            for at, start in self._starts[number].items():
                counters[at] = start - 1
        before = counters[depth]
        counters[depth] = level.start if before is None else before + 1
        for deeper in range(depth + 1, _LEVELS):
            restart = levels[deeper].restart if deeper in levels else None
            if restart is None or 0 < restart <= depth + 1:
                counters[deeper] = None
        return "" if level.is_bullet else self._rendered(levels, level, counters)

    def _rendered(self, levels: dict[int, Level], level: Level, counters: list[int | None]) -> str:
        def number(match: regex.Match[str]) -> str:
            at = int(match.group(1)) - 1
            other = levels.get(at, Level())
            count = counters[at]
            form = "decimal" if level.decimal_only and other.form != "none" else other.form
            return spelled(other.start if count is None else count, form)

        return _PLACE.sub(number, level.text).strip()

    def _read(self, root: Any) -> None:
        abstract: dict[str, dict[int, Level]] = {}
        by_style: dict[str, str] = {}
        links: dict[str, str] = {}
        for element in root.iter(W + "abstractNum"):
            key = element.get(W + "abstractNumId") or ""
            abstract[key] = dict(_level(e) for e in element.findall(W + "lvl"))
            if style := value(element.find(W + "styleLink")):
                by_style[style] = key
            if style := value(element.find(W + "numStyleLink")):
                links[key] = style
        for element in root.iter(W + "num"):
            number = element.get(W + "numId") or ""
            key = value(element.find(W + "abstractNumId")) or ""
            if not abstract.get(key) and key in links:
                key = by_style.get(links[key], key)
            levels = dict(abstract.get(key, {}))
            starts: dict[int, int] = {}
            for change in element.findall(W + "lvlOverride"):
                depth = _int(change.get(W + "ilvl"), 0)
                if (own := change.find(W + "lvl")) is not None:
                    levels[depth] = _level(own)[1]
                if (start := value(change.find(W + "startOverride"))) is not None and 0 <= depth < _LEVELS:
                    starts[depth] = _int(start, 1)
                    levels[depth] = replace(levels.get(depth, Level()), start=starts[depth])
            self._lists[number] = levels
            self._abstract[number] = key
            self._starts[number] = starts


def _level(element: Any) -> tuple[int, Level]:
    legal = element.find(W + "isLgl")
    restart = value(element.find(W + "lvlRestart"))
    form = value(element.find(W + "numFmt"))
    if form is None and (nested := next(element.iter(W + "numFmt"), None)) is not None:
        form = value(nested)  # a newer form stands behind mc:AlternateContent
    level = Level(
        form=form or "decimal",
        text=value(element.find(W + "lvlText")) or "",
        start=_int(value(element.find(W + "start")), 0 if element.find(W + "start") is None else 1),
        restart=None if restart is None else _int(restart, 0),
        style=value(element.find(W + "pStyle")),
        decimal_only=legal is not None and is_true(value(legal)),
    )
    return _int(element.get(W + "ilvl"), 0), level


def _int(text: str | None, default: int) -> int:
    return int(text) if text is not None and regex.fullmatch(r"-?\d{1,6}", text) else default
