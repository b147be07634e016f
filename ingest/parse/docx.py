"""DOCX, read from its XML: tracked insertions count, tracked deletions do not.

The archive is inflated under caps, and the XML parser takes no document type, so neither a bomb of members
nor one of entities gets far.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import regex

from core.errors import DocumentRejected
from ingest.parse.model import Block, BlockKind, Fragment, Limits, ParsedDocument, ParseOptions, ParseWarning
from ingest.parse.sniff import DOCX
from ingest.parse.within import check_length
from ingest.parse.zip_package import ZipPackage

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_STRICT_W = b"http://purl.oclc.org/ooxml/wordprocessingml/main"
_HEADING = regex.compile(r"(?:heading|标题|überschrift|titre|título)\s*(\d)", regex.IGNORECASE)
_DELETED = frozenset({_W + "del", _W + "moveFrom", _W + "delText", _W + "delInstrText", _W + "instrText"})
_REVISIONS = frozenset({_W + "ins", _W + "del", _W + "moveFrom", _W + "moveTo"})


def parse_docx(content: bytes, options: ParseOptions, media_type: str = DOCX) -> ParsedDocument:
    """Read a DOCX document: body, tables, foot- and endnotes; headers and footers are page furniture.

    Raises:
        DocumentRejected: `corrupt`, or `too_big` when it inflates past a cap.
    """
    package = _Package(content, options.limits)
    body = package.xml(package.main_part)
    if body is None:
        raise DocumentRejected("corrupt", "The DOCX file holds no document part.")
    styles = _heading_levels(package.xml("word/styles.xml"))
    walk = _Walk(styles)
    blocks = list(walk.blocks(next(iter(body.iter(_W + "body")), body)))
    for part, label in (("word/footnotes.xml", "footnote"), ("word/endnotes.xml", "endnote")):
        notes = package.xml(part)
        if notes is not None:
            blocks.extend(_notes(walk, notes, label))
    check_length(sum(len(b.text) for b in blocks), options.limits)
    revised = any(element.tag in _REVISIONS for element in body.iter())
    warnings = (
        (ParseWarning("has_revisions", "Tracked changes: insertions were taken, deletions were left out."),)
        if revised
        else ()
    )
    return ParsedDocument(media_type, tuple(blocks), title=_title(package), warnings=warnings)


class _Package(ZipPackage):
    """A DOCX package; strict OOXML reads like the transitional one."""

    def __init__(self, content: bytes, limits: Limits) -> None:
        super().__init__(content, limits, "DOCX file")

    @property
    def main_part(self) -> str:
        """Name of the document part (Word numbers it when it is not the plain one)."""
        if "word/document.xml" in self:
            return "word/document.xml"
        return next((n for n in self.names if n.startswith("word/document") and n.endswith(".xml")), "")

    def parse(self, content: bytes, name: str, *, allow_doctype: bool = False) -> Any:
        """Parse a part whose namespaces may be the strict ones."""
        return super().parse(content.replace(_STRICT_W, _W[1:-1].encode()), name, allow_doctype=allow_doctype)


def _heading_levels(styles: Any | None) -> dict[str, int]:
    """Style id → heading level, following `basedOn`; level 0 is the document's title, above every section."""
    if styles is None:
        return {}
    levels: dict[str, int] = {}
    parents: dict[str, str] = {}
    for style in styles.iter(_W + "style"):
        style_id = style.get(_W + "styleId") or ""
        name = _value(style.find(_W + "name")) or ""
        parents[style_id] = _value(style.find(_W + "basedOn")) or ""
        outline = _value(style.find(f"{_W}pPr/{_W}outlineLvl"))
        found = _HEADING.fullmatch(name.strip())
        if found:
            levels[style_id] = int(found.group(1))
        elif name.strip().lower() in ("title", "标题"):
            levels[style_id] = 0
        elif outline is not None and outline.isdigit() and int(outline) < 9:
            levels[style_id] = int(outline) + 1
    for style_id in parents:
        seen: set[str] = set()
        at = style_id
        while at and at not in levels and at not in seen:
            seen.add(at)
            at = parents.get(at, "")
        if at in levels:
            levels.setdefault(style_id, levels[at])
    return levels


def _value(element: Any | None) -> str | None:
    return None if element is None else element.get(_W + "val")


class _Walk:
    def __init__(self, heading_levels: dict[str, int]) -> None:
        self._levels = heading_levels
        self._number = 0
        self._tables = 0

    def blocks(self, parent: Any) -> Iterator[Block]:
        """Blocks of a body, cell or note in document order."""
        for child in parent:
            tag = child.tag
            if tag == _W + "p":
                block = self._paragraph(child)
                if block is not None:
                    yield block
                for box in _text_boxes(child):
                    yield from self.blocks(box)
            elif tag == _W + "tbl":
                yield from self._table(child)
            elif tag in (
                _W + "sdt",
                _W + "sdtContent",
                _W + "ins",
                _W + "moveTo",
                _W + "customXml",
                _W + "smartTag",
            ):
                yield from self.blocks(child)

    def _paragraph(self, paragraph: Any) -> Block | None:
        number = self._number
        self._number += 1
        text = paragraph_text(paragraph)
        if not text.strip():
            return None
        fragments = (Fragment(text, ""),)
        properties = paragraph.find(_W + "pPr")
        level = self._level(properties)
        if level is not None and len(text) <= 300:
            return Block(BlockKind.HEADING, fragments, level=level, paragraph=number)
        numbering = None if properties is None else properties.find(_W + "numPr")
        if numbering is not None:
            depth = _value(numbering.find(_W + "ilvl")) or "0"
            return Block(
                BlockKind.LIST_ITEM, fragments, level=int(depth) if depth.isdigit() else 0, paragraph=number
            )
        return Block(BlockKind.PARAGRAPH, fragments, paragraph=number)

    def _level(self, properties: Any | None) -> int | None:
        if properties is None:
            return None
        outline = _value(properties.find(_W + "outlineLvl"))
        if outline is not None and outline.isdigit():
            return int(outline) + 1 if int(outline) < 9 else None
        return self._levels.get(_value(properties.find(_W + "pStyle")) or "")

    def _table(self, table: Any) -> Iterator[Block]:
        self._tables += 1
        number = self._tables
        above: dict[int, str] = {}
        rows = [r for r in table.iter(_W + "tr") if _owner(r, _W + "tbl") is table and not _row_deleted(r)]
        for index, row in enumerate(rows):
            paragraph = self._number
            self._number += 1
            cells = _cells(row, above)
            if not any(cell.strip() for cell in cells):
                continue
            marked = row.find(f"{_W}trPr/{_W}tblHeader") is not None
            header = len(rows) > 1 and (
                marked or (index == 0 and all(c.strip() for c in cells) and len(cells) > 1)
            )
            yield Block(
                BlockKind.TABLE_ROW,
                tuple(Fragment(cell, " | ") for cell in cells),
                paragraph=paragraph,
                table=number,
                is_table_header=header,
            )


def _cells(row: Any, above: dict[int, str]) -> list[str]:
    """Texts of a row's logical cells; a vertically merged cell repeats the text it continues."""
    cells: list[str] = []
    column = 0
    for cell in row.iter(_W + "tc"):
        if _owner(cell, _W + "tr") is not row:
            continue  # a nested table's cell is part of the text of its outer cell
        properties = cell.find(_W + "tcPr")
        span = _value(None if properties is None else properties.find(_W + "gridSpan")) or "1"
        merge = None if properties is None else properties.find(_W + "vMerge")
        text = " ".join(t for t in (paragraph_text(p).strip() for p in cell.iter(_W + "p")) if t)
        if merge is not None and _value(merge) != "restart":
            text = above.get(column, text)
        above[column] = text
        cells.append(text)
        column += int(span) if span.isdigit() else 1
    return cells


def _owner(element: Any, tag: str) -> Any | None:
    parent = element.getparent()
    while parent is not None and parent.tag != tag:
        parent = parent.getparent()
    return parent


def _row_deleted(row: Any) -> bool:
    return row.find(f"{_W}trPr/{_W}del") is not None


def paragraph_text(paragraph: Any) -> str:
    """Text of one paragraph as it reads with all insertions taken and all deletions left out."""
    parts: list[str] = []
    _collect(paragraph, parts)
    return "".join(parts)


def _collect(element: Any, parts: list[str]) -> None:
    for child in element:
        tag = child.tag
        if tag in _DELETED or tag == _W + "txbxContent" or tag == _MC + "Fallback":
            continue
        if tag == _W + "t" or tag == _M + "t":
            parts.append(child.text or "")
        elif tag in (_W + "tab", _W + "ptab"):
            if element.tag != _W + "tabs":  # a tab stop's definition is no tab
                parts.append(" ")
        elif tag in (_W + "br", _W + "cr"):
            parts.append(" ")
        elif tag == _W + "noBreakHyphen":
            parts.append("-")
        elif tag == _W + "r" and child.find(f"{_W}rPr/{_W}vanish") is not None:
            continue  # hidden text
        elif isinstance(tag, str):
            _collect(child, parts)


def _text_boxes(paragraph: Any) -> Iterator[Any]:
    for box in paragraph.iter(_W + "txbxContent"):
        if not any(ancestor.tag == _MC + "Fallback" for ancestor in box.iterancestors()):
            yield box


def _notes(walk: _Walk, notes: Any, label: str) -> Iterator[Block]:
    for note in notes.iter(_W + label):
        if note.get(_W + "type") in ("separator", "continuationSeparator", "continuationNotice"):
            continue
        yield from walk.blocks(note)


def _title(package: _Package) -> str:
    core = package.xml("docProps/core.xml")
    if core is None:
        return ""
    return next((e.text or "" for e in core.iter("{http://purl.org/dc/elements/1.1/}title")), "")
