"""ODS: each sheet's tables as people see them; the same reading as XLSX, from the text that cells show."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.errors import DocumentRejected
from core.types import Lang
from ingest.lang import language_of
from ingest.parse.findings import Findings, comments_heading
from ingest.parse.formats import ODS
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.odf import OdfPackage, small
from ingest.parse.office import finished
from ingest.parse.sheet_tables import Sheet, sheet_blocks
from ingest.parse.xlsx_sheet import MAX_CELLS, MAX_COLUMNS, MAX_ROWS
from ingest.parse.xml_stream import stream_xml
from ingest.parse.zip_package import MemberDamaged

_HIDDEN = ("collapse", "filter")
_MAX_MERGES = 20_000
_CELLS = ("table-cell", "covered-table-cell")
_SILENT = ("tracked-changes", "annotation", "named-expressions", "shapes")


def parse_ods(content: bytes, options: ParseOptions, media_type: str = ODS) -> ParsedDocument:
    """Read an OpenDocument spreadsheet.

    Raises:
        DocumentRejected: `corrupt`, `encrypted`, `refused` or `too_big`.
    """
    package = OdfPackage(content, options.limits, "ODS file")
    reader = _Reader(package.findings, options.limits.max_chars, keep_hidden=options.keep_hidden)
    if "content.xml" not in package:
        raise DocumentRejected("corrupt", "The ODS file holds no document part.")
    try:
        with package.open("content.xml") as stream:
            stream_xml(stream, reader)
    except (ValueError, MemberDamaged) as error:
        if not reader.sheets:
            raise DocumentRejected("corrupt", "content.xml in the ODS file is damaged.") from error
        package.findings.damaged("content.xml")
    blocks: list[Block] = []
    for sheet in reader.sheets:
        tables = max((b.table for b in blocks if b.table is not None), default=0)
        found = sheet_blocks(sheet, tables + 1)
        blocks.extend([*found, *_comments(sheet.name, reader.comments.get(sheet.name, []), found)])
    return finished(package, media_type, blocks, options)


def _comments(sheet: str, comments: list[tuple[int, str]], blocks: list[Block]) -> list[Block]:
    if not comments:
        return []
    chinese = language_of(" ".join(b.text for b in blocks[:200]) or comments[0][1]) is Lang.ZH
    heading = Fragment(comments_heading(chinese=chinese), "")
    return [
        Block(BlockKind.HEADING, (heading,), level=2, member=sheet),
        *(
            Block(BlockKind.LIST_ITEM, (Fragment(text, "", line=row),), member=sheet)
            for row, text in comments
        ),
    ]


@dataclass(slots=True)
class _Cell:
    attributes: dict[str, str]
    paragraphs: list[str] = field(default_factory=list)


class _Reader:
    """Takes the events of `content.xml`. Repeated empty rows and cells are counted on, never laid out."""

    def __init__(self, findings: Findings, max_chars: int, *, keep_hidden: bool) -> None:
        self.sheets: list[Sheet] = []
        self.comments: dict[str, list[tuple[int, str]]] = {}
        self._findings = findings
        self._room = self._max_chars = max_chars
        self._keep_hidden = keep_hidden
        self._hidden_styles: set[str] = set()
        self._style = ""
        self._sheet: Sheet | None = None
        self._depth = 0  # tables inside tables
        self._row = self._column = 0
        self._repeated = 1
        self._row_hidden = False
        self._cells: dict[int, str] = {}
        self._count = 0
        self._cell: _Cell | None = None
        self._silent: list[str] = []
        self._words: list[str] | None = None
        self._note: list[str] = []
        self._notes: list[str] = []
        self._hidden_columns: set[int] = set()
        self._met_hidden: set[int] = set()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        name = name.rpartition(":")[2]
        if name in _SILENT:
            self._silent.append(name)
            self._findings.count("has_revisions", name == "tracked-changes")
            self._note = []
        elif self._silent:
            self._start_silent(name)
        elif name == "style":
            self._style = attributes.get("style:name", "")
        elif name == "table-properties" and attributes.get("table:display") == "false":
            self._hidden_styles.add(self._style)
        elif name == "table":
            self._start_table(attributes)
        elif self._sheet is None or self._depth > 1:
            return
        elif name == "table-column":
            self._take_column(attributes)
        elif name == "table-row":
            self._repeated = max(small(attributes.get("table:number-rows-repeated"), 1), 1)
            self._row_hidden = attributes.get("table:visibility") in _HIDDEN
            self._column = 0
        elif name in _CELLS:
            self._cell = _Cell(attributes)
        elif name == "p":
            self._words = []
        elif self._words is not None and name in ("s", "tab", "line-break"):
            self._words.append(" " * min(small(attributes.get("text:c"), 1), 100))

    def end(self, name: str) -> None:
        """An element ends."""
        name = name.rpartition(":")[2]
        if self._silent:
            self._end_silent(name)
        elif name == "table":
            self._depth -= 1
            if self._depth == 0:
                self._end_table()
        elif self._sheet is None or self._depth > 1:
            return
        elif name == "p":
            if self._cell is not None and self._words is not None:
                self._cell.paragraphs.append("".join(self._words))
            self._words = None
        elif name in _CELLS:
            self._take_cell(covered=name == "covered-table-cell")
        elif name == "table-row":
            self._take_row()

    def text(self, text: str) -> None:
        """Character data."""
        if self._words is not None:
            self._words.append(text)

    def _start_silent(self, name: str) -> None:
        if name in ("p", "creator") and self._silent == ["annotation"]:
            self._words = []
        elif name == "image":
            self._findings.count("images_not_read")

    def _end_silent(self, name: str) -> None:
        if self._words is not None and name in ("p", "creator"):
            text = " ".join("".join(self._words).split())
            self._words = None
            if text:
                self._note.append(f"{text}:" if name == "creator" else text)
        if name == self._silent[-1]:
            self._silent.pop()
            if name == "annotation" and self._note:
                self._notes.append(" ".join(self._note))

    def _start_table(self, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        hidden = attributes.get("table:style-name") in self._hidden_styles
        if hidden and not self._keep_hidden:
            self._findings.count("hidden_sheets")
            self._sheet = None
        else:
            self._sheet = Sheet(attributes.get("table:name", ""))
            self.sheets.append(self._sheet)
        self._row = self._column = self._count = 0
        self._hidden_columns.clear()

    def _end_table(self) -> None:
        self._findings.count("hidden_columns", len(self._met_hidden))
        self._met_hidden.clear()
        self._sheet = None

    def _take_column(self, attributes: dict[str, str]) -> None:
        repeated = max(small(attributes.get("table:number-columns-repeated"), 1), 1)
        if attributes.get("table:visibility") in _HIDDEN and not self._keep_hidden:
            self._hidden_columns.update(range(self._column, min(self._column + repeated, MAX_COLUMNS)))
        self._column += repeated

    def _take_cell(self, *, covered: bool) -> None:
        cell, self._cell = self._cell, None
        if cell is None:
            return
        repeated = max(small(cell.attributes.get("table:number-columns-repeated"), 1), 1)
        first = self._column
        self._column += repeated
        for note in self._notes:
            assert self._sheet is not None
            reference = f"{_letters(first)}{self._row + 1} {note}"
            self.comments.setdefault(self._sheet.name, []).append((self._row + 1, reference))
        self._notes = []
        text = " ".join(p for p in cell.paragraphs if p.strip()) or _bare_value(cell.attributes)
        if not text.strip() or covered:
            return
        for column in range(first, first + repeated):
            if column >= MAX_COLUMNS:
                self._findings.count("too_many_columns", first + repeated - column)
                break
            if column in self._hidden_columns:
                self._met_hidden.add(column)
            else:
                self._cells[column] = text
        self._merge(cell.attributes, first)

    def _merge(self, attributes: dict[str, str], column: int) -> None:
        width = small(attributes.get("table:number-columns-spanned"), 1)
        height = small(attributes.get("table:number-rows-spanned"), 1)
        if self._sheet is not None and width * height > 1 and len(self._sheet.merges) < _MAX_MERGES:
            row = self._row + 1
            self._sheet.merges.append((row, column, row + height - 1, column + width - 1))

    def _take_row(self) -> None:
        first = self._row + 1
        self._row += self._repeated
        cells, self._cells = self._cells, {}
        if not cells or self._sheet is None:
            return
        if self._row_hidden and not self._keep_hidden:
            self._findings.count("hidden_rows", self._repeated)
            if len(self._sheet.skipped) < MAX_ROWS:
                self._sheet.skipped.update(range(first, min(self._row + 1, first + MAX_ROWS)))
            return
        size = sum(map(len, cells.values()))
        for number in range(first, self._row + 1):
            if len(self._sheet.cells) >= MAX_ROWS or self._count >= MAX_CELLS:
                self._findings.count("too_many_rows", self._row + 1 - number)
                return
            self._sheet.cells[number] = cells
            self._count += len(cells)
            self._room -= size
            if self._room < 0:
                raise DocumentRejected(
                    "too_big", f"The workbook holds more than {self._max_chars:,} characters. Split it."
                )


def _bare_value(attributes: dict[str, str]) -> str:
    """The value of a cell that was saved without the text it shows."""
    for name in ("string-value", "date-value", "time-value", "boolean-value", "value"):
        if text := attributes.get(f"office:{name}"):
            return text
    return ""


def _letters(column: int) -> str:
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name
