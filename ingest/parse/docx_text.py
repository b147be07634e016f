"""The text of a DOCX paragraph, and what hangs on it: text boxes, notes, comments, pictures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ingest.parse.docx_styles import Look, Styles, W, is_shade, value
from ingest.parse.drawing import is_drawn
from ingest.parse.formula import linear
from ingest.parse.ooxml import MC, A, OfficePackage, chosen, is_true, local
from ingest.parse.symbols import symbol

_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_V = "{urn:schemas-microsoft-com:vml}"
_PIC = "{http://schemas.openxmlformats.org/drawingml/2006/picture}pic"
_OLE = "{urn:schemas-microsoft-com:office:office}OLEObject"
_BOX = W + "txbxContent"
MAX_OPEN_COMMENTS = 50
"""Comments over the same words; more are read without the words they are about."""
MAX_QUOTED_RUNS = 200
DELETED = frozenset({W + "del", W + "moveFrom"})
_SILENT_NAMES = (
    "del moveFrom delText instrText delInstrText pPr rPr sdtPr sdtEndPr rt rubyPr fldData softHyphen "
    "smartTagPr customXmlPr tabs annotationRef footnoteRef endnoteRef separator continuationSeparator"
)
_SILENT = frozenset(W + name for name in _SILENT_NAMES.split())
_SIGNS = {
    "tab": " ",
    "ptab": " ",
    "br": " ",
    "cr": " ",
    "noBreakHyphen": "-",
    "dayShort": "",
    "pgNum": "",
}


@dataclass(slots=True)
class Reading:
    """One paragraph as read.

    Attributes:
        text: insertions taken, deletions and hidden runs left out.
        boxes: contents of text boxes anchored in it.
        notes: (`footnote` or `endnote`, id) referred to.
        drawn: references to charts and SmartArt.
        bold: every run with text is bold.
        size: of the first run with text, in half points.
    """

    parts: list[str] = field(default_factory=list)
    boxes: list[Any] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    drawn: list[Any] = field(default_factory=list)
    bold: bool = True
    size: int | None = None

    @property
    def text(self) -> str:
        """The parts together."""
        return "".join(self.parts)


class TextReader:
    """Reads paragraphs of one story (the body, a note); fields and comment ranges run across paragraphs."""

    def __init__(
        self, package: OfficePackage, styles: Styles, *, keep_hidden: bool, dark_paper: bool
    ) -> None:
        self._package = package
        self._findings = package.findings
        self._styles = styles
        self._keep_hidden = keep_hidden
        self._dark_paper = dark_paper
        self._fields: list[bool] = []  # per open field: whether its instruction is being read
        self._open_comments: set[str] = set()
        self.commented: dict[str, list[str]] = {}

    def read(self, paragraph: Any, look: Look) -> Reading:
        """Read one `w:p` whose look is known."""
        reading = Reading()
        self._walk(paragraph, reading, look)
        return reading

    def _walk(self, element: Any, reading: Reading, look: Look) -> None:
        for child in element:
            tag = child.tag
            if tag in _SILENT or not isinstance(tag, str):
                continue
            if tag == W + "r":
                self._run(child, reading, look)
            elif tag == W + "t":
                self._add(child.text or "", reading)
            elif tag in (_M + "oMath", _M + "oMathPara"):
                self._add(linear(child), reading)
            elif tag == MC + "AlternateContent":
                self._walk(_Branch(chosen(child)), reading, look)
            elif tag in (W + "drawing", W + "pict", W + "object"):
                self._drawing(child, reading)
            else:
                self._other(child, reading, look)

    def _run(self, run: Any, reading: Reading, look: Look) -> None:
        look = self._styles.run(run.find(W + "rPr"), look)
        if self._is_hidden(run, look):
            hidden = sum(len(t.text or "") for t in run.iter(W + "t"))
            if not self._fields or not any(self._fields):
                self._findings.count("hidden_text_kept" if self._keep_hidden else "hidden_text", hidden)
            if not self._keep_hidden:
                self._only_marks(run)
                return
        before = len(reading.parts)
        self._walk(run, reading, look)
        if any(p.strip() for p in reading.parts[before:]):
            reading.bold = reading.bold and bool(look.bold)
            reading.size = look.size if reading.size is None else reading.size

    def _only_marks(self, run: Any) -> None:
        """A hidden run may still begin or end a field."""
        for mark in run.iter(W + "fldChar"):
            self._field(mark)

    def _other(self, child: Any, reading: Reading, look: Look) -> None:
        name = local(child)
        if name in _SIGNS and child.tag.startswith(W):
            self._add(_SIGNS[name], reading)
        elif name == "fldChar":
            self._field(child, reading)
        elif name == "sym":
            sign = symbol(child.get(W + "font") or "", child.get(W + "char") or "")
            self._findings.count("symbols_unknown", sign is None)
            self._add(sign or "", reading)
        elif name in ("footnoteReference", "endnoteReference"):
            reading.notes.append((name.removesuffix("Reference"), child.get(W + "id") or ""))
        elif name == "commentRangeStart":
            if len(self._open_comments) < MAX_OPEN_COMMENTS:
                self._open_comments.add(child.get(W + "id") or "")
        elif name == "commentRangeEnd":
            self._open_comments.discard(child.get(W + "id") or "")
        else:
            self._walk(child, reading, look)

    def _field(self, mark: Any, reading: Reading | None = None) -> None:
        kind = mark.get(W + "fldCharType")
        if kind == "begin":
            self._fields.append(True)
            box = mark.find(f"{W}ffData/{W}checkBox")
            if box is not None and reading is not None:
                state = box.find(W + "checked")
                state = box.find(W + "default") if state is None else state
                reading.parts.append("☒" if state is not None and is_true(value(state)) else "☐")
        elif kind == "separate" and self._fields:
            self._fields[-1] = False
        elif kind == "end" and self._fields:
            self._fields.pop()

    def _add(self, text: str, reading: Reading) -> None:
        if not text or any(self._fields):
            return
        reading.parts.append(text)
        for comment in self._open_comments:
            said = self.commented.setdefault(comment, [])
            if len(said) < MAX_QUOTED_RUNS:
                said.append(text)

    def _drawing(self, element: Any, reading: Reading) -> None:
        """Boxes, charts and drawn words of a drawing; its pictures are counted."""
        if any(True for _ in element.iter(_OLE)):
            self._findings.count("embedded_objects")
            return
        stack = [element]
        while stack:
            at = stack.pop()
            if at.tag == MC + "AlternateContent":
                stack.extend(reversed(chosen(at)))
            elif at.tag == _BOX:
                reading.boxes.append(at)
            elif at.tag in (_PIC, _V + "imagedata"):
                self._findings.count("images_not_read")
            elif is_drawn(at):
                reading.drawn.append(at)
            elif at.tag == A + "t" or (at.tag == _V + "textpath" and at.get("string")):
                self._add(f" {at.text or at.get('string')} ", reading)
            else:
                stack.extend(reversed(at))

    def _is_hidden(self, run: Any, look: Look) -> bool:
        if look.hidden or look.tiny:
            return True
        return bool(look.white) and not look.shaded and not self._dark_paper and not self._on_shade(run)

    def _on_shade(self, run: Any) -> bool:
        """Whether something around the run may have a colour of its own: a cell, a table, a shape."""
        for around in run.iterancestors(W + "tc", W + "tbl", _BOX):
            if around.tag == _BOX:
                return True
            properties = around.find(f"{around.tag}Pr")
            if properties is None:
                continue
            if any(is_shade(s) for s in properties.findall(W + "shd")):
                return True
            if around.tag == W + "tbl" and self._styles.shades_table(value(properties.find(W + "tblStyle"))):
                return True
        return False


class _Branch(list[Any]):
    """The chosen children of an `mc:AlternateContent`, walked like an element."""


def is_mark_deleted(properties: Any | None) -> bool:
    """Whether the end of a paragraph is deleted, so that it runs on into the next one."""
    marks = None if properties is None else properties.find(W + "rPr")
    return marks is not None and any(mark.tag in DELETED for mark in marks)
