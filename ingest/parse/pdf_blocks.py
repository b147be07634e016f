"""Groups of lines of a PDF → headings, paragraphs, list items, code and table rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ingest.parse.model import Block, BlockKind, Fragment
from ingest.parse.pdf_document import folded
from ingest.parse.pdf_groups import Group, Scale, groups_of, is_caption, is_contents, is_list_item, is_table
from ingest.parse.pdf_joints import SOFT, Words, ends_sentence, joint
from ingest.parse.pdf_layout import Line, Region, shown_box
from ingest.parse.pdf_tables import Cell, Table, aligned

_BULLET = re.compile(r"[-–*•·‣▪●○■□◦➢✓]\s")
_NUMBERED = re.compile(
    r"(?:(?P<dotted>\d{1,2}(?:\.\d{1,3}){0,4})\.?\s*[^\W\d]|(?P<letter>[A-Z])(?:\.\d{1,2})*\.?\s+[A-Z]"
    r"|(?P<word>Chapter|Section|Appendix|Part)\s+[\dA-Z]|第[一二三四五六七八九十百\d]+(?P<zh>[章篇部节條条])"
    r"|(?P<zh_list>[一二三四五六七八九十]{1,3}、))"
)
_HEADING_RATIO = 1.1
_MAX_HEADING_CHARS = 160
_MAX_LEVEL = 6
_LABELS = 4  # bold lines in a row


def blocks_of_lines(lines: list[Line], outline: Mapping[str, int] | None = None) -> Iterator[Block]:
    """Blocks of a whole document.

    Args:
        lines: in reading order.
        outline: levels of the headings that the document's bookmarks name, by folded text.
    """
    if not lines:
        return
    scale = Scale(lines)
    words = Words(line.text for line in lines)
    groups = groups_of(lines, scale)
    headings = _Headings(groups, scale, outline or {})
    tables = _Tables()
    for group in groups:
        table = group[0].table
        if table is not None:
            yield from tables.drawn(table, group[0].region)
        elif is_table(group):
            yield from tables.aligned(group)
        elif scale.is_code(group[0]):
            yield from _code(group)
        else:
            level = headings.level(group)
            kind = BlockKind.HEADING if level is not None else _kind(group)
            yield Block(kind, tuple(_fragments(group, words)), level or 0)


def _kind(group: Group) -> BlockKind:
    listed = is_list_item(group[0].text) or is_contents(group[-1].text)
    return BlockKind.LIST_ITEM if listed else BlockKind.PARAGRAPH


def _code(group: Group) -> Iterator[Block]:
    for line in group:
        yield Block(BlockKind.CODE, (Fragment(line.text, "", page=line.page, box=line.box),))


def _fragments(group: Group, words: Words) -> Iterator[Fragment]:
    glue = ""
    last = len(group) - 1
    for index, line in enumerate(group):
        text, next_glue = line.text, " "
        if index < last:
            text, next_glue = joint(text, group[index + 1].text, words)
        if SOFT in text:
            text = text.replace(SOFT, "-")
        yield Fragment(text, glue, page=line.page, box=line.box)
        glue = next_glue


class _Headings:
    """Which groups are headings, and how deep: by bookmark, by size and weight, and by their numbering."""

    def __init__(self, groups: list[Group], scale: Scale, outline: Mapping[str, int]) -> None:
        self._scale = scale
        self._outline = outline
        self._found: dict[int, tuple[tuple[float, bool], int]] = {}
        self._named: dict[int, int] = {}
        for group in groups:
            self._note(group)
        self._drop_labels(groups)
        ranks = sorted({style for style, _ in self._found.values()}, reverse=True)
        self._rank = {style: rank for rank, style in enumerate(ranks, start=1)}
        self._shallowest: dict[tuple[float, bool], int] = {}
        for style, depth in self._found.values():
            if depth:
                self._shallowest[style] = min(depth, self._shallowest.get(style, depth))

    def level(self, group: Group) -> int | None:
        """Level of a heading, 1 = top; None when the group is none."""
        named = self._named.get(id(group))
        if named is not None:
            return min(named, _MAX_LEVEL)
        found = self._found.get(id(group))
        if found is None:
            return None
        style, depth = found
        deeper = depth - self._shallowest[style] if depth else 0
        return min(self._rank[style] + deeper, _MAX_LEVEL)

    def _note(self, group: Group) -> None:
        first = group[0]
        if first.table is not None or first.has_cells or len(group) > 4 or self._scale.is_code(first):
            return
        if len(group) == 1 and first.size < 1.03 * self._scale.body and not first.bold and not self._outline:
            return
        text = " ".join(line.text for line in group)
        if len(text) > _MAX_HEADING_CHARS or not any(c.isalpha() for c in text):
            return
        if self._outline:
            level = self._outline.get(folded(text))
            if level is not None and not (ends_sentence(text) and len(group) > 1):
                self._named[id(group)] = level
                return
        depth = _depth(text)
        size = self._scale.of(first)
        bold = all(self._scale.is_bold(line) for line in group)
        if self._stands_out(group, text, size, bold, depth):
            self._found[id(group)] = (
                (round(size, 1) if size >= 1.03 else 1.0, bold and size < _HEADING_RATIO),
                depth,
            )

    def _drop_labels(self, groups: list[Group]) -> None:
        """Bold lines that follow each other without a text between them label a figure or a form."""
        run: list[Group] = []
        for group in [*groups, []]:
            found = self._found.get(id(group))
            if found is not None and found[0][1] and not found[1]:
                run.append(group)
                continue
            if len(run) >= _LABELS:
                for label in run:
                    del self._found[id(label)]
            run = []

    def _stands_out(self, group: Group, text: str, size: float, bold: bool, depth: int) -> bool:
        stripped = text.rstrip()
        if _BULLET.match(text) or is_caption(text) or is_contents(text) or size < 0.97:
            return False
        if size >= _HEADING_RATIO:
            return len(group) <= 3 and not stripped.endswith(("。", "；", ";", ",", "，"))
        if ends_sentence(stripped) and not stripped.endswith(("?", "？")):
            return False
        if depth and len(group) == 1 and len(text) <= 80 and (bold or size >= 1.03):
            return True
        return bold and len(group) <= 2 and len(text) <= 100 and not stripped.endswith((",", "，", "、"))


def _depth(text: str) -> int:
    """How deep the numbering at the beginning of a heading goes; 0 = it has none."""
    match = _NUMBERED.match(text)
    if match is None:
        return 0
    if match["dotted"]:
        return match["dotted"].count(".") + 1
    if match["zh"]:
        return 2 if match["zh"] in "节條条" else 1
    return 2 if match["zh_list"] else 1


@dataclass(slots=True)
class _Tables:
    """Numbers the tables of a document; one that goes on over a page break keeps its number."""

    number: int = 0
    _edges: list[float] = field(default_factory=list)
    _header: str = ""
    _page: int = 0

    def drawn(self, table: Table, region: Region) -> Iterator[Block]:
        """Rows of a table with borders."""
        page = region.page.number
        rows = table.rows
        first = _row_text(rows[0])
        if self._continues(table, page):
            rows = rows[1:] if first == self._header else rows
            header = False
        else:
            self.number += 1
            header = _names_columns(rows)
            self._header = first if header else ""
        self._edges, self._page = table.edges, page
        yield from self._rows(rows, region, header)

    def aligned(self, group: Group) -> Iterator[Block]:
        """Rows of a table whose cells line up."""
        self.number += 1
        self._edges = []
        rows = aligned([line.parts for line in group])
        yield from self._rows(rows, group[0].region, _names_columns(rows))

    def _continues(self, table: Table, page: int) -> bool:
        """Whether the table is the rest of the one before: on the next page, with the same columns."""
        if page != self._page + 1 or len(table.edges) != len(self._edges):
            return False
        return all(abs(a - b) < 4 for a, b in zip(table.edges, self._edges, strict=True))

    def _rows(self, rows: list[list[Cell]], region: Region, header: bool) -> Iterator[Block]:
        for index, row in enumerate(rows):
            fragments = tuple(_cell_fragments(row, region))
            if fragments:
                yield Block(
                    BlockKind.TABLE_ROW, fragments, table=self.number, is_table_header=header and index == 0
                )


def _cell_fragments(row: list[Cell], region: Region) -> Iterator[Fragment]:
    page = region.page.number
    for index, cell in enumerate(row):
        glue = " | " if index else ""
        if not cell:
            yield Fragment("", glue, page=page)
        for piece in cell:
            yield Fragment(piece.text.replace(SOFT, "-"), glue, page=page, box=shown_box(piece, region))
            glue = " "


def _row_text(row: list[Cell]) -> str:
    return "|".join(" ".join(p.text for p in cell) for cell in row)


def _names_columns(rows: list[list[Cell]]) -> bool:
    """Whether the first row names the columns: in bold where the others are not, or alone without numbers."""
    if len(rows) < 2:
        return False
    bold = [all(p.bold for cell in row for p in cell) for row in rows]
    if bold[0] and not all(bold[1:]):
        return True
    numbers = [any(c.isdigit() for c in _row_text(row)) for row in rows]
    return not numbers[0] and sum(numbers) * 2 >= len(rows) - 1
