"""The stories of a DOCX document (body, notes, comments, headers) → blocks in reading order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ingest.parse.docx_chunk import chunk_blocks
from ingest.parse.docx_numbering import Numbering
from ingest.parse.docx_styles import BODY_LEVEL, Look, Styles, W, value
from ingest.parse.docx_tables import children, is_layout, table_rows
from ingest.parse.docx_text import DELETED, Reading, TextReader, is_mark_deleted
from ingest.parse.drawing import drawn_blocks
from ingest.parse.grid import table_blocks
from ingest.parse.model import Block, BlockKind, Fragment, ParseOptions
from ingest.parse.ooxml import MC, OfficePackage, chosen, local

_MAX_HEADING_CHARS = 300
_THROUGH = frozenset(W + n for n in ("sdtContent", "ins", "moveTo", "customXml", "smartTag"))
_CONTENTS_GALLERY = "Table of Contents"
_SEPARATORS = ("separator", "continuationSeparator", "continuationNotice")


class Body:
    """Reads the parts of one document; counts paragraphs and tables through all of them."""

    def __init__(
        self,
        package: OfficePackage,
        part: str,
        styles: Styles,
        numbering: Numbering,
        reader: TextReader,
        options: ParseOptions,
    ) -> None:
        self._package = package
        self._part = part
        self._styles = styles
        self._numbering = numbering
        self._reader = reader
        self._options = options
        self._notes = {
            "footnote": _notes(package, part, "footnote"),
            "endnote": _notes(package, part, "endnote"),
        }
        self._number = 0
        self._tables = 0
        self._carried = ""
        self.contents: list[Block] = []
        self.looks: dict[int, tuple[bool, int | None]] = {}

    def blocks(self, parent: Any) -> Iterator[Block]:
        """Blocks of a body, cell, box or note in document order."""
        for child in parent:
            tag = child.tag
            if tag == W + "p":
                yield from self._paragraph(child)
            elif tag == W + "tbl":
                yield from self._table(child)
            elif tag == W + "sdt":
                yield from self._control(child)
            elif tag in _THROUGH:
                yield from self.blocks(child)
            elif tag == MC + "AlternateContent":
                yield from self.blocks(chosen(child))
            elif tag == W + "altChunk":
                yield from self._chunk(child)

    def left_over_notes(self) -> Iterator[Block]:
        """Notes that no paragraph referred to."""
        for notes in self._notes.values():
            for note in notes.values():
                yield from self.blocks(note)
            notes.clear()

    def story(self, root: Any, part: str) -> list[Block]:
        """Blocks of a part with links of its own (comments, headers)."""
        before, self._part = self._part, part
        try:
            return list(self.blocks(root))
        finally:
            self._part = before

    def _chunk(self, chunk: Any) -> Iterator[Block]:
        number, first = self._place(), self._tables
        for block in chunk_blocks(self._package, self._part, chunk, self._options):
            table = None if block.table is None else first + block.table
            self._tables = max(self._tables, table or 0)
            fragments = tuple(replace(f, start=None, line=None, page=None, box=None) for f in block.fragments)
            yield replace(block, fragments=fragments, paragraph=number, table=table, member=None)

    def _control(self, control: Any) -> Iterator[Block]:
        gallery = value(control.find(f"{W}sdtPr/{W}docPartObj/{W}docPartGallery"))
        inner = [c for c in control if c.tag == W + "sdtContent"]
        for content in inner:
            if gallery == _CONTENTS_GALLERY:
                self.contents.extend(self.blocks(content))
            else:
                yield from self.blocks(content)

    def _paragraph(self, paragraph: Any) -> Iterator[Block]:
        number = self._number
        self._number += 1
        properties = paragraph.find(W + "pPr")
        look = self._styles.paragraph(properties)
        reading = self._reader.read(paragraph, look)
        if is_mark_deleted(properties):
            self._carried += reading.text
        else:
            block = self._block(reading, properties, look, number)
            if block is not None and look.contents:
                self.contents.append(block)
            elif block is not None:
                self.looks[number] = (reading.bold, reading.size)
                yield block
        yield from self._attached(reading, number)

    def _attached(self, reading: Reading, number: int) -> Iterator[Block]:
        """What hangs on a paragraph follows it: boxes, charts, then notes."""
        for box in reading.boxes:
            yield from self.blocks(box)
        for drawn in reading.drawn:
            self._tables += 1
            for block in drawn_blocks(self._package, self._part, drawn, self._tables, None):
                yield replace(block, paragraph=number)
        for kind, note_id in reading.notes:
            note = self._notes[kind].pop(note_id, None)
            if note is not None:
                yield from self.blocks(note)

    def _block(self, reading: Reading, properties: Any | None, look: Look, number: int) -> Block | None:
        label, depth = self._label(properties, look)
        text = self._carried + reading.text
        self._carried = ""
        if not text.strip():
            return None
        fragments = (Fragment(label, ""), Fragment(text, " ")) if label else (Fragment(text, ""),)
        if look.level is not None and look.level <= BODY_LEVEL and len(text) <= _MAX_HEADING_CHARS:
            return Block(BlockKind.HEADING, fragments, level=look.level, paragraph=number)
        if depth is not None:
            return Block(BlockKind.LIST_ITEM, fragments, level=depth, paragraph=number)
        return Block(BlockKind.PARAGRAPH, fragments, paragraph=number)

    def _label(self, properties: Any | None, look: Look) -> tuple[str, int | None]:
        """The label of a numbered paragraph and its depth; None for one that is not in a list."""
        if look.number in (None, "0", ""):
            return "", None
        assert look.number is not None
        depth = look.depth
        if depth is None:
            style = value(None if properties is None else properties.find(W + "pStyle")) or ""
            depth = self._numbering.level_of_style(look.number, style) or 0
        return self._numbering.label(look.number, depth) or "", depth

    def _table(self, table: Any) -> Iterator[Block]:
        if is_layout(table):
            for row in children(table, "tr"):
                for cell in children(row, "tc"):
                    yield from self.blocks(cell)
            return
        self._tables += 1
        number = self._tables
        after: list[Block] = []
        rows = table_rows(table, lambda cell: self._cell_text(cell, after), self._place)
        yield from table_blocks(rows, number)
        yield from after

    def _place(self) -> int:
        self._number += 1
        return self._number - 1

    def _cell_text(self, cell: Any, after: list[Block]) -> str:
        """The text of a cell on one line; notes and charts in it follow the table."""
        parts: list[str] = []
        for child in cell:
            if child.tag == W + "tbl":
                rows = table_rows(child, lambda inner: self._cell_text(inner, after), lambda: self._number)
                parts.append("; ".join(", ".join(c.text for c in r.cells if c.text.strip()) for r in rows))
            elif child.tag == W + "p":
                parts.append(self._cell_paragraph(child, after))
            elif child.tag not in DELETED and local(child) not in ("tcPr", "sdtPr"):
                inner = chosen(child) if child.tag == MC + "AlternateContent" else child
                parts.append(self._cell_text(inner, after))
        return " ".join(p for p in parts if p)

    def _cell_paragraph(self, paragraph: Any, after: list[Block]) -> str:
        properties = paragraph.find(W + "pPr")
        look = self._styles.paragraph(properties)
        reading = self._reader.read(paragraph, look)
        if is_mark_deleted(properties):
            self._carried += reading.text
            return ""
        label, _ = self._label(properties, look)
        text = " ".join((self._carried + reading.text).split())
        self._carried = ""
        boxes, reading.boxes = reading.boxes, []
        inside = " ".join(self._cell_text(box, after) for box in boxes)
        after.extend(self._attached(reading, self._number))
        return " ".join(p for p in (label if text else "", text, inside) if p)


def _notes(package: OfficePackage, part: str, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in package.related(part, f"{kind}s") or [f"word/{kind}s.xml"]:
        root = package.optional(name)
        for note in () if root is None else root.iter(W + kind):
            if note.get(W + "type") not in _SEPARATORS:
                found[note.get(W + "id") or ""] = note
    return found
