"""DOCX styles: what a paragraph or a run looks like, following `basedOn`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import regex

from ingest.parse.ooxml import is_true

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING = regex.compile(r"(?:heading|标题|überschrift|titre|título)\s*(\d)", regex.IGNORECASE)
_CONTENTS = regex.compile(r"(?:toc|目录|table of figures)\s*\d*", regex.IGNORECASE)
_WHITE = "FFFFFF"
_MAX_DEPTH = 64  # styles based on each other
_TINY_HALF_POINTS = 2  # 1 pt: nobody reads it
_RUN_TAGS = frozenset(W + n for n in ("rStyle", "vanish", "color", "sz", "highlight", "shd", "b"))
BODY_LEVEL = 9
"""The outline level that means body text."""


@dataclass(frozen=True, slots=True)
class Look:
    """Formatting that bears on reading; None = not said here.

    Attributes:
        level: heading level from 1, 0 for the document's title, `BODY_LEVEL + 1` for said to be body text.
        number: id of the numbering instance; "0" takes numbering away.
        depth: numbering level from 0.
        hidden: `w:vanish`.
        white, tiny: the colour of paper; 1 pt or less.
        shaded: a background of its own, so that white may be seen.
        contents: a line of the table of contents.
        bold, size: in half points.
    """

    level: int | None = None
    number: str | None = None
    depth: int | None = None
    hidden: bool | None = None
    white: bool | None = None
    tiny: bool | None = None
    shaded: bool | None = None
    contents: bool | None = None
    bold: bool | None = None
    size: int | None = None

    def over(self, below: Look) -> Look:
        """This look where it says something, `below` where it does not."""
        if self is PLAIN:
            return below
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return Look(**{k: getattr(below, k) if v is None else v for k, v in values.items()})


PLAIN = Look()


class Styles:
    """The style part; empty without one."""

    def __init__(self, root: Any | None) -> None:
        self._own: dict[str, Look] = {}
        self._parents: dict[str, str] = {}
        self._looks: dict[str, Look] = {}
        self._run_looks: dict[tuple[Look, tuple[Any, ...]], Look] = {}
        self._shaded_tables: set[str] = set()
        self.default = PLAIN
        for style in () if root is None else root.iter(W + "style"):
            style_id = style.get(W + "styleId") or ""
            self._own[style_id] = _style_look(style)
            self._parents[style_id] = value(style.find(W + "basedOn")) or ""
            if style.get(W + "type") == "table" and any(is_shade(s) for s in style.iter(W + "shd")):
                self._shaded_tables.add(style_id)
            if style.get(W + "type") == "paragraph" and style.get(W + "default") in ("1", "true", "on"):
                self.default = self._own[style_id]

    def look(self, style_id: str | None) -> Look:
        """The look of a style with all that it inherits; an unknown one looks plain."""
        if not style_id:
            return PLAIN
        if style_id not in self._looks:
            chain: list[Look] = []
            seen: set[str] = set()
            at = style_id
            while at and at in self._own and at not in seen and len(seen) < _MAX_DEPTH:
                seen.add(at)
                chain.append(self._own[at])
                at = self._parents[at]
            look = PLAIN
            for own in reversed(chain):
                look = own.over(look)
            self._looks[style_id] = look
        return self._looks[style_id]

    def paragraph(self, properties: Any | None) -> Look:
        """The look of a paragraph: its own properties over its style."""
        if properties is None:
            return self.default
        style = value(properties.find(W + "pStyle"))
        return _paragraph_look(properties).over(self.look(style) if style else self.default)

    def run(self, properties: Any | None, paragraph: Look) -> Look:
        """The look of a run inside a paragraph."""
        if properties is None:
            return paragraph
        key = (paragraph, tuple((c.tag, *c.values()) for c in properties if c.tag in _RUN_TAGS))
        look = self._run_looks.get(key)
        if look is None:
            style = value(properties.find(W + "rStyle"))
            look = run_look(properties).over(self.look(style).over(paragraph))
            self._run_looks[key] = look
        return look

    def shades_table(self, style_id: str | None) -> bool:
        """Whether a table style colours cells, itself or by what it is based on."""
        seen: set[str] = set()
        while style_id and style_id not in seen and len(seen) < _MAX_DEPTH:
            if style_id in self._shaded_tables:
                return True
            seen.add(style_id)
            style_id = self._parents.get(style_id)
        return False


def value(element: Any | None) -> str | None:
    """The `w:val` attribute; None without the element."""
    return None if element is None else element.get(W + "val")


def is_shade(element: Any | None) -> bool:
    """Whether a `w:shd` gives a background other than paper."""
    if element is None:
        return False
    fill = (element.get(W + "fill") or "auto").upper()
    solid = element.get(W + "val") == "solid"
    return solid or fill not in ("AUTO", _WHITE) or element.get(W + "themeFill") is not None


def run_look(properties: Any) -> Look:
    """What a `w:rPr` says."""
    colour = properties.find(W + "color")
    size = value(properties.find(W + "sz")) or ""
    highlight = value(properties.find(W + "highlight"))
    shade = properties.find(W + "shd")
    shaded = None
    if highlight is not None or shade is not None:
        shaded = is_shade(shade) or highlight not in (None, "none", "white")
    half_points = int(size) if size.isdigit() else None
    return Look(
        hidden=_toggle(properties, "vanish"),
        white=None if colour is None else (value(colour) or "").upper() == _WHITE,
        tiny=None if half_points is None else half_points <= _TINY_HALF_POINTS,
        shaded=shaded,
        bold=_toggle(properties, "b"),
        size=half_points,
    )


def _toggle(properties: Any, name: str) -> bool | None:
    element = properties.find(W + name)
    return None if element is None else is_true(value(element))


def _paragraph_look(properties: Any) -> Look:
    outline = value(properties.find(W + "outlineLvl")) or ""
    numbering = properties.find(W + "numPr")
    number = depth = None
    if numbering is not None:
        number = value(numbering.find(W + "numId"))
        level = value(numbering.find(W + "ilvl")) or ""
        depth = int(level) if level.isdigit() else None
    shade = properties.find(W + "shd")
    return Look(
        level=int(outline) + 1 if outline.isdigit() else None,
        number=number,
        depth=depth,
        shaded=None if shade is None else is_shade(shade),
    )


def _style_look(style: Any) -> Look:
    name = (value(style.find(W + "name")) or "").strip()
    paragraph = style.find(W + "pPr")
    run = style.find(W + "rPr")
    look = PLAIN if run is None else run_look(run)
    if paragraph is not None:
        look = _paragraph_look(paragraph).over(look)
    if found := _HEADING.fullmatch(name):
        look = Look(level=int(found.group(1))).over(look)
    elif name.lower() in ("title", "标题"):
        look = Look(level=0).over(look)
    elif _CONTENTS.fullmatch(name):
        look = Look(level=BODY_LEVEL + 1, contents=True).over(look)
    return look
