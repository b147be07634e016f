"""Tables of a PDF page whose cells stand between drawn borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ingest.parse.pdf_rules import Rule
from ingest.parse.pdf_words import Piece

_TOUCH = 3.0  # points: borders this close meet
_SAME = 2.0  # points: borders this close are one
_MAX_RULES = 600  # more are a drawing

Cell = list[Piece]


@dataclass(slots=True, eq=False)
class Table(Piece):
    """A table with drawn borders; it takes the place of its pieces on the page.

    Attributes:
        rows: cells in order, each with its lines from the top; a cell that a merged one covers is empty, one
            that is merged with the cell above repeats its lines.
        edges: x positions of the column borders.
    """

    rows: list[list[Cell]] = field(default_factory=list)
    edges: list[float] = field(default_factory=list)


def with_tables(pieces: list[Piece], rules: Sequence[Rule]) -> list[Piece]:
    """The pieces of a page, those between the borders of a table replaced by it."""
    if len(rules) < 5 or len(rules) > _MAX_RULES:
        return pieces
    for grid in _grids(rules):
        inside = [p for p in pieces if grid.holds(p)]
        table = grid.table(inside) if len(inside) >= 3 else None
        if table is not None:
            taken = set(map(id, inside))
            pieces = [*(p for p in pieces if id(p) not in taken), table]
    return pieces


def _grids(rules: Sequence[Rule]) -> list[_Grid]:
    """Sets of borders that touch each other and form at least two columns and two rows."""
    upright = _merged([(r.x0 / 2 + r.x1 / 2, r.top, r.bottom) for r in rules if r.vertical])
    level = _merged([(r.top / 2 + r.bottom / 2, r.x0, r.x1) for r in rules if not r.vertical])
    if not upright or len(level) < 2:
        return []
    v, h = np.array(upright), np.array(level)
    meets = (
        (v[:, None, 0] >= h[None, :, 1] - _TOUCH)
        & (v[:, None, 0] <= h[None, :, 2] + _TOUCH)
        & (h[None, :, 0] >= v[:, None, 1] - _TOUCH)
        & (h[None, :, 0] <= v[:, None, 2] + _TOUCH)
    )
    found: list[_Grid] = []
    free = set(range(len(v)))
    while free:
        mine = np.zeros(len(v), np.bool_)
        mine[free.pop()] = True
        while True:
            across = meets[mine].any(axis=0)
            grown = mine | meets[:, across].any(axis=1)
            if (grown == mine).all():
                break
            mine = grown
        free -= set(np.flatnonzero(mine).tolist())
        if not across.any():
            continue  # a bar in the margin
        grid = _Grid(v[mine], h[across])
        if len(grid.xs) >= 3 and len(grid.ys) >= 3:
            found.append(grid)
    return found


def _merged(lines: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Lines as (position, start, end), pieces of one line joined."""
    out: list[tuple[float, float, float]] = []
    for line in sorted((round(at), start, end) for at, start, end in lines):
        same = _same_line(out, line)
        if same is None:
            out.append(line)
        else:
            at, start, end = out[same]
            out[same] = (at, min(start, line[1]), max(end, line[2]))
    return out


def _same_line(lines: list[tuple[float, float, float]], line: tuple[float, float, float]) -> int | None:
    """Index of the line that `line` goes on, among lines sorted by position."""
    at, start, end = line
    for index in range(len(lines) - 1, -1, -1):
        other, begin, stop = lines[index]
        if at - other > _SAME:
            return None
        if start <= stop + _TOUCH and end >= begin - _TOUCH:
            return index
    return None


def _positions(values: Sequence[float]) -> list[float]:
    found: list[float] = []
    for value in sorted(values):
        if not found or value - found[-1] > 2 * _SAME:
            found.append(value)
    return found


class _Grid:
    """Borders of one table: `v` and `h` hold (position, start, end) of upright and level lines."""

    def __init__(self, v: np.ndarray, h: np.ndarray) -> None:
        self._v: list[tuple[float, float, float]] = v.tolist()
        self._h: list[tuple[float, float, float]] = h.tolist()
        self.xs = _positions([*v[:, 0].tolist(), float(h[:, 1].min()), float(h[:, 2].max())])
        self.ys = _positions([*h[:, 0].tolist(), float(v[:, 1].min()), float(v[:, 2].max())])

    def holds(self, piece: Piece) -> bool:
        """Whether a piece stands inside the outer borders."""
        x, y = (piece.x0 + piece.x1) / 2, (piece.top + piece.bottom) / 2
        return self.xs[0] - 1 <= x <= self.xs[-1] + 1 and self.ys[0] - 1 <= y <= self.ys[-1] + 1

    def table(self, pieces: list[Piece]) -> Table | None:
        """The table with its cells filled; None where too few of them hold text."""
        columns, rows = len(self.xs) - 1, len(self.ys) - 1
        cells: list[list[Cell]] = [[[] for _ in range(columns)] for _ in range(rows)]
        for piece in sorted(pieces, key=lambda p: (p.top + p.bottom, p.x0)):
            row = _slot(self.ys, (piece.top + piece.bottom) / 2)
            column = _slot(self.xs, (piece.x0 + piece.x1) / 2)
            row, column = self._owner(row, column)
            cells[row][column].append(piece)
        filled = [sum(1 for cell in row if cell) for row in cells]
        if sum(1 for n in filled if n) < 2 or max(filled) < 2:
            return None
        self._repeat_merged(cells)
        kept: list[list[Cell]] = []
        for row in cells:
            if any(row):
                kept.extend(_text_rows(row))
        used = [c for c in range(columns) if any(row[c] for row in kept)]
        kept = [[row[c] for c in used] for row in kept]
        text = " ".join(p.text for p in pieces)
        size = pieces[0].size
        x0, top, x1, bottom = self.xs[0], self.ys[0], self.xs[-1], self.ys[-1]
        return Table(text, x0, top, x1, bottom, size, rows=kept, edges=self.xs)

    def _owner(self, row: int, column: int) -> tuple[int, int]:
        """The first cell of the merged cell that this one is part of."""
        while column > 0 and not self._border(self._v, self.xs[column], self._mid(self.ys, row)):
            column -= 1
        while row > 0 and not self._border(self._h, self.ys[row], self._mid(self.xs, column)):
            row -= 1
        return row, column

    def _repeat_merged(self, cells: list[list[Cell]]) -> None:
        """Text of a cell that runs over several rows stands in each of them."""
        for row in range(1, len(cells)):
            for column, cell in enumerate(cells[row]):
                if cell or not cells[row - 1][column] or not any(cells[row]):
                    continue
                if not self._border(self._h, self.ys[row], self._mid(self.xs, column)):
                    cells[row][column] = cells[row - 1][column]

    @staticmethod
    def _mid(edges: list[float], index: int) -> float:
        return (edges[index] + edges[index + 1]) / 2

    @staticmethod
    def _border(lines: list[tuple[float, float, float]], at: float, across: float) -> bool:
        """Whether a border at position `at` covers the point `across` along it."""
        for position, start, end in lines:
            if abs(position - at) <= 2 * _SAME and start <= across + _TOUCH and end >= across - _TOUCH:
                return True
        return False


def _slot(edges: list[float], at: float) -> int:
    return max(0, min(sum(1 for edge in edges if edge <= at) - 1, len(edges) - 2))


def _text_rows(cells: list[Cell]) -> list[list[Cell]]:
    """One row, or several where borders between them are missing: cells with equally many lines side by side.

    Where numbers stand in most of those cells, a cell of one line beside them belongs to all of the rows.
    """
    levels = [_levels(cell) for cell in cells]
    several = [level for level in levels if len(level) > 1]
    count = len(several[0]) if several else 1
    if len(several) < 2 or any(len(level) != count for level in several):
        return [cells]
    if any(len(level) == 1 for level in levels):
        numeric = sum(all(is_number(" ".join(p.text for p in line)) for line in level) for level in several)
        if numeric < 0.6 * len(several):
            return [cells]
    for lines in zip(*several, strict=True):
        tops = [line[0].top for line in lines]
        if max(tops) - min(tops) > 0.4 * lines[0][0].size:
            return [cells]
    return [
        [level[index] if len(level) > 1 else level[0] if level else [] for level in levels]
        for index in range(count)
    ]


def is_number(text: str) -> bool:
    """Whether a cell holds a number, a date or a share rather than words."""
    return any(c.isdigit() for c in text) and sum(c.isalpha() for c in text) <= 2


def _levels(cell: Cell) -> list[Cell]:
    """The lines of a cell, each with its pieces."""
    lines: list[Cell] = []
    for piece in cell:
        if lines and piece.top < lines[-1][-1].bottom - 0.5 * piece.size:
            lines[-1].append(piece)
        else:
            lines.append([piece])
    return lines
