"""Pieces of a page → lines in reading order. Columns are read in turn, never across the gutter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from core.types import Box
from ingest.parse.pdf_words import PageText, Piece

_GRID = 120  # positions across a page at which a gutter is looked for
_CELL_GAP = 1.6  # in font sizes: pieces of one row further apart are table cells
_MIN_COLUMN_ROWS = 3
_MIN_PROSE_CHARS = 12  # a typical line of a column; table cells are shorter
_MAX_CROSSING = 0.34  # share of rows that may run across a gutter (titles, wide figures)


@dataclass(frozen=True, slots=True)
class Region:
    """The column (or page) that lines were read from: left and right edges in points."""

    number: int
    x0: float
    x1: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line of one column; `cells` are its pieces where wide gaps part them."""

    text: str
    page: int
    box: Box
    size: float
    region: Region
    cells: tuple[Piece, ...] = field(default=())


def lines_of_page(page: PageText) -> list[Line]:
    """Lines of a page in reading order."""
    reader = _Reader(page)
    reader.read(page.pieces, depth=0)
    return reader.lines


class _Reader:
    def __init__(self, page: PageText) -> None:
        self._page = page
        self.lines: list[Line] = []
        self._regions = 0

    def read(self, pieces: Sequence[Piece], depth: int) -> None:
        """Append the lines of `pieces`: column by column where there is a gutter, else row by row."""
        gutter = _gutter(pieces) if depth < 4 else None
        if gutter is None:
            self._emit(pieces)
            return
        band: list[Piece] = []
        for row in rows_of(pieces):
            if any(p.x0 < gutter < p.x1 for p in row):
                self._read_band(band, gutter, depth)
                band = []
                self._emit(row)
            else:
                band.extend(row)
        self._read_band(band, gutter, depth)

    def _read_band(self, band: list[Piece], gutter: float, depth: int) -> None:
        for side in ([p for p in band if p.x1 <= gutter], [p for p in band if p.x0 >= gutter]):
            if side:
                self.read(side, depth + 1)

    def _emit(self, pieces: Sequence[Piece]) -> None:
        if not pieces:
            return
        region = Region(self._regions, min(p.x0 for p in pieces), max(p.x1 for p in pieces))
        self._regions += 1
        for row in rows_of(pieces):
            self.lines.append(_line(row, self._page.number, region))


def _line(row: list[Piece], page: int, region: Region) -> Line:
    size = median(p.size for p in row)
    parts = [row[0].text]
    gaps = False
    for left, right in pairwise(row):
        gaps = gaps or right.x0 - left.x1 > _CELL_GAP * size
        parts.append(("" if right.x0 - left.x1 < 0.15 * size else " ") + right.text)
    box = Box(
        round(min(p.x0 for p in row), 1),
        round(min(p.top for p in row), 1),
        round(max(p.x1 for p in row), 1),
        round(max(p.bottom for p in row), 1),
    )
    return Line("".join(parts), page, box, size, region, tuple(_cells(row, size)) if gaps else ())


def _cells(row: list[Piece], size: float) -> list[Piece]:
    cells = [row[0]]
    for piece in row[1:]:
        last = cells[-1]
        if piece.x0 - last.x1 > _CELL_GAP * size:
            cells.append(piece)
            continue
        cells[-1] = Piece(
            f"{last.text} {piece.text}",
            last.x0,
            min(last.top, piece.top),
            piece.x1,
            max(last.bottom, piece.bottom),
            last.size,
        )
    return cells


def rows_of(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Group pieces that share a baseline; rows from the top, pieces from the left."""
    rows: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda p: (p.middle, p.x0)):
        if rows:
            last = rows[-1]
            anchor = max(last, key=lambda p: p.size)
            overlap = min(anchor.bottom, piece.bottom) - max(anchor.top, piece.top)
            if overlap > 0.5 * min(anchor.bottom - anchor.top, piece.bottom - piece.top):
                last.append(piece)
                continue
        rows.append([piece])
    for row in rows:
        row.sort(key=lambda p: p.x0)
    return rows


def _gutter(pieces: Sequence[Piece]) -> float | None:
    """The x position of the clearest gutter between two columns of prose, if there is one."""
    if len(pieces) < 2 * _MIN_COLUMN_ROWS:
        return None
    x0, x1 = min(p.x0 for p in pieces), max(p.x1 for p in pieces)
    width = x1 - x0
    if width <= 0:
        return None
    steps = [0] * (_GRID + 1)
    for piece in pieces:
        first = int((piece.x0 - x0) / width * _GRID)
        last = int((piece.x1 - x0) / width * _GRID) + 1
        steps[max(0, first)] += 1
        steps[min(_GRID, last)] -= 1
    best: tuple[int, int, float] | None = None
    cover = 0
    run: tuple[int, int] | None = None  # (cover, first grid position)
    for at in range(_GRID + 1):
        cover += steps[at]
        if run is not None and cover == run[0]:
            continue
        if run is not None:
            candidate = (run[0], run[1] - at, x0 + (run[1] + at) / 2 / _GRID * width)
            if (best is None or candidate < best) and _parts_prose(pieces, candidate[2], width):
                best = candidate
        run = (cover, at)
    return None if best is None else best[2]


def _parts_prose(pieces: Sequence[Piece], at: float, width: float) -> bool:
    """Whether two columns of running text stand left and right of `at`."""
    left = [p for p in pieces if p.x1 <= at]
    right = [p for p in pieces if p.x0 >= at]
    crossing = len(pieces) - len(left) - len(right)
    if crossing > _MAX_CROSSING * min(len(rows_of(left)), len(rows_of(right))) + 1:
        return False
    for side in (left, right):
        if len(side) < _MIN_COLUMN_ROWS:
            return False
        if median(len(p.text) * (2 if p.text[:1] > "\u2e7f" else 1) for p in side) < _MIN_PROSE_CHARS:
            return False
        if median(p.x1 - p.x0 for p in side) < 0.12 * width:
            return False
    # The columns stand side by side: a real part of their heights is common.
    low = max(min(p.top for p in left), min(p.top for p in right))
    high = min(max(p.bottom for p in left), max(p.bottom for p in right))
    tallest = max(max(p.bottom for p in side) - min(p.top for p in side) for side in (left, right))
    return high - low > 0.25 * tallest
