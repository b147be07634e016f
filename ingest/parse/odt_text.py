"""The text of an ODT paragraph, and what hangs on it: notes, annotations, frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ingest.parse.docx_text import MAX_OPEN_COMMENTS, MAX_QUOTED_RUNS
from ingest.parse.formula import linear
from ingest.parse.odf import DRAW, OFFICE, TABLE, TEXT, XLINK, Look, OdfPackage, OdfStyles, over, small
from ingest.parse.ooxml import local

_BLOCK_FRAMES = ("text-box",)
_SHAPES = (
    "custom-shape rect ellipse circle line connector polygon polyline path regular-polygon caption measure"
)
_SHAPE_NAMES = frozenset(_SHAPES.split())
_SILENT = frozenset({"ruby-text", "note-citation", "change", "change-start", "change-end", "bookmark"})


@dataclass(slots=True)
class Reading:
    """One paragraph as read; `boxes` are elements whose paragraphs follow it."""

    parts: list[str] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)
    boxes: list[Any] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The parts together."""
        return "".join(self.parts)


class TextReader:
    """Reads paragraphs; gathers annotations with the words they are about."""

    def __init__(self, package: OdfPackage, styles: OdfStyles, *, keep_hidden: bool) -> None:
        self._package = package
        self._findings = package.findings
        self._styles = styles
        self._keep_hidden = keep_hidden
        self._open: set[str] = set()
        self.commented: dict[str, list[str]] = {}
        self.annotations: list[Any] = []

    def read(self, paragraph: Any) -> Reading:
        """Read one `text:p` or `text:h`."""
        reading = Reading()
        look = self._styles.look("paragraph", paragraph.get(TEXT + "style-name"))
        self._walk(paragraph, reading, look)
        return reading

    def _walk(self, element: Any, reading: Reading, look: Look) -> None:
        self._add(element.text, reading, look, element)
        for child in element:
            self._child(child, reading, look)
            self._add(child.tail, reading, look, element)

    def _child(self, child: Any, reading: Reading, look: Look) -> None:
        name = local(child)
        if not name or name in _SILENT:
            return
        if child.tag.startswith(DRAW):
            self._drawing(child, reading, look)
        elif name == "span":
            style = self._styles.look("text", child.get(TEXT + "style-name"))
            self._walk(child, reading, over(style, look))
        elif name == "s":
            self._add(" " * min(small(child.get(TEXT + "c"), 1), 1000), reading, look, child)
        elif name in ("tab", "line-break"):
            self._add(" ", reading, look, child)
        elif name == "note":
            reading.notes.extend(b for b in child if local(b) == "note-body")
        elif child.tag == OFFICE + "annotation":
            self.annotations.append(child)
            if child.get(OFFICE + "name") and len(self._open) < MAX_OPEN_COMMENTS:
                self._open.add(child.get(OFFICE + "name"))
        elif child.tag == OFFICE + "annotation-end":
            self._open.discard(child.get(OFFICE + "name") or "")
        elif name in ("hidden-text", "hidden-paragraph") and child.get(TEXT + "is-hidden") != "false":
            self._hide("".join(child.itertext()) or child.get(TEXT + "string-value") or "", reading)
        elif name != "number":
            self._walk(child, reading, look)

    def _add(self, text: str | None, reading: Reading, look: Look, element: Any) -> None:
        if not text:
            return
        if self._is_hidden(look, element):
            self._hide(text, reading)
            return
        reading.parts.append(text)
        for name in self._open:
            said = self.commented.setdefault(name, [])
            if len(said) < MAX_QUOTED_RUNS:
                said.append(text)

    def _hide(self, text: str, reading: Reading) -> None:
        code = "hidden_text_kept" if self._keep_hidden else "hidden_text"
        self._findings.count(code, len(text.strip()))
        if self._keep_hidden:
            reading.parts.append(text)

    def _is_hidden(self, look: Look, element: Any) -> bool:
        if look.hidden or look.tiny:
            return True
        if not look.white or look.shaded:
            return False
        around = element.iterancestors(TABLE + "table-cell", DRAW + "text-box", DRAW + "custom-shape")
        return next(around, None) is None  # a cell or a shape may have a colour of its own

    def _drawing(self, element: Any, reading: Reading, look: Look) -> None:
        name = local(element)
        if name == "a":
            self._walk(element, reading, look)
        elif name == "g":
            for child in element:
                self._child(child, reading, look)
        elif name in _SHAPE_NAMES:
            reading.boxes.append(element)
        elif name == "frame":
            self._frame(element, reading, look)

    def _frame(self, frame: Any, reading: Reading, look: Look) -> None:
        """The first part of a frame that can be read stands for all of them."""
        parts = {local(p): p for p in frame if local(p)}
        if "text-box" in parts:
            reading.boxes.append(parts["text-box"])
        elif "object" in parts:
            self._object(parts["object"], reading, look)
        elif "table" in parts:
            reading.boxes.append(frame)
        elif "object-ole" in parts or "plugin" in parts:
            self._findings.count("embedded_objects")
        elif "image" in parts:
            self._findings.count("images_not_read")

    def _object(self, element: Any, reading: Reading, look: Look) -> None:
        """A formula is text, a chart is its table; any other object is counted."""
        root = next((c for c in element if local(c) == "math"), None)
        if root is None:
            folder = (element.get(XLINK + "href") or "").removeprefix("./").rstrip("/")
            root = self._package.optional(f"{folder}/content.xml") if folder else None
        if root is not None and local(root) == "math":
            self._add(f" {linear(root)} ", reading, look, element)
            return
        chart = None if root is None else next(root.iter(TABLE + "table"), None)
        is_chart = root is not None and next(root.iter(OFFICE + "chart"), None) is not None
        if is_chart and chart is not None:
            reading.boxes.append([chart])
        else:
            self._findings.count("embedded_objects")
