"""HTML tables → rows that can be read alone: spans spread out, header rows joined into one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ingest.parse.html_lines import Lines
from ingest.parse.html_page import INLINE_TAGS
from ingest.parse.model import Block, BlockKind, Fragment

_GROUPS = frozenset({"thead", "tbody", "tfoot"})
_BETWEEN_CELLS = " | "
_SHORT_CELL = 100
_LONG_CELL = 600  # characters; a box of text rather than a value
_MAX_SPAN = 100
_MAX_GRID = 100_000  # cells of one table that spans may fill
_MAX_HEADER_ROWS = 3
_MAX_NESTED = 20


@dataclass(slots=True)
class _Cell:
    """A cell; spans repeat it in each place that it covers."""

    fragments: tuple[Fragment, ...]
    is_head: bool
    nested: list[Any]

    @property
    def text(self) -> str:
        return "".join((f.glue if i else "") + f.text for i, f in enumerate(self.fragments))


@dataclass(slots=True)
class _Row:
    cells: list[_Cell]
    in_head: bool

    @property
    def is_blank(self) -> bool:
        return not any(c.fragments or c.nested for c in self.cells)

    @property
    def is_all_heads(self) -> bool:
        return len(self.cells) > 1 and all(c.is_head or not c.fragments for c in self.cells)


def is_layout(table: Any) -> bool:
    """Whether the table places parts of a page rather than values."""
    if table.get("role") in ("presentation", "none"):
        return True
    cells = [cell for row, _ in _rows_of(table) for cell in _cells_of(row)]
    if len(cells) <= 1:
        return True
    if (
        any(c.tag == "th" for c in cells)
        or table.find("caption") is not None
        or table.find("thead") is not None
    ):
        return False
    if next(table.iter("h1", "h2", "h3", "h4", "article", "section", "main"), None) is not None:
        return True
    if any(inner is not table for inner in table.iter("table")):
        rows = [_cells_of(row) for row, _ in _rows_of(table)]
        return 2 * sum(map(_has_values, rows)) < len(rows)
    return any(sum(map(len, c.itertext())) > _LONG_CELL for c in cells)


def _has_values(cells: list[Any]) -> bool:
    """Whether a row holds short texts side by side and no table."""
    if len(cells) < 2 or any(next(c.iter("table"), None) is not None for c in cells):
        return False
    return all(sum(map(len, c.itertext())) <= _SHORT_CELL for c in cells)


def table_blocks(table: Any, tables: int, line: int, depth: int = 0) -> tuple[list[Block], int, int]:
    """Read a table of values.

    Args:
        table: its element.
        tables: how many tables came before it.
        line: where the walk is.
        depth: of tables in tables.

    Returns:
        Its caption and rows, each followed by the tables that stand inside it; how many tables there are now;
        the last line reached.
    """
    lines = Lines(line)
    blocks: list[Block] = []
    tables += 1
    own = tables
    captions = [_read(caption, lines) for caption in table.findall("caption")]
    blocks.extend(Block(BlockKind.PARAGRAPH, fragments) for fragments in captions if fragments)
    rows = [row for row in _grid(table, lines) if not row.is_blank]
    heads = _header_rows(rows)
    if heads and (header := _joined_header(rows[:heads])):
        blocks.append(Block(BlockKind.TABLE_ROW, header, table=own, is_table_header=True))
    seen: set[Any] = set()  # a cell that spans rows shows its tables once
    for row in rows[heads:]:
        if any(c.fragments for c in row.cells):
            blocks.append(Block(BlockKind.TABLE_ROW, _row_fragments(row), table=own))
        for nested in (t for c in row.cells for t in c.nested):
            if nested not in seen and depth < _MAX_NESTED:
                seen.add(nested)
                inner, tables, _ = table_blocks(nested, tables, nested.sourceline or lines.line, depth + 1)
                blocks.extend(inner)
    return blocks, tables, lines.line


def _rows_of(table: Any) -> Iterator[tuple[Any, bool]]:
    """The table's own rows, and whether they stand in its head."""
    for child in table:
        if child.tag == "tr":
            yield child, False
        elif child.tag in _GROUPS:
            for row in child:
                if row.tag == "tr":
                    yield row, child.tag == "thead"


def _cells_of(row: Any) -> list[Any]:
    return [c for c in row if c.tag in ("td", "th")]


def _grid(table: Any, lines: Lines) -> list[_Row]:
    """Rows with every span filled in."""
    rows: list[_Row] = []
    hanging: dict[int, tuple[_Cell, int]] = {}  # column → cell from above and rows it still covers
    budget = _MAX_GRID
    for element, in_head in _rows_of(table):
        cells: list[_Cell] = []
        for cell in _cells_of(element):
            _take_hanging(cells, hanging)
            read = _Cell(*_contents(cell, lines))
            across = _span(cell.get("colspan")) if budget > 0 else 1
            down = _span(cell.get("rowspan")) if budget > 0 else 1
            budget -= across * down
            for _ in range(across):
                if down > 1:
                    hanging[len(cells)] = (read, down - 1)
                cells.append(read)
        _take_hanging(cells, hanging)
        rows.append(_Row(cells, in_head))
    return rows


def _take_hanging(cells: list[_Cell], hanging: dict[int, tuple[_Cell, int]]) -> None:
    """Fill the columns at the end of `cells` that a cell from above covers."""
    while len(cells) in hanging:
        column = len(cells)
        cell, left = hanging[column]
        if left > 1:
            hanging[column] = (cell, left - 1)
        else:
            del hanging[column]
        cells.append(cell)


def _span(text: str | None) -> int:
    return (
        max(1, min(_MAX_SPAN, int(text)))
        if text and text.isascii() and text.isdigit() and len(text) < 6
        else 1
    )


def _contents(cell: Any, lines: Lines) -> tuple[tuple[Fragment, ...], bool, list[Any]]:
    nested: list[Any] = []
    fragments = _read(cell, lines, nested)
    return fragments, cell.tag == "th" or _is_bold(cell), nested


def _is_bold(cell: Any) -> bool:
    """Whether all text of the cell is set bold, as headers without `<th>` are."""
    return (
        len(cell) == 1
        and cell[0].tag in ("b", "strong")
        and not (cell.text or "").strip()
        and not (cell[0].tail or "").strip()
    )


def _read(element: Any, lines: Lines, nested: list[Any] | None = None) -> tuple[Fragment, ...]:
    """Text of a cell in one row; tables inside it go to `nested`."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

    lines.reach(element)
    if not len(element):
        lines.add(element.text)
        return tuple(lines.take())
    walk = etree.iterwalk(element, events=("start", "end"))
    for event, inner in walk:
        tag = inner.tag
        if event == "start":
            lines.reach(inner)
            if inner is not element and (tag not in INLINE_TAGS or tag == "br"):
                lines.part()
            if tag == "table" and nested is not None:
                nested.append(inner)
                walk.skip_subtree()
            else:
                lines.add(inner.text)
        elif inner is not element:
            if tag not in INLINE_TAGS:
                lines.part()
            lines.add(inner.tail)
    return tuple(lines.take())


def _header_rows(rows: list[_Row]) -> int:
    """How many rows at the top name the columns."""
    count = 0
    while count < min(_MAX_HEADER_ROWS, len(rows) - 1) and (
        rows[count].in_head or (rows[count].is_all_heads and not _is_body_of_heads(rows, count))
    ):
        count += 1
    return count


def _is_body_of_heads(rows: list[_Row], count: int) -> bool:
    """Whether the rows below are made of header cells too: then those are not names of columns."""
    return count > 0 and len(rows) > count + 1 and rows[count + 1].is_all_heads


def _joined_header(rows: list[_Row]) -> tuple[Fragment, ...]:
    """One row in which each column carries its names from top to bottom."""
    if len(rows) == 1:
        return _row_fragments(rows[0])
    columns = max(len(row.cells) for row in rows)
    fragments: list[Fragment] = []
    for column in range(columns):
        stack = [row.cells[column] for row in rows if column < len(row.cells)]
        names = list(dict.fromkeys(cell.text for cell in stack if cell.fragments))
        line = next((cell.fragments[0].line for cell in stack if cell.fragments), None)
        fragments.append(Fragment(" ".join(names), _BETWEEN_CELLS, line=line))
    return tuple(fragments)


def _row_fragments(row: _Row) -> tuple[Fragment, ...]:
    """The cells of a row; one that spans all of it stands once."""
    cells = row.cells[:1] if len({id(c) for c in row.cells}) == 1 else row.cells
    fragments: list[Fragment] = []
    for cell in cells:
        if not cell.fragments:
            fragments.append(Fragment("", _BETWEEN_CELLS))
            continue
        first = cell.fragments[0]
        fragments.append(Fragment(first.text, _BETWEEN_CELLS, line=first.line))
        fragments.extend(cell.fragments[1:])
    return tuple(fragments)
