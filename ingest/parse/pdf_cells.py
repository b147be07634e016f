"""Tables of a PDF page without borders: cells that line up."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from ingest.parse.pdf_tables import Cell
from ingest.parse.pdf_words import Piece

_STRAY = 0.15  # of the rows may run over the gap between two columns
_MIN_GAP = 0.3  # in font sizes, between two columns


def aligned(rows: list[list[Piece]]) -> list[list[Cell]]:
    """Cells of rows without borders, in the columns that the rows share.

    Args:
        rows: the pieces of each row from the left.

    Returns:
        One list of cells per row, all of one length; empty cells stay empty. A piece that spans several
        columns stands in the first of them.
    """
    columns = _columns(rows)
    result: list[list[Cell]] = []
    for row in rows:
        cells: list[Cell] = [[] for _ in columns]
        for piece in row:
            for part in _parted(piece, columns) if len(row) > 1 else [piece]:
                cells[_column(columns, part)].append(part)
        result.append(cells)
    return result


def _columns(rows: list[list[Piece]]) -> list[tuple[float, float]]:
    """Left and right edges of the columns: stretches of the width that few rows leave empty."""
    steps: list[tuple[float, int]] = []
    for row in rows:
        for piece in row:
            steps += [(piece.x0, 1), (piece.x1, -1)]
    steps.sort()
    few = _STRAY * len(rows)
    columns: list[tuple[float, float]] = []
    cover, start = 0, None
    for at, step in steps:
        cover += step
        if cover > few and start is None:
            start = at
        elif cover <= few and start is not None:
            columns.append((start, at))
            start = None
    merged: list[tuple[float, float]] = []
    for x0, x1 in columns:
        if merged and x0 - merged[-1][1] < _MIN_GAP * rows[0][0].size:
            merged[-1] = (merged[-1][0], x1)
        else:
            merged.append((x0, x1))
    return merged or [(rows[0][0].x0, rows[0][-1].x1)]


def _parted(piece: Piece, columns: list[tuple[float, float]]) -> list[Piece]:
    """A piece that runs over the gap between two columns, cut at its space there, if it has one."""
    for (_, left), (right, _) in pairwise(columns):
        if not (piece.x0 < left - piece.size and piece.x1 > right + piece.size and " " in piece.text):
            continue
        per_char = (piece.x1 - piece.x0) / len(piece.text)
        at = ((left + right) / 2 - piece.x0) / per_char
        space = min(
            (i for i, c in enumerate(piece.text) if c == " "), key=lambda index: abs(index + 0.5 - at)
        )
        if abs(space + 0.5 - at) * per_char > 1.2 * piece.size:
            continue
        cut = piece.x0 + per_char * space
        head = replace(piece, text=piece.text[:space], x1=round(cut, 1))
        tail = replace(piece, text=piece.text[space + 1 :], x0=round(cut + per_char, 1))
        return [head, *_parted(tail, columns)]
    return [piece]


def _column(columns: list[tuple[float, float]], piece: Piece) -> int:
    overlaps = [min(piece.x1, x1) - max(piece.x0, x0) for x0, x1 in columns]
    best = max(overlaps)
    if best > 0:
        # A spanning piece belongs to the first column that it really covers.
        return next(i for i, o in enumerate(overlaps) if o > 0.5 * min(best, columns[i][1] - columns[i][0]))
    middle = (piece.x0 + piece.x1) / 2
    return min(range(len(columns)), key=lambda i: abs((columns[i][0] + columns[i][1]) / 2 - middle))
