"""Tables in plain text: drawn with bars, tabs or columns of spaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from ingest.parse.lines import Line, width_of
from ingest.parse.model import Block, BlockKind, Fragment

_RULE = regex.compile(
    r"\s*[|+:=\-─━┄┌┬┐├┼┤└┴┘╔╦╗╠╬╣╚╩╝║│═\s]*[-=─━═]{2,}[|+:=\-─━┄┌┬┐├┼┤└┴┘╔╦╗╠╬╣╚╩╝║│═\s]*$"
)
_BAR = regex.compile(r"[|│┃║｜]")
_GAP = regex.compile(r"(?<=\S)(?:[ \u3000]{2,}|\u3000)(?=\S)")
_NUMBER = regex.compile(r"[-+±]?[$¥€£]?\d[\d.,]*\s*[%‰]?$")
_MAX_COLUMNS = 60
_MIN_SPACED_ROWS = 3  # two lines of prose may share a double space by chance


@dataclass(frozen=True, slots=True)
class Cell:
    """Text of a cell and its offset in the source."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows of the lines `[start, end)`; the first names the columns when `has_header`."""

    start: int
    end: int
    rows: tuple[tuple[Line, tuple[Cell, ...]], ...]
    has_header: bool

    def blocks(self, number: int) -> Iterator[Block]:
        """The rows as blocks of table `number`."""
        for n, (line, cells) in enumerate(self.rows):
            fragments = tuple(Fragment(cell.text, " | ", cell.start, line.number) for cell in cells)
            yield Block(
                BlockKind.TABLE_ROW, fragments, table=number, is_table_header=self.has_header and n == 0
            )


def tables_in(lines: Sequence[Line]) -> Iterator[TextTable]:
    """Tables among lines without a blank one between them; each line is looked at once."""
    at = 0
    while at < len(lines):
        kind = _kind(lines[at].text)
        end = at + 1
        while (
            end < len(lines)
            and (other := _kind(lines[end].text))
            and (kind in (other, "rule") or other == "rule")
        ):
            kind = other if kind == "rule" else kind
            end += 1
        if kind and kind != "rule" and (table := _table(lines, at, end, kind)):
            yield table
        at = end


def _kind(text: str) -> str:
    if _RULE.match(text):
        return "rule"
    if _BAR.search(text.strip()[1:]):
        return "bar"
    if "\t" in text.strip():
        return "tab"
    return "space" if _GAP.search(text.strip()) else ""


def _table(lines: Sequence[Line], start: int, end: int, kind: str) -> TextTable | None:
    body = [line for line in lines[start:end] if _kind(line.text) != "rule"]
    if kind == "space":
        rows = _spaced(body)
    else:
        rows = [tuple(_cut(line, _BAR if kind == "bar" else regex.compile(r"\t+"))) for line in body]
    counts = [len(row) for row in rows]
    usual = max(set(counts), key=counts.count) if counts else 0
    if len(rows) < 2 or not 2 <= usual <= _MAX_COLUMNS or counts.count(usual) < 0.8 * len(rows):
        return None
    second = next((n for n in range(start, end) if lines[n] is body[1]), end)
    ruled = any(_kind(line.text) == "rule" for line in lines[lines.index(body[0], start) + 1 : second])
    return TextTable(start, end, tuple(zip(body, rows, strict=True)), ruled or _names_columns(rows))


def _cut(line: Line, mark: regex.Pattern[str]) -> Iterator[Cell]:
    """Cells between marks; an outer mark opens or closes the row."""
    text = line.text
    edges = [0, *(e for m in mark.finditer(text) for e in m.span()), len(text)]
    spans = list(zip(edges[::2], edges[1::2], strict=True))
    if len(spans) > 2 and not text[slice(*spans[0])].strip():
        spans = spans[1:]
    if len(spans) > 2 and not text[slice(*spans[-1])].strip():
        spans = spans[:-1]
    yield from (_cell(line, start, end) for start, end in spans)


def _cell(line: Line, start: int, end: int) -> Cell:
    piece = line.text[start:end]
    lead = len(piece) - len(piece.lstrip())
    return Cell(piece.strip(), line.start + start + lead)


def _spaced(lines: Sequence[Line]) -> list[tuple[Cell, ...]]:
    """Rows cut where every line has at least two blank columns; [] when there is no such place."""
    if len(lines) < _MIN_SPACED_ROWS:
        return []
    width = max(line.width for line in lines)
    taken = bytearray(width + 1)
    columns = [_columns(line.text) for line in lines]
    for line, places in zip(lines, columns, strict=True):
        for c, place in zip(line.text, places, strict=False):
            if not c.isspace():
                taken[place] = 1
                taken[min(place + width_of(c) - 1, width)] = 1
    for place in range(1, width):  # a single blank column is a space between words
        if not taken[place] and taken[place - 1] and taken[place + 1]:
            taken[place] = 1
    bounds = [p for p in range(width) if taken[p] and (p == 0 or not taken[p - 1])]
    if len(bounds) < 2:
        return []
    return [tuple(_at_bounds(line, places, bounds)) for line, places in zip(lines, columns, strict=True)]


def _at_bounds(line: Line, places: list[int], bounds: list[int]) -> Iterator[Cell]:
    for low, high in pairwise([*bounds, 1 << 30]):
        inside = [i for i, place in enumerate(places[:-1]) if low <= place < high]
        yield _cell(line, inside[0], inside[-1] + 1) if inside else Cell("", line.start + len(line.text))


def _columns(text: str) -> list[int]:
    places = [0]
    for c in text:
        places.append(places[-1] + width_of(c))
    return places


def _names_columns(rows: Sequence[tuple[Cell, ...]]) -> bool:
    """A first row of distinct names above a column of numbers."""
    head = [cell.text for cell in rows[0]]
    if len({*head}) < len(head) or not all(head) or any(_NUMBER.match(text) for text in head):
        return False
    return any(
        all(_NUMBER.match(row[n].text) for row in rows[1:] if len(row) > n and row[n].text)
        for n in range(len(head))
    )
