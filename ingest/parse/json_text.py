"""JSON and JSON Lines: records as readable rows, every value under the path that leads to it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ingest.parse.charset import decode
from ingest.parse.json_scan import Fields, Items, NotJson, Scalar, Value, pieces, scan
from ingest.parse.lines import line_starts, lines_of
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions, ParseWarning
from ingest.parse.text import parse_text
from ingest.parse.within import check_length

_MAX_COLUMNS = 16
_MAX_CELL_CHARS = 200  # a longer value is prose and reads better as a record of its own
_MIN_SHARED_NAMES = 0.6  # of the columns that a row fills, in the mean
_SMALL_RECORD = 160  # records below it share passages


def parse_json(content: bytes, options: ParseOptions, media_type: str) -> ParsedDocument:
    """Read JSON or JSON Lines of any encoding; what is neither after all is read as plain text."""
    decoded = decode(content)
    check_length(len(decoded.text), options.limits)
    warnings = decoded.warnings
    try:
        values, broken = _values(decoded.text), 0
    except NotJson:
        values, broken = _by_line(decoded.text)
        if len(values) <= broken:
            return parse_text(content, options, media_type)
        warnings = (
            *warnings,
            ParseWarning("broken_lines", f"{broken} lines are not JSON and were left out."),
        )
    return ParsedDocument(
        media_type=media_type,
        blocks=tuple(_Writer(decoded.text).document(values)),
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        warnings=warnings,
        partial=broken > 0,
    )


def _values(text: str) -> list[Value]:
    """One value, or one on each line (a value may run over lines; what follows begins on a new one)."""
    values: list[Value] = []
    at = 0
    while not values or at < len(text):
        value, at = scan(text, at)
        values.append(value)
    if len(values) > 1 and not all(isinstance(value, Fields | Items) for value in values):
        raise NotJson("scalars one after the other are a text")
    return values


def _by_line(text: str) -> tuple[list[Value], int]:
    """The records of JSON Lines that can be read, and the number of lines that cannot."""
    values: list[Value] = []
    broken = 0
    for line in lines_of(text):
        if line.blank:
            continue
        try:
            value, end = scan(text, line.start)
        except NotJson:
            broken += 1
            continue
        if isinstance(value, Scalar) or line.start + len(line.text.rstrip()) > end:
            broken += 1
        else:
            values.append(value)
    return values, broken


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A scalar, or an array of scalars, under its path."""

    path: str
    values: tuple[Scalar, ...]


class _Writer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = line_starts(text)
        self._sections = 0

    def document(self, values: Sequence[Value]) -> Iterator[Block]:
        if len(values) > 1:
            yield from self._array(Items(0, list(values)), "")
        else:
            yield from self._any(values[0], "")

    def _any(self, value: Value, path: str) -> Iterator[Block]:
        if isinstance(value, Items) and not _is_flat_array(value):
            yield from self._array(value, path)
        elif isinstance(value, Fields):
            plain = Fields(value.start, [], [])
            for name, inner in zip(value.names, value.values, strict=True):
                if _has_records(inner):
                    yield from self._record(plain, path)
                    plain = Fields(value.start, [], [])
                    yield from self._any(inner, _joined(path, name))
                    self._sections += 1
                else:
                    plain.names.append(name)
                    plain.values.append(inner)
            yield from self._record(plain, path)
        else:
            yield from self._record(value, path)

    def _array(self, array: Items, path: str) -> Iterator[Block]:
        """Like objects become a table, others one record after the other."""
        self._sections += 1
        columns = self._columns(array)
        if columns:
            if path:
                yield self._block(BlockKind.PARAGRAPH, [Fragment(path, line=self._line(array.start))])
            yield from self._table(array, columns)
            return
        for value in array.values:
            if _has_records(value):
                yield from self._any(value, path)
                continue
            if self._chars(value) > _SMALL_RECORD:
                self._sections += 1
            yield from self._record(value, path)

    # -- tables --------------------------------------------------------------------------------

    def _columns(self, array: Items) -> list[str]:
        """Paths of the columns, when the objects of an array make a table; else none."""
        if len(array.values) < 2 or not all(isinstance(value, Fields) for value in array.values):
            return []
        columns: dict[str, None] = {}
        filled = 0
        for value in array.values:
            leaves = list(self._leaves(value, ""))
            names = [leaf.path for leaf in leaves]
            if _has_records(value) or len(set(names)) < len(names):
                return []
            if any(sum(v.end - v.start for v in leaf.values) > _MAX_CELL_CHARS for leaf in leaves):
                return []
            columns.update(dict.fromkeys(names))
            if len(columns) > _MAX_COLUMNS:
                return []
            filled += len(names)
        wide = filled >= _MIN_SHARED_NAMES * len(columns) * len(array.values)
        return list(columns) if len(columns) > 1 and wide else []

    def _table(self, array: Items, columns: Sequence[str]) -> Iterator[Block]:
        head = [Fragment(name, " | ", line=self._line(array.values[0].start)) for name in columns]
        yield self._block(BlockKind.TABLE_ROW, head, header=True)
        for value in array.values:
            found = {leaf.path: leaf for leaf in self._leaves(value, "")}
            row: list[Fragment] = []
            for name in columns:
                cell = list(self._shown(found[name])) if name in found else []
                first = cell[0] if cell else Fragment("", line=self._line(value.start))
                row.append(Fragment(first.text, " | ", first.start, first.line, written=first.written))
                row.extend(cell[1:])
            yield self._block(BlockKind.TABLE_ROW, row)

    # -- records -------------------------------------------------------------------------------

    def _record(self, value: Value, path: str) -> Iterator[Block]:
        for leaf in self._leaves(value, path):
            shown = list(self._shown(leaf))
            if not shown:
                continue
            label = [Fragment(f"{leaf.path}:", line=shown[0].line)] if leaf.path else []
            shown[0] = Fragment(shown[0].text, " ", shown[0].start, shown[0].line, written=shown[0].written)
            yield self._block(BlockKind.LIST_ITEM, [*label, *shown])

    def _leaves(self, value: Value, path: str) -> Iterator[_Leaf]:
        """Scalars in order. Depth is bounded by the scan."""
        if isinstance(value, Scalar):
            yield _Leaf(path, (value,))
        elif isinstance(value, Fields):
            for name, inner in zip(value.names, value.values, strict=True):
                yield from self._leaves(inner, _joined(path, name))
        elif _is_flat_array(value):
            yield _Leaf(path, tuple(v for v in value.values if isinstance(v, Scalar)))
        else:
            for inner in value.values:
                yield from self._leaves(inner, path)

    def _shown(self, leaf: _Leaf) -> Iterator[Fragment]:
        """The values, several parted by commas; `null` says nothing."""
        glue = ""
        for scalar in leaf.values:
            start, end = scalar.start, scalar.end
            if not scalar.is_string:
                if self._text.startswith("null", start):
                    continue
                yield Fragment(self._text[start:end], glue, start, self._line(start))
            else:
                for n, piece in enumerate(pieces(self._text, start + 1, end - 1)):
                    verbatim = len(piece.text) == piece.length
                    yield Fragment(
                        piece.text,
                        "" if n else glue,
                        piece.start,
                        self._line(piece.start),
                        written=None if verbatim else piece.length,
                    )
            glue = ", "

    def _chars(self, value: Value) -> int:
        return sum(v.end - v.start for leaf in self._leaves(value, "") for v in leaf.values)

    def _line(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def _block(self, kind: BlockKind, fragments: list[Fragment], *, header: bool = False) -> Block:
        return Block(kind, tuple(fragments), table=self._sections, is_table_header=header)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_flat_array(value: Value) -> bool:
    return isinstance(value, Items) and all(isinstance(inner, Scalar) for inner in value.values)


def _has_records(value: Value) -> bool:
    """Whether an array of anything but scalars stands in it."""
    if isinstance(value, Scalar) or _is_flat_array(value):
        return False
    return isinstance(value, Items) or any(_has_records(inner) for inner in value.values)
