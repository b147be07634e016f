"""One worksheet part, read as a stream: only filled cells are kept, however many rows are formatted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, BinaryIO

import regex

from core.errors import DocumentRejected
from ingest.parse.findings import Findings
from ingest.parse.ooxml import local
from ingest.parse.sheet_format import shown_number, shown_text
from ingest.parse.sheet_tables import Merge, Sheet
from ingest.parse.xlsx_styles import CellStyle
from ingest.parse.xml_stream import stream_xml
from ingest.parse.zip_package import MemberDamaged

MAX_ROWS = 200_000
"""Filled rows read of one sheet."""
MAX_CELLS = 1_000_000
"""Filled cells read of one sheet."""
MAX_COLUMNS = 1024
_MAX_MERGES = 20_000
_LAST_COLUMN = 16_383
_TRUE = ("1", "true", "on")
_COLUMNS: dict[str, int] = {}  # at most 3 letters each, so it stays small
_REFERENCE = regex.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})")


@dataclass(slots=True)
class Workbook:
    """What the sheets of a workbook share."""

    strings: list[str] = field(default_factory=list)
    styles: list[CellStyle] = field(default_factory=list)
    from_1904: bool = False
    keep_hidden: bool = False

    def style(self, index: str | None) -> CellStyle:
        """The cell format of an `s` attribute; an unknown one is plain."""
        number = int(index) if index and index.isdigit() and len(index) < 8 else 0
        return self.styles[number] if number < len(self.styles) else CellStyle()


class PartialSheet(ValueError):
    """A sheet that breaks off; `sheet` is what could be read."""

    def __init__(self, sheet: Sheet) -> None:
        super().__init__(sheet.name)
        self.sheet = sheet


def read_sheet(stream: BinaryIO, name: str, book: Workbook, findings: Findings, max_chars: int) -> Sheet:
    """Read a worksheet.

    Args:
        stream: XML of the part.
        name: of the sheet.
        book: strings and styles.
        findings: counts hidden rows and columns, formulas without value and what is past a cap.
        max_chars: cap on text.

    Raises:
        PartialSheet: the XML breaks off.
        DocumentRejected: `refused` or `too_big`.
    """
    reader = _SheetReader(name, book, findings, max_chars)
    try:
        stream_xml(stream, reader)
    except (ValueError, MemberDamaged) as error:
        raise PartialSheet(reader.finished()) from error
    return reader.finished()


class _SheetReader:
    """Takes the events of a worksheet part (18.3.1). An empty cell or row costs a few calls and no memory."""

    def __init__(self, name: str, book: Workbook, findings: Findings, max_chars: int) -> None:
        self._sheet = Sheet(name)
        self._book = book
        self._findings = findings
        self._room = self._max_chars = max_chars
        self._row = 0
        self._row_hidden = False
        self._cells: dict[int, str] = {}
        self._count = 0
        self._column = -1
        self._cell: dict[str, str] = {}
        self._value: list[str] | None = None
        self._inline: list[str] | None = None
        self._formula = self._phonetic = False
        self._into: list[str] | None = None
        self._hidden_columns: set[int] = set()
        self._met_hidden: set[int] = set()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        if name == "c":
            self._cell = attributes
            if "r" not in attributes:
                self._column += 1
            self._value = self._inline = None
            self._formula = False
        elif name == "v":
            self._value = self._into = []
        elif name == "row":
            number = attributes.get("r", "")
            self._row = int(number) if number.isdigit() and len(number) < 9 else self._row + 1
            self._row_hidden = attributes.get("hidden") in _TRUE or attributes.get("ht") in ("0", "0.0")
            self._column = -1
        elif name == "t":
            if not self._phonetic:
                self._inline = self._inline or []
                self._into = self._inline
        elif name in ("f", "rPh"):
            self._formula = self._formula or name == "f"
            self._phonetic = name == "rPh"
        elif name == "col":
            self._take_column(attributes)
        elif name == "autoFilter":
            filtered = range_of(attributes.get("ref", ""))
            if filtered is not None:
                self._sheet.headers.add(filtered[0])
        elif name == "mergeCell" and len(self._sheet.merges) < _MAX_MERGES:
            merge = range_of(attributes.get("ref", ""))
            if merge is not None:
                self._sheet.merges.append(merge)

    def end(self, name: str) -> None:
        """An element ends."""
        if name == "c":
            if self._value is not None or self._inline is not None or self._formula:
                self._take_cell()
        elif name == "row":
            if self._cells:
                self._take_row()
        elif name in ("v", "t"):
            self._into = None
        elif name == "rPh":
            self._phonetic = False

    def text(self, text: str) -> None:
        """Character data."""
        if self._into is not None:
            self._into.append(text)

    def finished(self) -> Sheet:
        """The sheet, with its hidden columns counted."""
        self._findings.count("hidden_columns", len(self._met_hidden))
        self._met_hidden.clear()
        return self._sheet

    def _take_column(self, column: dict[str, str]) -> None:
        hidden = column.get("hidden") in _TRUE or column.get("width") in ("0", "0.0")
        first, last = column.get("min", ""), column.get("max", "")
        if hidden and first.isdigit() and last.isdigit() and not self._book.keep_hidden:
            self._hidden_columns.update(range(int(first) - 1, min(int(last), MAX_COLUMNS)))

    def _take_row(self) -> None:
        cells, self._cells = self._cells, {}
        if self._row_hidden and not self._book.keep_hidden:
            self._findings.count("hidden_rows")
            self._sheet.skipped.add(self._row)
            return
        if self._row in self._sheet.cells or len(self._sheet.cells) >= MAX_ROWS or self._count >= MAX_CELLS:
            self._findings.count("too_many_rows")
            return
        self._sheet.cells[self._row] = cells
        self._count += len(cells)
        self._room -= sum(map(len, cells.values()))
        if self._room < 0:
            raise DocumentRejected(
                "too_big", f"The workbook holds more than {self._max_chars:,} characters. Split it."
            )

    def _take_cell(self) -> None:
        text = self._shown_cell()
        if not text or text.isspace():
            return
        if "r" in self._cell:
            self._column = column_of(self._cell["r"], self._column + 1)
        if self._column >= MAX_COLUMNS:
            self._findings.count("too_many_columns")
        elif self._column in self._hidden_columns:
            self._met_hidden.add(self._column)
        else:
            self._cells[self._column] = text

    def _shown_cell(self) -> str:
        kind = self._cell.get("t", "n")
        style = self._book.style(self._cell.get("s"))
        if self._value is None and self._inline is None:
            self._findings.count("formulas_without_value", self._formula)
            return ""
        raw = "".join(self._inline or ()) if self._value is None else "".join(self._value)
        text = raw if self._value is None else self._shown(raw, kind, style)
        hides = raw and not text and kind == "n"  # a format such as `;;;`
        if not hides and not style.hidden:
            return text
        text = text or raw
        keep = self._book.keep_hidden
        self._findings.count("hidden_text_kept" if keep else "hidden_text", len(text.strip()))
        return text if keep else ""

    def _shown(self, value: str, kind: str, style: CellStyle) -> str:
        if kind == "s":
            index = int(value) if value.isdigit() and len(value) < 10 else -1
            text = self._book.strings[index] if 0 <= index < len(self._book.strings) else ""
            return shown_text(text, style.code) if style.code else text
        if kind == "b":
            return "TRUE" if value.strip() in ("1", "true") else "FALSE"
        if kind in ("str", "e", "inlineStr"):
            return value
        if kind == "d":
            return value.replace("T00:00:00", "")
        return shown_number(value, style.code, from_1904=self._book.from_1904)


class SharedStrings:
    """Takes the events of the shared strings part (18.4); `texts` is what it holds, by index."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._parts: list[str] = []
        self._open = self._phonetic = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        del attributes
        if name == "si":
            self._parts = []
        elif name == "rPh":
            self._phonetic = True
        self._open = name == "t" and not self._phonetic

    def end(self, name: str) -> None:
        """An element ends."""
        self._open = False
        if name == "si":
            self.texts.append("".join(self._parts))
        elif name == "rPh":
            self._phonetic = False

    def text(self, text: str) -> None:
        """Character data."""
        if self._open:
            self._parts.append(text)


def rich_text(element: Any) -> str:
    """Text of a string item: its runs without phonetic hints."""
    parts: list[str] = []
    for child in element:
        name = local(child)
        if name == "t":
            parts.append(child.text or "")
        elif name == "r":
            parts.extend(t.text or "" for t in child if local(t) == "t")
    return "".join(parts)


def column_of(reference: str, default: int = 0) -> int:
    """0-based column of a cell reference such as `AB12`."""
    letters = reference.strip("$0123456789")
    column = _COLUMNS.get(letters)
    if column is None:
        match = _REFERENCE.fullmatch(reference)
        if match is None:
            return default
        column = 0
        for letter in match.group(1).upper():
            column = column * 26 + ord(letter) - 64
        column = _COLUMNS[letters] = min(column - 1, _LAST_COLUMN)
    return column


def range_of(reference: str) -> Merge | None:
    """A range such as `B2:E3`; None when it is none."""
    first, _, last = reference.partition(":")
    start, end = _REFERENCE.fullmatch(first), _REFERENCE.fullmatch(last or first)
    if start is None or end is None:
        return None
    return int(start.group(2)), column_of(first), int(end.group(2)), column_of(last or first)
