"""Tables of OpenDocument: spans and repetitions → rows of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ingest.parse.grid import Cell, Row
from ingest.parse.odf import TABLE, small
from ingest.parse.ooxml import local

_MAX_COLUMNS = 512
_MAX_REPEATED_CELLS = 100_000  # of rows that are said to occur again; past it such a row is read once
_GROUPS = ("table-rows", "table-row-group", "table-header-rows")


def table_rows(table: Any, text_of: Callable[[Any], str], place: Callable[[], int]) -> list[Row]:
    """Rows of a `table:table`; a value merged over rows stands in each of them.

    Args:
        table: the element.
        text_of: reads the text of a cell, once per cell, in order.
        place: gives the next place in the source.
    """
    rows: list[Row] = []
    above: dict[int, Cell] = {}
    room = _MAX_REPEATED_CELLS
    for element, marked in _rows(table, header=False):
        cells = _cells(element, text_of, above)
        repeated = max(small(element.get(TABLE + "number-rows-repeated"), 1), 1)
        cost = repeated * max(1, len(cells))
        count = repeated if cost <= room and any(c.text.strip() for c in cells) else 1
        room -= cost if count > 1 else 0
        rows.extend(Row(tuple(cells), place(), marked) for _ in range(count))
        above = {c.column: c for c in cells}
    return rows


def _rows(parent: Any, *, header: bool) -> Iterator[tuple[Any, bool]]:
    for child in parent:
        name = local(child)
        if name == "table-row":
            yield child, header
        elif name in _GROUPS:
            yield from _rows(child, header=header or name == "table-header-rows")


def _cells(row: Any, text_of: Callable[[Any], str], above: dict[int, Cell]) -> list[Cell]:
    found: list[Cell] = []
    column = 0
    for element in row:
        name = local(element)
        if name not in ("table-cell", "covered-table-cell"):
            continue
        repeated = small(element.get(TABLE + "number-columns-repeated"), 1)
        text = text_of(element) if name == "table-cell" else ""
        for _ in range(repeated):
            if column >= _MAX_COLUMNS:
                return found
            over = above.get(column)
            if name == "covered-table-cell":
                if over is not None and over.height > 1:
                    found.append(Cell(over.text, column, over.width, over.height - 1, again=True))
            else:
                width = min(max(small(element.get(TABLE + "number-columns-spanned"), 1), 1), _MAX_COLUMNS)
                height = max(small(element.get(TABLE + "number-rows-spanned"), 1), 1)
                found.append(Cell(text, column, width, height))
            column += 1
    return found
