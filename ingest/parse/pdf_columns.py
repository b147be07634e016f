"""Where on a page two columns of running text stand side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ingest.parse.pdf_words import Piece

_MIN_LINES = 3  # of each column
_MIN_PROSE_CHARS = 12  # a typical line of a column; table cells are shorter
_MIN_WIDTH = 0.12  # of a column, as a share of the text's width
_MIN_SHARED_HEIGHT = 0.5  # of the lower column, that both have in common
_FULL = 0.7  # of the widest lines
_APART = 1.6  # in font sizes: lines with more space between them do not belong together

Rows = list[list[Piece]]


@dataclass(frozen=True, slots=True)
class Band:
    """Rows `first` up to `end` (exclusive) of a page are two columns, left and right of `at`."""

    first: int
    end: int
    at: float


def column_band(rows: Rows) -> Band | None:
    """The band of rows that is most clearly two columns, or None where the rows are one column.

    More columns are found by asking again for each side.
    """
    if sum(len(row) for row in rows) < 2 * _MIN_LINES:
        return None
    pieces = [piece for row in rows for piece in row]
    ends = sorted(piece.x1 for piece in pieces)
    begins = sorted(piece.x0 for piece in pieces)
    # A gutter has three line ends left of it and three line beginnings right of it.
    if ends[_MIN_LINES - 1] > begins[-_MIN_LINES]:
        return None
    width = ends[-1] - begins[0]
    best: tuple[int, Band] | None = None
    for at in _edges(pieces, ends[_MIN_LINES - 1], begins[-_MIN_LINES]):
        for first, end in _clear_runs(rows, at):
            band = _trimmed(rows, first, end, at)
            if band is None:
                continue
            score = _score(rows, band, width)
            if score and (best is None or score > best[0]):
                best = (score, band)
    return None if best is None else best[1]


def _edges(pieces: list[Piece], low: float, high: float) -> list[float]:
    """Positions left of which a column may end: common left edges of lines."""
    seen = Counter(round(piece.x0) for piece in pieces)
    found: list[float] = []
    for edge in sorted(seen):
        close = seen[edge] + seen[edge + 1]
        if (
            close >= _MIN_LINES
            and low - 1 <= edge - 1
            and edge - 1 <= high
            and not (found and edge - 2 <= found[-1])
        ):
            found.append(edge - 1.0)
    return found


def _clear_runs(rows: Rows, at: float) -> list[tuple[int, int]]:
    """Runs of rows that nothing crosses `at` in."""
    runs: list[tuple[int, int]] = []
    begin: int | None = None
    for index, row in enumerate(rows):
        crossed = False
        for piece in row:
            if piece.x0 < at < piece.x1 - 0.5:
                crossed = True
                break
        if not crossed:
            if begin is None:
                begin = index
        elif begin is not None:
            if index - begin >= _MIN_LINES:
                runs.append((begin, index))
            begin = None
    if begin is not None and len(rows) - begin >= _MIN_LINES:
        runs.append((begin, len(rows)))
    return runs


def _trimmed(rows: Rows, first: int, end: int, at: float) -> Band | None:
    """The run without the rows at its ends that read the same, or better, outside of it."""
    while first < end and rows[first][-1].x0 < at:  # only the left column: it comes first anyway
        first += 1
    # Text at the right above all else, such as a date, does not open a column.
    while first + 1 < end and rows[first][0].x0 >= at and _is_apart(rows[first], rows[first + 1]):
        first += 1
    while end > first and rows[end - 1][0].x0 >= at and rows[end - 1][-1].x0 >= at:
        if not _is_apart(rows[end - 2], rows[end - 1]):
            break
        end -= 1
    # Lines at the left below a break: a heading over the text that follows, or a page number.
    cut = end
    while cut - 1 > first and rows[cut - 1][-1].x0 < at:
        cut -= 1
        if _is_apart(rows[cut - 1], rows[cut]):
            end = cut
    return Band(first, end, at) if end - first >= _MIN_LINES else None


def _is_apart(above: list[Piece], below: list[Piece]) -> bool:
    gap = min(p.top for p in below) - max(p.bottom for p in above)
    return gap > (_APART - 1) * max(below[0].size, above[0].size) * 1.2


def _score(rows: Rows, band: Band, width: float) -> int:
    """How many pieces the two columns hold; 0 where they are not columns of running text."""
    left = [p for row in rows[band.first : band.end] for p in row if p.x0 < band.at]
    right = [p for row in rows[band.first : band.end] for p in row if p.x0 >= band.at]
    if not (_is_prose(left, width) and _is_prose(right, width)):
        return 0
    tops = [min(p.top for p in side) for side in (left, right)]
    bottoms = [max(p.bottom for p in side) for side in (left, right)]
    shared = min(bottoms) - max(tops)
    lowest = min(b - t for b, t in zip(bottoms, tops, strict=True))
    return len(left) + len(right) if shared > _MIN_SHARED_HEIGHT * lowest else 0


def _is_prose(side: list[Piece], width: float) -> bool:
    """Whether most of the text in a column is running text; labels of a figure may stand in it too."""
    letters = running = 0
    widths: list[float] = []
    for piece in side:
        length = _letters(piece.text)
        letters += length
        wide = piece.x1 - piece.x0
        if length >= _MIN_PROSE_CHARS and wide >= _MIN_WIDTH * width and not piece.mono:
            widths.append(wide)
            running += length
    if len(widths) < max(_MIN_LINES, 0.15 * len(side)) or running < 0.5 * letters:
        return False
    # Lines of a paragraph fill their column; entries of a list or table are as long as they happen to be.
    full = _FULL * sorted(widths)[-max(1, len(widths) // 10)]
    return sum(1 for wide in widths if wide >= full) >= 0.5 * len(widths)


def _letters(text: str) -> int:
    """Length of a text in Latin letters; an ideograph is two wide."""
    return len(text) * (2 if text[:1] > "\u2e7f" else 1)
