"""CSV and TSV: one table; each row keeps its line and knows its header."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from ingest.parse.charset import decode
from ingest.parse.lines import line_starts
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions, ParseWarning
from ingest.parse.within import check_length

_DELIMITERS = ",\t;|，^"
_SAMPLE_ROWS = 100
_SAMPLE_CHARS = 65_536
_DIRECTIVE = regex.compile(r"\Asep=(.)\r?\n")
_NUMBER = regex.compile(r"[-+(]?\s*[$¥€£]?\s*\d[\d.,\s]*\)?\s*[%‰]?$")
_DATE = regex.compile(r"\d{1,4}[-/.年]\d{1,2}(?:[-/.月]\d{1,4}日?)?(?:[T\s]\d{1,2}:\d{2}\S*)?$")
_YEAR = regex.compile(r"(?:19|20)\d\d年?(?:Q[1-4]|\d{1,2}月)?$")
_MAX_CELL_LINES = 200  # a quote that is never closed swallows the rest of the file
# A wide row would be cut between its columns, far from their names: there each cell says its column itself.
_WIDE_COLUMNS, _WIDE_HEADER_CHARS = 16, 240


@dataclass(frozen=True, slots=True)
class Row:
    """One record: its cells, the offset of each in the source where it stands there verbatim, its line."""

    cells: tuple[str, ...]
    starts: tuple[int | None, ...]
    line: int

    @property
    def filled(self) -> int:
        """Number of cells with text."""
        return sum(1 for cell in self.cells if cell)


def parse_delimited(content: bytes, options: ParseOptions, media_type: str) -> ParsedDocument:
    """Read delimited values of any encoding; the delimiter is the one that cuts lines most evenly."""
    decoded = decode(content)
    check_length(len(decoded.text), options.limits)
    csv.field_size_limit(options.limits.max_chars)
    rows, damaged = _read(decoded.text, "\t" if media_type == "text/tab-separated-values" else "")
    warnings = decoded.warnings
    if damaged:
        detail = "A quoted cell is never closed; quotes were read as text."
        warnings = (*warnings, ParseWarning("broken_quotes", detail))
    table = _Table(rows)
    if table.uneven:
        detail = f"{table.uneven} rows hold more cells than the header names."
        warnings = (*warnings, ParseWarning("uneven_rows", detail))
    return ParsedDocument(
        media_type=media_type,
        blocks=tuple(table.blocks()),
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        warnings=warnings,
    )


# -- rows --------------------------------------------------------------------------------------


def _read(text: str, preferred: str) -> tuple[list[Row], bool]:
    start = 0
    directive = _DIRECTIVE.match(text)
    if directive:
        preferred, start = directive.group(1), directive.end()
    dialect = _dialect(text[start : start + _SAMPLE_CHARS], preferred, fixed=directive is not None)
    rows = list(_rows(text, start, dialect))
    if any(cell.count("\n") > _MAX_CELL_LINES for row in rows for cell in row.cells) or _is_open(text, rows):
        return list(_rows(text, start, _Dialect(dialect.delimiter, quoted=False))), True
    return rows, False


@dataclass(frozen=True, slots=True)
class _Dialect:
    delimiter: str
    quote: str = '"'
    escape: str | None = None
    quoted: bool = True

    def reader(self, lines: Iterator[str]) -> Iterator[list[str]]:
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            escapechar=self.escape,
            doublequote=self.escape is None,
            quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
            skipinitialspace=self.delimiter != "\t",
        )


def _rows(text: str, start: int, dialect: _Dialect) -> Iterator[Row]:
    starts = line_starts(text)
    first = sum(1 for at in starts[:2] if at < start)  # a directive takes the first line
    taken = [first]

    def lines() -> Iterator[str]:
        for number in range(first, len(starts)):
            taken[0] = number + 1
            yield text[starts[number] : starts[number + 1] if number + 1 < len(starts) else None]

    begun = first
    for record in dialect.reader(lines()):
        cells = tuple(cell.strip() for cell in record)
        low, high = starts[begun], starts[taken[0]] if taken[0] < len(starts) else len(text)
        if any(cells):
            yield Row(cells, tuple(_places(text, cells, low, high)), begun + 1)
        begun = taken[0]


def _places(text: str, cells: Sequence[str], low: int, high: int) -> Iterator[int | None]:
    """Where each cell stands: after the one before it, unless quotes inside it are spelt otherwise."""
    cursor = low
    for cell in cells:
        at = text.find(cell, cursor, high) if cell else -1
        if at >= 0:
            cursor = at + len(cell)
        yield at if at >= 0 else None


def _is_open(text: str, rows: Sequence[Row]) -> bool:
    """Whether the last cell runs over lines to the end of the file without its closing quote."""
    return bool(rows) and "\n" in rows[-1].cells[-1] and not text.rstrip().endswith(('"', "'"))


def _dialect(sample: str, preferred: str, *, fixed: bool) -> _Dialect:
    quote = (
        "'" if '"' not in sample and regex.search(r"(?:^|[,;\t|])'[^'\n]*'(?=[,;\t|\r\n])", sample) else '"'
    )
    escape = "\\" if f"\\{quote}" in sample and quote * 2 not in sample.replace(f"\\{quote}", "") else None
    if fixed:
        return _Dialect(preferred, quote, escape)
    order = preferred + _DELIMITERS.replace(preferred, "") if preferred else _DELIMITERS
    return max((_Dialect(d, quote, escape) for d in order), key=lambda d: _evenness(sample, d))


def _evenness(sample: str, dialect: _Dialect) -> tuple[float, int]:
    """Share of rows that have the usual number of cells, and that number; 0 where nothing is cut.

    Quotes that are left inside cells speak against a delimiter: it cut where another one was meant.
    """
    counts: list[int] = []
    quoted = 0
    try:
        for record in dialect.reader(iter(sample.splitlines(keepends=True))):
            if any(cell.strip() for cell in record):
                counts.append(len(record))
                quoted += any(dialect.quote in cell for cell in record)
            if len(counts) >= _SAMPLE_ROWS:
                break
    except csv.Error:
        return 0.0, 0
    usual = max(set(counts), key=lambda n: (counts.count(n), n)) if counts else 1
    share = (counts.count(usual) - quoted) / max(1, len(counts))
    return (round(share, 1), usual) if usual > 1 else (0.0, 0)


# -- the table ---------------------------------------------------------------------------------


class _Table:
    """Titles above it, its header and its rows."""

    def __init__(self, rows: Sequence[Row]) -> None:
        widths = [len(row.cells) for row in rows]
        usual = max(set(widths), key=lambda n: (widths.count(n), n)) if widths else 0
        first = next((n for n, row in enumerate(rows) if row.filled > max(1, usual // 2)), 0)
        self._titles = rows[:first] if usual > 1 else ()
        self._rows = rows[first:] if usual > 1 else rows
        self._header = self._rows[0] if usual > 1 and _names_columns(self._rows) else None
        names = self._header.cells if self._header else ()
        self._wide = bool(names) and (
            len(names) > _WIDE_COLUMNS or sum(len(name) for name in names) > _WIDE_HEADER_CHARS
        )
        self.uneven = sum(1 for row in self._rows[1:] if names and len(row.cells) > len(names))

    def blocks(self) -> Iterator[Block]:
        for row in self._titles:
            yield Block(BlockKind.PARAGRAPH, tuple(_fragments(row, " ")))
        for row in self._rows:
            is_header = row is self._header
            named = self._header.cells if self._header and self._wide and not is_header else ()
            fragments = tuple(_named(row, named) if named else _fragments(row, " | "))
            yield Block(BlockKind.TABLE_ROW, fragments, table=1, is_table_header=is_header and not self._wide)


def _fragments(row: Row, glue: str) -> Iterator[Fragment]:
    for cell, start in zip(row.cells, row.starts, strict=True):
        yield Fragment(cell, glue, start, row.line)


def _named(row: Row, names: Sequence[str]) -> Iterator[Fragment]:
    """Filled cells as `name: value`."""
    for n, (cell, start) in enumerate(zip(row.cells, row.starts, strict=True)):
        if not cell:
            continue
        name = names[n] if n < len(names) else ""
        if name:
            yield Fragment(f"{name}:", " | ", line=row.line)
        yield Fragment(cell, " " if name else " | ", start, row.line)


def _names_columns(rows: Sequence[Row]) -> bool:
    """Whether the first row holds names: distinct, no values, unlike what stands below them."""
    names = [cell for cell in rows[0].cells if cell]
    if not names or len(set(names)) < len(names) or any(len(name) > 80 for name in names):
        return False
    if any(_is_value(name) and not _YEAR.match(name) for name in names):
        return False
    if any(_YEAR.match(name) for name in names) and _is_value(rows[0].cells[0]):
        return False
    body = rows[1 : 1 + _SAMPLE_ROWS]
    # A name that stands below itself as well is a value of its column.
    return not any(
        name and sum(1 for row in body if len(row.cells) > n and row.cells[n] == name) > len(body) // 3
        for n, name in enumerate(rows[0].cells)
        if body
    )


def _is_value(cell: str) -> bool:
    return bool(_NUMBER.match(cell) or _DATE.match(cell))
