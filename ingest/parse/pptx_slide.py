"""One slide → blocks in reading order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ingest.parse.drawing import drawn_blocks, is_drawn
from ingest.parse.grid import Cell, Row, caption_rows, header_rows, table_blocks
from ingest.parse.model import Block, BlockKind, Fragment
from ingest.parse.ooxml import MC, A, OfficePackage, R, chosen, is_true, local
from ingest.parse.pptx_text import TextReader

P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
TITLES = ("title", "ctrTitle")
_FURNITURE = ("dt", "ftr", "sldNum", "hdr")
_LISTS = ("body", "obj", "", "tbl")
_ROW_EMU = 182_880  # 0.2 inch: shapes whose tops differ by less stand beside each other
_MAX_COLUMNS = 512
Size = tuple[int, int]
Box = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Placed:
    """A shape and where its top left corner is; placeholders come before what was drawn by hand."""

    shape: Any
    kind: str | None
    box: Box | None


class Slide:
    """Reads one slide part."""

    def __init__(self, package: OfficePackage, part: str, reader: TextReader, size: Size) -> None:
        self._package = package
        self._part = part
        self._reader = reader
        self._size = size
        self._inherited = _inherited_boxes(package, part)
        self.pictures: list[str] = []

    def blocks(self, root: Any, next_table: Callable[[], int]) -> tuple[str, list[Block]]:
        """Title, and the blocks of the other shapes.

        Args:
            root: of the slide part.
            next_table: numbers tables.
        """
        title = ""
        found: list[Block] = []
        tree = root.find(f"{P}cSld/{P}spTree")
        for placed in () if tree is None else self._ordered(tree):
            if placed.kind in TITLES and not title:
                body = placed.shape.find(P + "txBody")
                title = "" if body is None else self._reader.line(body)
            else:
                found.extend(self._shape(placed, next_table))
        return title, found

    def _ordered(self, parent: Any) -> list[Placed]:
        shapes = [Placed(s, _placeholder(s), self._box(s)) for s in _shapes(parent)]
        boxes = {id(p.shape): p.box or (0, 0, 0, 0) for p in shapes}
        tops = _row_tops([b[1] for b in boxes.values()])

        def key(placed: Placed) -> tuple[int, int, int]:
            box = boxes[id(placed.shape)]
            rank = 0 if placed.kind in TITLES else 1 if placed.kind is not None else 2
            return rank, tops[box[1]], box[0]

        return sorted(shapes, key=key)

    def _box(self, shape: Any) -> Box | None:
        frame = next((f for f in shape.iter(A + "xfrm", P + "xfrm")), None)
        own = None if frame is None else _box_of(frame)
        if own is None and _placeholder(shape) is not None:
            mark = next(shape.iter(P + "ph"))
            for key in ((mark.get("idx"), None), (None, mark.get("type"))):
                if key in self._inherited:
                    return self._inherited[key]
        return own

    def _shape(self, placed: Placed, next_table: Callable[[], int]) -> Iterator[Block]:
        shape, name = placed.shape, local(placed.shape)
        if placed.kind in _FURNITURE:
            self._package.findings.count("headers_footers_left_out", bool(self._words(shape)))
        elif self._is_unseen(placed) and not self._reader.keep_hidden:
            self._package.findings.count("hidden_text", len(self._words(shape)), self._reader.page)
        elif name == "grpSp":
            for inner in self._ordered(shape):
                yield from self._shape(inner, next_table)
        elif name == "graphicFrame":
            yield from self._frame(shape, next_table)
        elif name == "pic":
            self._package.findings.count("images_not_read", 1, self._reader.page)
            blip = next(shape.iter(A + "blip"), None)
            link = self._package.relations(self._part).get(blip.get(R + "embed") if blip is not None else "")
            if link is not None and link.target in self._package:
                self.pictures.append(link.target)
        elif name == "sp":
            body = shape.find(P + "txBody")
            if body is not None:
                yield from self._reader.blocks(body, bulleted=placed.kind in _LISTS)
        elif self._words(shape):
            self._package.findings.count("parts_not_read", 1, self._reader.page)

    def _frame(self, frame: Any, next_table: Callable[[], int]) -> Iterator[Block]:
        for table in frame.iter(A + "tbl"):
            rows = table_rows(table, self._reader)
            properties = table.find(A + "tblPr")
            filled = [r for r in rows if not r.is_empty]
            depth = header_rows(filled[caption_rows(filled) :])
            if not depth and properties is not None and is_true(properties.get("firstRow", "0")):
                depth = 1
            for block in table_blocks(rows, next_table(), page=self._reader.page, header=depth):
                yield replace(block, paragraph=None)
            return
        drawn = [e for e in frame.iter() if isinstance(e.tag, str) and is_drawn(e)]
        for element in drawn:
            yield from drawn_blocks(self._package, self._part, element, next_table(), self._reader.page)
        if not drawn:
            code = (
                "embedded_objects" if next(frame.iter(P + "oleObj"), None) is not None else "parts_not_read"
            )
            self._package.findings.count(code, 1, self._reader.page)

    def _is_unseen(self, placed: Placed) -> bool:
        properties = next((e for e in placed.shape.iter(P + "cNvPr")), None)
        if properties is not None and is_true(properties.get("hidden", "0")):
            return True
        if placed.box is None or not any(self._size):
            return False
        left, top, right, bottom = placed.box
        width, height = self._size
        return right > left and bottom > top and (right <= 0 or bottom <= 0 or left >= width or top >= height)

    def _words(self, shape: Any) -> str:
        return "".join(t.text or "" for t in shape.iter(A + "t")).strip()


def table_rows(table: Any, reader: TextReader) -> list[Row]:
    """Rows of an `a:tbl`; a cell merged over rows repeats its text."""
    rows: list[Row] = []
    above: dict[int, Cell] = {}
    for row in table.iterchildren(A + "tr"):
        cells: list[Cell] = []
        current: dict[int, Cell] = {}
        for column, element in enumerate(row.iterchildren(A + "tc")):
            if column >= _MAX_COLUMNS:
                break
            if is_true(element.get("hMerge", "0")):
                continue
            over = above.get(column)
            if is_true(element.get("vMerge", "0")) and over is not None:
                cell = Cell(over.text, column, over.width, max(1, over.height - 1), again=True)
            else:
                body = element.find(A + "txBody")
                text = "" if body is None else reader.line(body)
                cell = Cell(text, column, _span(element, "gridSpan"), _span(element, "rowSpan"))
            cells.append(cell)
            current[column] = cell
        above = current
        rows.append(Row(tuple(cells), 0))
    return rows


def _span(element: Any, name: str) -> int:
    text = element.get(name) or "1"
    return min(max(int(text), 1), _MAX_COLUMNS) if text.isdigit() and len(text) < 6 else 1


def _shapes(parent: Any) -> Iterator[Any]:
    for child in parent:
        if child.tag == MC + "AlternateContent":
            yield from _shapes(chosen(child))
        elif local(child) in ("sp", "pic", "graphicFrame", "grpSp", "cxnSp", "contentPart"):
            yield child


def _placeholder(shape: Any) -> str | None:
    """Type of a placeholder, empty for the plain one; None for other shapes."""
    for child in shape:
        if local(child).startswith("nv"):
            mark = child.find(f"{P}nvPr/{P}ph")
            return None if mark is None else mark.get("type") or ""
    return None


def _box_of(frame: Any) -> Box | None:
    offset, extent = frame.find(A + "off"), frame.find(A + "ext")
    if offset is None:
        return None
    left, top = _emu(offset.get("x")), _emu(offset.get("y"))
    if extent is None:
        return left, top, left, top
    return left, top, left + _emu(extent.get("cx")), top + _emu(extent.get("cy"))


def _emu(text: str | None) -> int:
    return int(text) if text and text.lstrip("-").isdigit() and len(text) < 16 else 0


def _row_tops(tops: Sequence[int]) -> dict[int, int]:
    """Top edge → number of the row of shapes that it belongs to."""
    found: dict[int, int] = {}
    row, first = 0, None
    for top in sorted(set(tops)):
        if first is None or top - first > _ROW_EMU:
            row, first = row + 1, top
        found[top] = row
    return found


def _inherited_boxes(package: OfficePackage, part: str) -> dict[tuple[str | None, str | None], Box]:
    """Places of placeholders on the slide's layout, else on its master, by index and by type."""
    found: dict[tuple[str | None, str | None], Box] = {}
    for layout in package.related(part, "slideLayout")[:1]:
        for name in (layout, *package.related(layout, "slideMaster")[:1]):
            root = package.optional(name)
            for shape in () if root is None else root.iter(P + "sp"):
                mark = next(shape.iter(P + "ph"), None)
                frame = next(shape.iter(A + "xfrm"), None)
                box = None if frame is None else _box_of(frame)
                if mark is None or box is None:
                    continue
                if name == layout and mark.get("idx"):
                    found.setdefault((mark.get("idx"), None), box)
                found.setdefault((None, mark.get("type")), box)
    return found


def heading(text: str, level: int, page: int) -> Block:
    """A heading on a slide."""
    return Block(BlockKind.HEADING, (Fragment(text, "", page=page),), level=level)
