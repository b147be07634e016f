"""A sheet's cells → its tables: titles above them, header rows, tables parted by empty rows and columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace

from ingest.parse.grid import MAX_HEADER_ROWS, Cell, Row, header_rows, is_number, table_blocks
from ingest.parse.model import Block, BlockKind, Fragment

_MAX_TITLE = 120  # characters; a longer lone cell is a paragraph
_MAX_FORM_ROWS = 12
_LEAST_TABLE = 3  # cells in a row
_FULL_SHARE = 0.6
_MAX_REPEATED = 1_000_000  # cells that repeat a value merged over rows
_MAX_TALL = 1024  # merged ranges that cross one row; honest ones do not overlap
Merge = tuple[int, int, int, int]
"""First row, first column, last row, last column; rows from 1, columns from 0, both ends included."""


@dataclass(slots=True)
class Sheet:
    """The filled cells of one sheet.

    Attributes:
        cells: row number (as people see it) → column from 0 → text; rows ascending, none of them empty.
        merges: merged ranges.
        skipped: rows that were left out (hidden ones); they part no tables.
        headers: rows that the file itself calls header rows (of a table or a filter).
    """

    name: str
    cells: dict[int, dict[int, str]] = field(default_factory=dict)
    merges: list[Merge] = field(default_factory=list)
    skipped: set[int] = field(default_factory=set)
    headers: set[int] = field(default_factory=set)


def sheet_blocks(sheet: Sheet, first_table: int) -> list[Block]:
    """Blocks of a sheet: its name as a heading, then titles and tables from top to bottom.

    Args:
        sheet: the cells. Not modified.
        first_table: number of the first table in the document.
    """
    rows = list(_rows(sheet))
    if not rows:
        return []
    blocks = [Block(BlockKind.HEADING, (Fragment(sheet.name, ""),), level=1, member=sheet.name)]
    number = first_table - 1
    named: dict[tuple[int, ...], int] = {}  # columns with names → table, of the band above
    last_row = 0
    pending: list[Row] = []
    for band in _bands(rows, sheet.skipped):
        lone, body = _lone_rows(band)
        pending.extend(lone)
        if not body:
            continue
        blocks.extend(_title_blocks(pending, sheet.name))
        above = named if not pending and body[0].place <= last_row + 2 else {}
        pending, named = [], {}
        last_row = body[-1].place
        for part in (p for side in _side_by_side(body) for p in _from_headers(side)):
            columns = _columns(part)
            depth = header_rows(part)
            # One empty row inside a table parts nothing: the rows go on under the same names.
            under = None if depth else next((n for n in above if set(columns) <= set(n)), None)
            if under is None:
                number += 1
            table = number if under is None else above[under]
            if depth or under:
                named[under or columns] = table
            compact = _compact(part, under or columns)
            blocks.extend(table_blocks(compact, table, member=sheet.name, by_line=True, header=depth))
    blocks.extend(_paragraph(cell, row, sheet.name) for row in pending for cell in row.cells)
    return blocks


def _rows(sheet: Sheet) -> Iterator[Row]:
    """Rows with their merged cells; a merged value stands in each row that holds something else, too."""
    starts: dict[tuple[int, int], Merge] = {}
    covers: list[Merge] = []
    for merge in sheet.merges:
        top, left, bottom, _ = merge
        if left in sheet.cells.get(top, {}):
            starts[(top, left)] = merge
            if bottom > top:
                covers.append(merge)
    covers.sort()
    active: list[Merge] = []
    room = _MAX_REPEATED
    waiting = iter(covers)
    upcoming = next(waiting, None)
    for number, cells in sheet.cells.items():
        while upcoming is not None and upcoming[0] < number:
            active.append(upcoming)
            upcoming = next(waiting, None)
        active = [m for m in active if m[2] >= number][:_MAX_TALL]
        found: list[Cell] = []
        for column, text in cells.items():
            merge = starts.get((number, column))
            if merge is None:
                found.append(Cell(text, column))
            else:
                found.append(Cell(text, column, merge[3] - merge[1] + 1, merge[2] - merge[0] + 1))
        for top, left, bottom, right in active:
            if top < number and left not in cells and room:
                room -= 1
                text = sheet.cells[top][left]
                found.append(Cell(text, left, right - left + 1, bottom - number + 1, again=True))
        yield Row(tuple(sorted(found, key=lambda c: c.column)), number, number in sheet.headers)


def _bands(rows: Sequence[Row], skipped: Set[int]) -> Iterator[list[Row]]:
    """Runs of rows without an empty row between them."""
    band: list[Row] = []
    for row in rows:
        if band and any(r not in skipped for r in range(band[-1].place + 1, row.place)):
            yield band
            band = []
        band.append(row)
    if band:
        yield band


def _lone_rows(band: list[Row]) -> tuple[list[Row], list[Row]]:
    """Leading rows of a title, when a wider row follows; a band of lone cells is all lone if it is short."""
    edges = [(c.column, c.column + c.width) for r in band for c in r.cells]
    width = max(right for _, right in edges) - min(left for left, _ in edges)
    count = 0
    most = max(len(r.cells) for r in band)
    while count < len(band) and _is_title(band[count], width, most):
        count += 1
    if count == len(band) and count > 3:
        return [], band  # a list in one column
    return band[:count], band[count:]


def _is_title(row: Row, width: int, most: int) -> bool:
    """One cell, or words over half of a larger table and a remark beside them (`unit: million`)."""
    if len(row.cells) == 1:
        return True
    wide = row.cells[0].width > 1 and row.cells[0].width * 2 >= width
    return len(row.cells) == 2 < most and wide and not row.marked_header and not is_number(row.cells[0].text)


def _title_blocks(rows: Sequence[Row], sheet: str) -> Iterator[Block]:
    """Lone cells above a table: the first short one is its title, the others are remarks."""
    titled = False
    for row in rows:
        for cell in row.cells:
            if titled or len(cell.text.strip()) > _MAX_TITLE:
                yield _paragraph(cell, row, sheet)
                continue
            titled = True
            fragment = Fragment(" ".join(cell.text.split()), "", line=row.place)
            yield Block(BlockKind.HEADING, (fragment,), level=2, member=sheet)


def _paragraph(cell: Cell, row: Row, sheet: str) -> Block:
    """A lone cell as a paragraph."""
    fragment = Fragment(" ".join(cell.text.split()), "", line=row.place)
    return Block(BlockKind.PARAGRAPH, (fragment,), member=sheet)


def _form_rows(rows: list[Row]) -> int:
    """How many rows of a form (`Department: x`, `Date: y`) stand right above a wider table with names."""
    most = max(len(r.cells) for r in rows)
    full = max(_LEAST_TABLE, _FULL_SHARE * most)
    first = next((i for i, r in enumerate(rows) if len(r.cells) >= full), 0)
    if not 0 < first <= _MAX_FORM_ROWS or any(2 * len(r.cells) > most for r in rows[:first]):
        return 0
    grouped = any(2 * sum(c.width for c in r.cells) > most for r in rows[:first])
    return first if header_rows(rows[first:]) and not grouped else 0


def _from_headers(rows: list[Row]) -> list[list[Row]]:
    """Cut before a row that the file calls a header row; names of groups right above it belong to it."""
    first = next((i for i, row in enumerate(rows) if row.marked_header), None)
    if first is None:
        first = _form_rows(rows)
        return [rows[:first], rows[first:]] if first else [rows]
    if first == 0:
        return [rows]
    if first < MAX_HEADER_ROWS and not any(is_number(c.text) for r in rows[:first] for c in r.cells):
        return [[*(replace(r, marked_header=True) for r in rows[:first]), *rows[first:]]]
    return [rows[:first], rows[first:]]


def _side_by_side(rows: list[Row]) -> list[list[Row]]:
    """Tables beside each other, when an empty column parts them and each has header names of its own."""
    filled = _columns(rows)
    groups: list[list[int]] = []
    for column in filled:
        if groups and column == groups[-1][-1] + 1:
            groups[-1].append(column)
        else:
            groups.append([column])
    if len(groups) < 2 or any(len(g) < 2 for g in groups):
        return [rows]
    parts = [_part(rows, group[0], group[-1]) for group in groups]
    if all(len(p) > 1 and header_rows(p) for p in parts):
        return parts
    return [rows]


def _part(rows: Iterable[Row], left: int, right: int) -> list[Row]:
    found = [
        Row(tuple(c for c in r.cells if left <= c.column <= right), r.place, r.marked_header) for r in rows
    ]
    return [r for r in found if not r.is_empty]


def _columns(rows: Iterable[Row]) -> tuple[int, ...]:
    """Columns that hold something in these rows, ascending."""
    found: set[int] = set()
    for row in rows:
        for cell in row.cells:
            if cell.text.strip():
                found.add(cell.column)
    return tuple(sorted(found))


def _compact(rows: Iterable[Row], columns: Sequence[int]) -> list[Row]:
    """The rows without columns that are empty throughout."""
    if columns == tuple(range(len(columns))):
        return list(rows)
    place = {column: index for index, column in enumerate(columns)}
    found: list[Row] = []
    for row in rows:
        cells = [
            Cell(
                c.text,
                place[c.column],
                max(1, sum(1 for column in columns if c.column <= column < c.column + c.width))
                if c.width > 1
                else 1,
                c.height,
                c.again,
            )
            for c in row.cells
            if c.column in place
        ]
        found.append(Row(tuple(cells), row.place, row.marked_header))
    return found
