"""Pieces of a page → lines in reading order. Columns are read in turn, never across the gutter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter

from core.types import Box
from ingest.parse.pdf_columns import Band, column_band
from ingest.parse.pdf_frame import turned_back
from ingest.parse.pdf_tables import Table, with_tables
from ingest.parse.pdf_words import PageText, Piece

_CELL_GAP = 1.6  # in font sizes: pieces of one row further apart are table cells
_JOINED_GAP = 0.15  # in font sizes: pieces of one row closer than this are one word
_DROP_CAP = 1.8  # in body sizes: an initial that stands over several lines
_MIN_COUNTED = 15  # numbers in a margin that count all lines of a page; fewer may be a list
_MIN_COUNTED_FIFTHS = 4
_MAX_DEPTH = 8

_x0 = attrgetter("x0")


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The column (or page) that lines were read from: left and right edges in points, as turned upright."""

    page: PageText
    x0: float
    x1: float
    turn: int = 0


@dataclass(slots=True, eq=False)
class Line:
    """One line of one column.

    Coordinates as in `Piece`. A whole table with drawn borders is one line, with the table in `table`.

    Attributes:
        parts: its pieces, where there are several.
        has_cells: one of the gaps between them is as wide as between the cells of a table.
    """

    text: str
    x0: float
    top: float
    x1: float
    bottom: float
    size: float
    bold: bool
    region: Region
    parts: list[Piece] = field(default_factory=list)
    has_cells: bool = False
    mono: bool = False
    table: Table | None = None

    @property
    def page(self) -> int:
        """1-based number of its page."""
        return self.region.page.number

    @property
    def box(self) -> Box:
        """Its place on the page as shown."""
        if self.region.turn:
            return shown_box(self, self.region)
        return Box(self.x0, self.top, self.x1, self.bottom)


def shown_box(place: Line | Piece, region: Region) -> Box:
    """The box of a line or piece on the page as shown."""
    box = (place.x0, place.top, place.x1, place.bottom)
    if region.turn:
        page = region.page
        box = turned_back(box, region.turn, page.width, page.height)
        return Box(*(round(value, 1) for value in box))
    return Box(*box)


def lines_of_page(page: PageText) -> list[Line]:
    """Lines of a page in reading order; text in other directions follows the rest."""
    plain = _without_line_numbers(page.pieces)
    pieces = with_tables(plain, page.rules) if page.turn == 0 else plain
    reader = _Reader(page, page.turn, has_tables=pieces is not plain)
    reader.read(rows_of(_settled(pieces)), 0)
    lines = reader.lines
    for other in page.others:
        aside = _Reader(page, other.turn)
        aside.read(rows_of(other.pieces), 0)
        lines.extend(aside.lines)
    return lines


class _Reader:
    def __init__(self, page: PageText, turn: int, has_tables: bool = False) -> None:
        self._page = page
        self._turn = turn
        self._has_tables = has_tables
        self.lines: list[Line] = []

    def read(self, rows: list[list[Piece]], depth: int) -> None:
        """Append the lines of `rows`: column by column where there is a gutter, else row by row."""
        band = column_band(rows) if depth < _MAX_DEPTH else None
        if band is None:
            self._emit(rows)
            return
        self.read(rows[: band.first], depth + 1)
        for side in _sides(rows, band):
            self.read(side, depth + 1)
        self.read(rows[band.end :], depth + 1)

    def _emit(self, rows: list[list[Piece]]) -> None:
        if not rows:
            return
        region = Region(
            self._page, min(row[0].x0 for row in rows), max(p.x1 for row in rows for p in row), self._turn
        )
        if not self._has_tables:
            self.lines.extend([_line(row, region) for row in rows])
            return
        for row in rows:
            if any(isinstance(piece, Table) for piece in row):
                self._emit_tables(row, region)
            else:
                self.lines.append(_line(row, region))

    def _emit_tables(self, row: list[Piece], region: Region) -> None:
        """Text beside a table stands before it."""
        self.lines.extend(
            _line(beside, region) for beside in rows_of([p for p in row if not isinstance(p, Table)])
        )
        for p in row:
            if isinstance(p, Table):
                line = Line(p.text, p.x0, p.top, p.x1, p.bottom, p.size, False, region, table=p)
                self.lines.append(line)


def _sides(rows: list[list[Piece]], band: Band) -> Iterable[list[list[Piece]]]:
    pieces = [p for row in rows[band.first : band.end] for p in row]
    yield rows_of([p for p in pieces if p.x0 < band.at])
    yield rows_of([p for p in pieces if p.x0 >= band.at])


def _line(row: list[Piece], region: Region) -> Line:
    if len(row) == 1:
        p = row[0]
        return Line(p.text, p.x0, p.top, p.x1, p.bottom, p.size, p.bold, region, mono=p.mono)
    main = max(row, key=lambda p: len(p.text))
    parts = [row[0].text]
    gaps = False
    for left, right in pairwise(row):
        gap = right.x0 - left.x1
        gaps = gaps or gap > _CELL_GAP * main.size
        parts.append(("" if gap < _JOINED_GAP * main.size else " ") + right.text)
    if "\u0590" <= main.text[:1] <= "\u08ff":  # Hebrew, Arabic: the row begins at the right
        parts = [row[-1].text, *(" " + piece.text for piece in row[-2::-1])]
    return Line(
        "".join(parts),
        row[0].x0,
        min(p.top for p in row),
        max(p.x1 for p in row),
        max(p.bottom for p in row),
        main.size,
        all(p.bold for p in row),
        region,
        row,
        gaps,
        all(p.mono for p in row),
    )


def _middle(piece: Piece) -> tuple[float, float]:
    return piece.top + piece.bottom, piece.x0


def rows_of(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Group pieces that share a baseline; rows from the top, pieces from the left."""
    rows: list[list[Piece]] = []
    top = bottom = size = 0.0
    for piece in sorted(pieces, key=_middle):
        if rows:
            overlap = min(bottom, piece.bottom) - max(top, piece.top)
            if overlap > 0.5 * min(bottom - top, piece.bottom - piece.top):
                rows[-1].append(piece)
                if piece.size > size:
                    top, bottom, size = piece.top, piece.bottom, piece.size
                continue
        rows.append([piece])
        top, bottom, size = piece.top, piece.bottom, piece.size
    for row in rows:
        if len(row) > 1:
            row.sort(key=_x0)
    return rows


def _without_line_numbers(pieces: list[Piece]) -> list[Piece]:
    """The pieces of a page without numbers that count its lines, each or every fifth, in the left margin."""
    numbers = [p for p in pieces if len(p.text) <= 3 and p.text.isdecimal()]
    if len(numbers) < _MIN_COUNTED_FIFTHS:
        return pieces
    counted = set(map(id, numbers))
    lines = [p for p in pieces if id(p) not in counted]
    if len(lines) < len(numbers):
        return pieces
    edge = sorted(p.x0 for p in lines)[len(lines) // 20]
    wide = max(p.x1 for p in lines) - edge
    if sum(p.x1 - p.x0 > 0.5 * wide for p in lines) < 0.7 * len(lines):
        return pieces  # rows of a table may be numbered too, but running text is wide
    margin = sorted((p for p in numbers if p.x1 < edge), key=lambda p: p.top)
    steps = Counter(int(b.text) - int(a.text) for a, b in pairwise(margin))
    for step, enough in ((1, _MIN_COUNTED), (5, _MIN_COUNTED_FIFTHS)):
        if len(margin) >= enough and steps[step] >= 0.9 * (len(margin) - 1):
            dropped = set(map(id, margin))
            return [p for p in pieces if id(p) not in dropped]
    return pieces


def _settled(pieces: list[Piece]) -> list[Piece]:
    """Initials that stand over several lines, moved to the first of them."""
    if len(pieces) < 3:
        return pieces
    body = Counter(p.size for p in pieces).most_common(1)[0][0]
    settled: list[Piece] | None = None
    for index, piece in enumerate(pieces):
        if len(piece.text) > 2 or piece.size < _DROP_CAP * body or not piece.text[:1].isalpha():
            continue
        beside = [
            p
            for p in pieces
            if p is not piece
            and 0 <= p.x0 - piece.x1 < 2 * body
            and p.top < piece.bottom
            and p.bottom > piece.top
        ]
        if len(beside) < 2:
            continue
        first = min(beside, key=lambda p: p.top)
        settled = settled if settled is not None else list(pieces)
        # Close to the rest of its word, so that the two are joined.
        settled[index] = Piece(
            piece.text, piece.x0, first.top, first.x0, first.bottom, first.size, first.bold
        )
    return settled if settled is not None else pieces
