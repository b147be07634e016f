"""DOCX tables: merged, nested, tracked and marked rows → rows of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ingest.parse.docx_styles import W, value
from ingest.parse.docx_text import DELETED
from ingest.parse.grid import Cell, Row
from ingest.parse.ooxml import is_true

CellText = Callable[[Any], str]
_THROUGH = frozenset(W + n for n in ("sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag"))
_MAX_COLUMNS = 512


def table_rows(table: Any, text_of: CellText, place: Callable[[], int]) -> list[Row]:
    """Rows of a `w:tbl` that are not deleted.

    Args:
        table: the element.
        text_of: reads the text of a `w:tc`, once per cell, in order.
        place: gives the next place in the source.
    """
    found: list[tuple[int, bool, list[Cell]]] = []
    above: dict[int, Cell] = {}
    for row in children(table, "tr"):
        if _is_deleted(row):
            continue
        cells = list(_cells(row, text_of, above))
        properties = row.find(W + "trPr")
        mark = None if properties is None else properties.find(W + "tblHeader")
        found.append((place(), mark is not None and is_true(value(mark)), cells))
        above.update({cell.column: cell for cell in cells})
    heights: dict[int, int] = {}
    rows: list[Row] = []
    for where, marked, cells in reversed(found):  # from below, to know how far down each cell reaches
        placed: list[Cell] = []
        for cell in cells:
            height = heights.get(cell.column, 0) + 1
            heights[cell.column] = height if cell.again else 0
            placed.append(replace(cell, height=height))
        rows.append(Row(tuple(placed), where, marked))
    return rows[::-1]


def children(parent: Any, name: str) -> Iterator[Any]:
    """Direct children of a kind, also inside content controls and tracked insertions."""
    for child in parent:
        if child.tag == W + name:
            yield child
        elif child.tag in _THROUGH:
            yield from children(child, name)


def is_layout(table: Any) -> bool:
    """Whether a table only frames other content: it has one cell, or one column that holds tables."""
    rows = list(children(table, "tr"))
    widths = [sum(1 for _ in children(row, "tc")) for row in rows]
    if max(widths, default=0) != 1:
        return False
    return len(rows) == 1 or sum(1 for _ in table.iter(W + "tbl")) > 1


def _cells(row: Any, text_of: CellText, above: dict[int, Cell]) -> Iterator[Cell]:
    """Cells of a row; one that goes on from the row above repeats its text."""
    column = _skipped(row)
    last: Cell | None = None
    for element in children(row, "tc"):
        properties = element.find(W + "tcPr")
        width = _width(properties)
        text = "" if _cell_deleted(properties) else text_of(element)
        if _merge(properties, "hMerge") == "continue" and last is not None:
            last = Cell(last.text, last.column, last.width + width)
            column += width
            continue
        if last is not None:
            yield last
        vertical = _merge(properties, "vMerge")
        goes_on = vertical == "continue" and column in above
        last = Cell(above[column].text if goes_on else text, column, width, again=goes_on)
        column = min(column + width, _MAX_COLUMNS)
    if last is not None:
        yield last


def _merge(properties: Any | None, name: str) -> str | None:
    mark = None if properties is None else properties.find(W + name)
    return None if mark is None else value(mark) or "continue"


def _width(properties: Any | None) -> int:
    span = value(None if properties is None else properties.find(W + "gridSpan")) or "1"
    return min(max(int(span), 1), _MAX_COLUMNS) if span.isdigit() and len(span) < 6 else 1


def _skipped(row: Any) -> int:
    properties = row.find(W + "trPr")
    before = value(None if properties is None else properties.find(W + "gridBefore")) or "0"
    return min(int(before), _MAX_COLUMNS) if before.isdigit() and len(before) < 6 else 0


def _is_deleted(row: Any) -> bool:
    properties = row.find(W + "trPr")
    return properties is not None and any(mark.tag in DELETED for mark in properties)


def _cell_deleted(properties: Any | None) -> bool:
    return properties is not None and properties.find(W + "cellDel") is not None
