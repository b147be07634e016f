"""What the OpenDocument formats share: package, styles, numbering, properties (OASIS OpenDocument 1.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import regex

from core.errors import DocumentRejected
from ingest.parse.findings import Findings
from ingest.parse.model import Limits
from ingest.parse.number_words import spelled
from ingest.parse.ooxml import iso_date, local
from ingest.parse.zip_package import MemberDamaged, ZipPackage

_ODF = "{urn:oasis:names:tc:opendocument:xmlns:"
OFFICE, TEXT, TABLE, STYLE, DRAW = (
    f"{_ODF}{n}:1.0}}" for n in ("office", "text", "table", "style", "drawing")
)
FO = f"{_ODF}xsl-fo-compatible:1.0}}"
META = f"{_ODF}meta:1.0}}"
XLINK = "{http://www.w3.org/1999/xlink}"
_SIZE = regex.compile(r"(\d*\.?\d+)(pt|mm|cm|in|px)")
_POINTS = {"pt": 1.0, "mm": 2.8346, "cm": 28.346, "in": 72.0, "px": 0.75}
_MAX_STYLE_DEPTH = 32
# Formats that ODF writes as samples of themselves.
_FORMS = {
    "1": "decimal",
    "a": "lowerLetter",
    "A": "upperLetter",
    "i": "lowerRoman",
    "I": "upperRoman",
    "①, ②, ③, ...": "decimalEnclosedCircle",
    "一, 二, 三, ...": "chineseCounting",
    "壹, 贰, 叁, ...": "chineseLegalSimplified",
    "壹, 貳, 參, ...": "ideographLegalTraditional",
    "甲, 乙, 丙, ...": "ideographTraditional",
    "子, 丑, 寅, ...": "ideographZodiac",
    "１, ２, ３, ...": "decimalFullWidth",
}


class OdfPackage(ZipPackage):
    """An OpenDocument package. A damaged part is noted in `findings`."""

    def __init__(self, content: bytes, limits: Limits, kind: str) -> None:
        super().__init__(content, limits, kind)
        self.findings = Findings()
        manifest = self.optional("META-INF/manifest.xml")
        if manifest is not None and any(local(e) == "encryption-data" for e in manifest.iter()):
            raise DocumentRejected("encrypted", f"The {kind} is encrypted; upload it without a password.")

    def optional(self, name: str) -> Any | None:
        """Root of a part; None when it is missing, or damaged (which is noted)."""
        try:
            return self.xml(name, allow_doctype=True)
        except MemberDamaged:
            self.findings.damaged(name)
            return None

    def required(self, name: str) -> Any:
        """Root of a part that must be there.

        Raises:
            DocumentRejected: `corrupt`.
        """
        root = self.xml(name, allow_doctype=True)
        if root is None:
            raise DocumentRejected("corrupt", f"The {self.kind} holds no document part.")
        return root

    def properties(self) -> tuple[str, dict[str, str]]:
        """Title and properties of `meta.xml`, as `ParsedDocument` names them."""
        root = self.optional("meta.xml")
        found: dict[str, str] = {}
        title = ""
        for element in () if root is None else root.iter():
            text = " ".join((element.text or "").split()) if isinstance(element.tag, str) else ""
            word = local(element)
            if not text:
                continue
            if word == "title":
                title = text
            elif word in ("description", "language"):
                found[word] = text
            elif word == "initial-creator" or (word == "creator" and "author" not in found):
                found["author"] = text
            elif word in ("creation-date", "date") and (date := iso_date(text)):
                found["created" if word == "creation-date" else "modified"] = date
        return title, found


@dataclass(frozen=True, slots=True)
class Look:
    """Formatting that bears on reading; None = not said here."""

    hidden: bool | None = None
    white: bool | None = None
    tiny: bool | None = None
    shaded: bool | None = None
    level: int | None = None
    list_style: str | None = None


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a list style: an empty form means a bullet, or no mark."""

    form: str = ""
    prefix: str = ""
    suffix: str = ""
    start: int = 1
    shown_levels: int = 1


class OdfStyles:
    """Styles of a text document: of the document itself and those it names."""

    def __init__(self, *roots: Any | None) -> None:
        self._own: dict[tuple[str, str], Look] = {}
        self._parents: dict[tuple[str, str], str] = {}
        self._lists: dict[str, dict[int, Level]] = {}
        self.outline: dict[int, Level] = {}
        for root in roots:
            for element in () if root is None else root.iter(STYLE + "style"):
                key = (element.get(STYLE + "family") or "", element.get(STYLE + "name") or "")
                self._own[key] = _look(element)
                self._parents[key] = element.get(STYLE + "parent-style-name") or ""
            for element in () if root is None else root.iter(TEXT + "list-style"):
                self._lists[element.get(STYLE + "name") or ""] = _levels(element)
            for element in () if root is None else root.iter(TEXT + "outline-style"):
                self.outline = _levels(element)

    def look(self, family: str, name: str | None) -> Look:
        """The look of a style with all that it inherits."""
        look = Look()
        for _ in range(_MAX_STYLE_DEPTH):
            own = self._own.get((family, name or ""))
            if own is None:
                break
            look = over(look, own)
            name = self._parents[(family, name or "")]
        return look

    def is_title(self, name: str | None) -> bool:
        """Whether a paragraph style is the document's title."""
        for _ in range(_MAX_STYLE_DEPTH):
            if name == "Title":
                return True
            name = self._parents.get(("paragraph", name or ""))
            if not name:
                break
        return False

    def levels(self, name: str) -> dict[int, Level]:
        """Levels of a list style, from 1."""
        return self._lists.get(name, {})


def over(look: Look, below: Look) -> Look:
    """`look` where it says something, else `below`."""
    names = ("hidden", "white", "tiny", "shaded", "level", "list_style")
    missing = {n: getattr(below, n) for n in names if getattr(look, n) is None}
    return replace(look, **missing)


def number_label(levels: dict[int, Level], counts: list[int]) -> str:
    """The label at the depth `len(counts)`, e.g. `1.2.` for the counts 1 and 2."""
    depth = len(counts)
    level = levels.get(depth)
    if level is None or not level.form:
        return ""
    shown = [
        (levels[d], counts[d - 1])
        for d in range(max(1, depth - level.shown_levels + 1), depth + 1)
        if d in levels and levels[d].form
    ]
    numbers = ".".join(spelled(count, at.form) for at, count in shown)
    return f"{level.prefix}{numbers}{level.suffix}".strip()


def _levels(style: Any) -> dict[int, Level]:
    found: dict[int, Level] = {}
    for element in style:
        depth = element.get(TEXT + "level") or "1"
        if not depth.isdigit() or len(depth) > 2:
            continue
        form = element.get(STYLE + "num-format") or ""
        numbered = local(element) in ("list-level-style-number", "outline-level-style")
        found[int(depth)] = Level(
            form=(_FORMS.get(form, "decimal") if form else "") if numbered else "",
            prefix=element.get(STYLE + "num-prefix") or "",
            suffix=element.get(STYLE + "num-suffix") or "",
            start=small(element.get(TEXT + "start-value"), 1),
            shown_levels=small(element.get(TEXT + "display-levels"), 1),
        )
    return found


def small(text: str | None, default: int) -> int:
    """A small count that an attribute holds."""
    return int(text) if text and text.isdigit() and len(text) < 8 else default


def _look(style: Any) -> Look:
    text = style.find(STYLE + "text-properties")
    paragraph = style.find(STYLE + "paragraph-properties")
    section = style.find(STYLE + "section-properties")
    shades = [e.get(FO + "background-color") for e in (text, paragraph) if e is not None]
    shaded = None
    if any(s is not None for s in shades):
        shaded = any(s not in (None, "transparent", "#ffffff") for s in shades)
    hidden = [e.get(TEXT + "display") for e in (text, section) if e is not None]
    colour = None if text is None else text.get(FO + "color")
    size = None if text is None else text.get(FO + "font-size")
    level = style.get(STYLE + "default-outline-level") or ""
    return Look(
        hidden="none" in hidden if any(hidden) else None,
        white=None if colour is None else colour.lower() == "#ffffff",
        tiny=None if size is None else _points(size) <= 1.0,
        shaded=shaded,
        level=int(level) if level.isdigit() and len(level) == 1 else None,
        list_style=style.get(STYLE + "list-style-name"),
    )


def _points(size: str) -> float:
    match = _SIZE.fullmatch(size.strip())
    return float(match.group(1)) * _POINTS[match.group(2)] if match else 12.0
