"""Groups of lines of a PDF → headings, paragraphs, list items, code and table rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ingest.parse.model import Block, BlockKind, Fragment
from ingest.parse.pdf_cells import aligned
from ingest.parse.pdf_groups import Group, Scale, groups_of, is_contents, is_list_item, is_table
from ingest.parse.pdf_headings import Headings
from ingest.parse.pdf_joints import SOFT, Words, joint
from ingest.parse.pdf_layout import Line, Region, shown_box
from ingest.parse.pdf_tables import Cell, Table, is_number


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
    headings = Headings(groups, scale, outline or {})
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
    numbers = [any(is_number(" ".join(p.text for p in cell)) for cell in row if cell) for row in rows]
    return not numbers[0] and sum(numbers) * 2 >= len(rows) - 1
