"""ODT: headings, lists, tables, frames and notes; tracked deletions dropped, annotations apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from core.types import Lang
from ingest.lang import language_of
from ingest.parse.findings import comment_line, comments_heading
from ingest.parse.formats import ODT
from ingest.parse.grid import table_blocks
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.odf import (
    DRAW,
    OFFICE,
    STYLE,
    TABLE,
    TEXT,
    XLINK,
    OdfPackage,
    OdfStyles,
    number_label,
    small,
)
from ingest.parse.odf_table import table_rows
from ingest.parse.odt_text import Reading, TextReader
from ingest.parse.office import finished
from ingest.parse.office_pictures import PictureReader
from ingest.parse.ooxml import local

_MAX_HEADING_CHARS = 300
_MAX_LEVEL = 10
_CONTENTS = ("table-of-content", "illustration-index", "table-index", "object-index", "alphabetical-index")
_CHANGES = ("insertion", "deletion", "format-change")


def parse_odt(content: bytes, options: ParseOptions, media_type: str = ODT) -> ParsedDocument:
    """Read an OpenDocument text.

    Raises:
        DocumentRejected: `corrupt`, `encrypted`, `refused`, or `too_big` when it inflates past a cap.
    """
    package = OdfPackage(content, options.limits, "ODT file")
    root = package.required("content.xml")
    named = package.optional("styles.xml")
    styles = OdfStyles(named, root)
    furniture = () if named is None else named.iter(STYLE + "header", STYLE + "footer")
    package.findings.count(
        "headers_footers_left_out", sum(bool("".join(f.itertext()).strip()) for f in furniture)
    )
    reader = TextReader(package, styles, keep_hidden=options.keep_hidden)
    body = _Body(package, styles, reader, keep_hidden=options.keep_hidden)
    text = next(root.iter(OFFICE + "text"), None)
    blocks = [] if text is None else list(body.blocks(text))
    blocks.extend(_annotations(reader, body, blocks))
    pictures = PictureReader(package, package.findings, options)
    if not blocks and text is not None:
        links = [(e.get(XLINK + "href") or "").removeprefix("./") for e in text.iter(DRAW + "image")]
        names = [name for name in dict.fromkeys(links) if name in package]
        blocks = pictures.blocks(names, 1, len(names))
    if any(local(e) in _CHANGES for c in root.iter(TEXT + "changed-region") for e in c):
        package.findings.count("has_revisions")
    return finished(package, media_type, blocks, options, pictures=pictures)


class _Body:
    def __init__(
        self, package: OdfPackage, styles: OdfStyles, reader: TextReader, *, keep_hidden: bool
    ) -> None:
        self._findings = package.findings
        self._styles = styles
        self._reader = reader
        self._keep_hidden = keep_hidden
        self._number = 0
        self._tables = 0
        self._outline: list[int] = []
        self._continued: dict[str, list[int]] = {}

    def blocks(self, parent: Any) -> Iterator[Block]:
        """Blocks under an element in document order."""
        for child in parent:
            name = local(child)
            if name == "h":
                yield from self._heading(child)
            elif name == "p":
                yield from self._paragraph(child)
            elif name == "list":
                yield from self._list(child, "", [])
            elif child.tag == TABLE + "table":
                yield from self._table(child)
            elif name == "section":
                yield from self._section(child)
            elif name in _CONTENTS:
                self._findings.count("contents_list_left_out", sum(1 for _ in child.iter(TEXT + "p")))
            elif name not in ("tracked-changes", "forms", "sequence-decls", "variable-decls", ""):
                yield from self.blocks(child)

    def _section(self, section: Any) -> Iterator[Block]:
        look = self._styles.look("section", section.get(TEXT + "style-name"))
        if section.get(TEXT + "display") == "none" or look.hidden:
            size = len("".join(section.itertext()).strip())
            self._findings.count("hidden_text_kept" if self._keep_hidden else "hidden_text", size)
            if not self._keep_hidden:
                return
        yield from self.blocks(section)

    def _place(self) -> int:
        self._number += 1
        return self._number - 1

    def _heading(self, element: Any, label: str = "") -> Iterator[Block]:
        number = self._place()
        reading = self._reader.read(element)
        level = min(max(small(element.get(TEXT + "outline-level"), 1), 1), _MAX_LEVEL)
        if reading.text.strip() and element.get(TEXT + "is-list-header") != "true" and not label:
            label = self._outline_label(element, level)
        if len(reading.text) > _MAX_HEADING_CHARS:
            yield from self._block(reading, BlockKind.PARAGRAPH, 0, number, label)
        else:
            yield from self._block(reading, BlockKind.HEADING, level, number, label)

    def _outline_label(self, element: Any, level: int) -> str:
        self._outline = self._counted(self._outline, level, element, self._styles.outline)
        written = _written_number(element)
        return written or number_label(self._styles.outline, self._outline)

    def _counted(self, counts: list[int], depth: int, element: Any, levels: Any) -> list[int]:
        def start(at: int) -> int:
            return levels[at].start if at in levels else 1

        counts = counts[:depth]
        restart = element.get(TEXT + "start-value")
        if len(counts) == depth:
            counts[-1] = counts[-1] + 1
        else:
            counts = counts + [start(at) for at in range(len(counts) + 1, depth + 1)]
        if restart:
            counts[-1] = small(restart, counts[-1])
        return counts

    def _paragraph(self, element: Any) -> Iterator[Block]:
        number = self._place()
        style = element.get(TEXT + "style-name")
        reading = self._reader.read(element)
        look = self._styles.look("paragraph", style)
        if self._styles.is_title(style) and len(reading.text) <= _MAX_HEADING_CHARS:
            yield from self._block(reading, BlockKind.HEADING, 0, number)
        elif look.level and len(reading.text) <= _MAX_HEADING_CHARS:
            yield from self._block(reading, BlockKind.HEADING, look.level, number)
        else:
            yield from self._block(reading, BlockKind.PARAGRAPH, 0, number)

    def _block(
        self, reading: Reading, kind: BlockKind, level: int, number: int, label: str = ""
    ) -> Iterator[Block]:
        text = reading.text
        if text.strip():
            fragments = (Fragment(label, ""), Fragment(text, " ")) if label else (Fragment(text, ""),)
            yield Block(kind, fragments, level=level, paragraph=number)
        for box in reading.boxes:
            yield from self.blocks(box)
        for note in reading.notes:
            yield from self.blocks(note)

    def _list(self, element: Any, style: str, above: list[int]) -> Iterator[Block]:
        """A list; its numbers go on from the last list of the same style when it says so."""
        style = element.get(TEXT + "style-name") or style
        levels = self._styles.levels(style)
        depth = len(above) + 1
        goes_on = element.get(TEXT + "continue-numbering") == "true" or element.get(TEXT + "continue-list")
        counts = self._continued.get(style, above) if goes_on and depth == 1 else above
        for item in element:
            if local(item) not in ("list-item", "list-header"):
                continue
            if local(item) == "list-item":
                counts = self._counted(counts, depth, item, levels)
                self._continued[style] = counts
            label = _written_number(item) or number_label(levels, counts[:depth])
            for child in item:
                if local(child) == "list":
                    yield from self._list(child, style, counts[:depth] or [1])
                elif local(child) == "h":
                    yield from self._heading(child, label)
                    label = ""
                elif local(child) == "p":
                    number = self._place()
                    reading = self._reader.read(child)
                    yield from self._block(reading, BlockKind.LIST_ITEM, depth - 1, number, label)
                    label = "" if reading.text.strip() else label
                elif local(child) != "number":
                    yield from self.blocks([child])

    def _table(self, table: Any) -> Iterator[Block]:
        self._tables += 1
        number = self._tables
        after: list[Block] = []
        rows = table_rows(table, lambda cell: self._cell(cell, after), self._place)
        yield from table_blocks(rows, number)
        yield from after

    def _cell(self, parent: Any, after: list[Block]) -> str:
        """Text of a cell on one line; its notes follow the table."""
        parts: list[str] = []
        for child in parent:
            name = local(child)
            if name in ("p", "h"):
                reading = self._reader.read(child)
                parts.append(" ".join(reading.text.split()))
                parts.extend(self._cell(box, after) for box in reading.boxes)
                for note in reading.notes:
                    after.extend(self.blocks(note))
            elif child.tag == TABLE + "table":
                rows = table_rows(child, lambda inner: self._cell(inner, after), lambda: self._number)
                parts.append("; ".join(", ".join(c.text for c in r.cells if c.text.strip()) for r in rows))
            elif name and name not in ("annotation", "number"):
                parts.append(self._cell(child, after))
        return " ".join(p for p in parts if p)


def _written_number(element: Any) -> str:
    """The label that the writing program left beside a numbered paragraph."""
    return next(("".join(c.itertext()).strip() for c in element if local(c) == "number"), "")


def _annotations(reader: TextReader, body: _Body, blocks: list[Block]) -> list[Block]:
    chinese = language_of(" ".join(b.text for b in blocks[:200])) is Lang.ZH
    found: list[Block] = []
    for annotation in reader.annotations:
        author = next(("".join(c.itertext()).strip() for c in annotation if local(c) == "creator"), "")
        paragraphs = [c for c in annotation if local(c) in ("p", "list")]
        text = " ".join(b.text.strip() for b in body.blocks(paragraphs))
        quoted = " ".join("".join(reader.commented.get(annotation.get(OFFICE + "name") or "", ())).split())
        if text:
            line = comment_line(author, quoted, text, chinese=chinese)
            found.append(Block(BlockKind.LIST_ITEM, (Fragment(line, ""),)))
    if found:
        heading = Fragment(comments_heading(chinese=chinese), "")
        found.insert(0, Block(BlockKind.HEADING, (heading,), level=1))
    return found
