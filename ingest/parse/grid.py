"""Tables with merged cells → rows that can be read alone, under one header row.

A cell merged over rows stands in each row it covers; merged over columns it stands once, and the columns it
covers beyond the first are empty, so that later cells keep their column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import regex

from ingest.parse.model import Block, BlockKind, Fragment

MAX_HEADER_ROWS = 4
_MAX_NAME = 120  # characters; longer ones are values
_NAMED_SHARE = 0.6  # a header may leave the corner and a few columns without a name
CELL_GLUE = " | "
_NUMBER = regex.compile(
    r"[¥￥$€£+\-(]?\s?\d[\d,.\s]*(?:[%‰)]|[eE][+-]?\d+)?"
    r"|\d{1,4}[-/.年]\d{1,2}(?:[-/.月]\d{1,4}日?)?(?:[T\s].*)?|\d{1,2}:\d\d(?::\d\d)?(?:\s?[AP]M)?"
    r"|\d{1,2}-\p{L}{3,9}-\d{2,4}"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a row.

    Attributes:
        column: 0-based column of its left edge; `width` columns are covered.
        height: rows it covers from this one on; 1 for one row.
        again: it began in a row above.
    """

    text: str
    column: int
    width: int = 1
    height: int = 1
    again: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """Cells by column, and the place of the row in its source."""

    cells: tuple[Cell, ...]
    place: int
    marked_header: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no cell that begins here holds text."""
        return not any(c.text.strip() for c in self.cells if not c.again)


def table_blocks(
    rows: Sequence[Row],
    table: int,
    *,
    member: str | None = None,
    page: int | None = None,
    by_line: bool = False,
    header: int | None = None,
) -> Iterator[Block]:
    """Blocks of one table; rows of one text over its whole width at the top are paragraphs above it.

    Args:
        rows: in order; empty ones are skipped.
        table: number of the table in the document.
        member: the part that it stands in.
        page: the page that it stands on.
        by_line: the place of a row is a source line (a sheet's row) rather than a paragraph number.
        header: rows that name the columns, where the source says so; else they are guessed.
    """
    rows = [r for r in rows if not r.is_empty]
    captions = caption_rows(rows)
    for row in rows[:captions]:
        text = next(c.text for c in row.cells if c.text.strip())
        fragment = Fragment(" ".join(text.split()), "", line=row.place if by_line else None, page=page)
        yield Block(BlockKind.PARAGRAPH, (fragment,), paragraph=None if by_line else row.place, member=member)
    rows = rows[captions:]
    depth = header_rows(rows) if header is None else min(header, max(0, len(rows) - 1))
    texts = [(r.place, row_texts(r)) for r in rows]
    if depth > 1:
        texts = [(rows[0].place, header_texts(rows[:depth])), *texts[depth:]]
    for index, (place, cells) in enumerate(texts):
        yield Block(
            BlockKind.TABLE_ROW,
            tuple(Fragment(c, CELL_GLUE, line=place if by_line else None, page=page) for c in cells),
            paragraph=None if by_line else place,
            table=table,
            is_table_header=index == 0 and depth > 0,
            member=member,
        )


def caption_rows(rows: Sequence[Row]) -> int:
    """Leading rows that say what the table is rather than what its columns are."""
    edges = [(c.column, c.column + c.width) for r in rows for c in r.cells]
    width = max((right for _, right in edges), default=0) - min((left for left, _ in edges), default=0)
    for count, row in enumerate(rows):
        filled = [c for c in row.cells if c.text.strip()]
        if len(filled) != 1 or filled[0].width < width or width < 2 or filled[0].height > 1:
            return count
    return 0


def row_texts(row: Row) -> list[str]:
    """One text per column up to the last filled one."""
    texts: list[str] = []
    for cell in row.cells:
        texts.extend([""] * (cell.column - len(texts)))
        texts.append(" ".join(cell.text.split()))
    while texts and not texts[-1]:
        texts.pop()
    return texts


def header_texts(rows: Sequence[Row]) -> list[str]:
    """One name per column out of several header rows: the names above each other, each said once."""
    if not any(c.width > 1 for c in rows[0].cells):
        rows = [_widened(rows[0], _columns(rows[1])), *rows[1:]]
    width = max(c.column + c.width for r in rows for c in r.cells)
    names: list[str] = []
    for column in range(width):
        parts: list[str] = []
        for row in rows:
            text = next((c.text for c in row.cells if c.column <= column < c.column + c.width), "")
            text = " ".join(text.split())
            if text and text not in parts:
                parts.append(text)
        names.append(" ".join(parts))
    while names and not names[-1]:
        names.pop()
    return names


def _widened(row: Row, below: set[int]) -> Row:
    """Each name reaches over the columns to its right that only the row below names."""
    filled = sorted((c for c in row.cells if c.text.strip()), key=lambda c: c.column)
    cells: list[Cell] = []
    for cell in filled:
        end = cell.column + 1
        while end in below and not any(c.column == end for c in filled):
            end += 1
        cells.append(replace(cell, width=end - cell.column if cell.column in below else 1))
    return Row(tuple(cells), row.place, row.marked_header)


def header_rows(rows: Sequence[Row]) -> int:
    """How many rows at the top name the columns; 0 when none does."""
    marked = 0
    while marked < len(rows) and rows[marked].marked_header:
        marked += 1
    if marked:
        return min(marked, len(rows) - 1, MAX_HEADER_ROWS)
    if len(rows) < 2 or not _names_columns(rows[0]):
        return 0
    first = rows[0]
    wide = any(c.width > 1 and c.text.strip() for c in first.cells)
    if not wide:
        names = len(rows) > 2 and _left_edge(first) in _columns(rows[2])
        return 2 if names and _completes(first, rows[1]) else 1
    tall = max((c.height for c in first.cells if c.text.strip()), default=1)
    if 1 < tall <= MAX_HEADER_ROWS and tall < len(rows):
        return tall
    if len(rows) < 3 or not _groups(first, rows[1]):
        return 1 if sum(1 for c in first.cells if c.text.strip()) > 2 else 0
    # Groups above their columns: the second row names them, and values follow.
    if not _names_columns(rows[1], gaps=True):
        return 1
    left = min(_left_edge(r) for r in rows)
    corner = left not in _columns(first) | _columns(rows[1])
    return 2 if corner or not all(_is_words(r) for r in rows[2:]) else 1


def _completes(row: Row, below: Row) -> bool:
    """Whether the row below names the columns that this one leaves open (groups that are not merged)."""
    if _left_edge(row) in _columns(below) or not _names_columns(below, gaps=True):
        return False
    open_columns = _columns(below) - _columns(row)
    return len(open_columns) > 1 and max(_columns(below)) > max(_columns(row))


def _columns(row: Row) -> set[int]:
    return {c.column for c in row.cells if c.text.strip()}


def _groups(row: Row, below: Row) -> bool:
    """Whether each wide cell stands above two cells or more; else it is a wide value of a form."""
    lefts = [c.column for c in below.cells if c.text.strip() and not c.again]
    wide = [c for c in row.cells if c.width > 1 and c.text.strip()]
    return all(sum(c.column <= left < c.column + c.width for left in lefts) > 1 for c in wide)


# A row of years beside a name or an empty corner names columns; a row that begins with a year is values.
_YEAR = regex.compile(r"(?:19|20)\d\d\s?(?:年|年度|A|E|F)?")


def _names_columns(row: Row, *, gaps: bool = False) -> bool:
    filled = [c.text.strip() for c in row.cells if c.text.strip()]
    covered = sum(c.width for c in row.cells if c.text.strip())
    edges = [(c.column, c.column + c.width) for c in row.cells]
    width = max(right for _, right in edges) - min(left for left, _ in edges) if edges else 0
    named = len(filled) > 1 or covered > len(filled)
    enough = gaps or covered >= _NAMED_SHARE * width
    if not named or not enough or max(map(len, filled)) > _MAX_NAME:
        return False
    if any(t.endswith((":", "：")) for t in filled):
        return False  # labels of a form
    years = [t for t in filled if _YEAR.fullmatch(t)]
    corner = row.cells[0].text.strip()
    series = len(years) > 1 and len(set(years)) == len(years) and not is_number(corner)
    return not any(is_number(t) and not (series and t in years) for t in filled)


def _left_edge(row: Row) -> int:
    """The first column with text."""
    return min(_columns(row), default=0)


def _is_words(row: Row) -> bool:
    return not any(is_number(c.text.strip()) for c in row.cells)


def is_number(text: str) -> bool:
    """Whether a cell holds a number, an amount, a share or a date."""
    return _NUMBER.fullmatch(text.strip()) is not None
