"""Merged tables of every format: each cell's text stands in exactly the rows that it covers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.parse import parse_bytes
from ingest.parse.model import Block
from tests.ingest.office_files import column, frame, ods, odt, pptx, row, sheet, xlsx
from tests.ingest.parsing import docx, paragraph


@dataclass(frozen=True)
class Area:
    """A cell of a table, merged or not; rows and columns from 0."""

    top: int
    left: int
    height: int
    width: int
    text: str

    def covers(self, line: int, at: int) -> bool:
        return self.top <= line < self.top + self.height and self.left <= at < self.left + self.width


@dataclass(frozen=True)
class Table:
    height: int
    width: int
    areas: tuple[Area, ...]

    def at(self, line: int, at: int) -> Area:
        return next(a for a in self.areas if a.covers(line, at))

    def expected(self) -> list[list[str]]:
        """Texts of each row in which a cell begins."""
        found: list[list[str]] = []
        for line in range(self.height):
            areas = dict.fromkeys(self.at(line, at) for at in range(self.width))
            if any(a.top == line for a in areas):
                found.append([a.text for a in areas])
        return found


@st.composite
def tables(draw: st.DrawFn) -> Table:
    height, width = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    areas: list[Area] = []
    for line in range(height):
        for at in range(width):
            if any(a.covers(line, at) for a in areas):
                continue
            tall = draw(st.integers(1, height - line)) if draw(st.booleans()) else 1
            wide = draw(st.integers(1, width - at)) if draw(st.booleans()) else 1
            while any(a.covers(line, at + i) for a in areas for i in range(wide)):
                wide -= 1
            # Numbers, so that no row is taken for a header.
            areas.append(Area(line, at, tall, wide, str(1000 + len(areas))))
    return Table(height, width, tuple(areas))


def as_docx(table: Table) -> bytes:
    rows = ""
    for line in range(table.height):
        cells, at = "", 0
        while at < table.width:
            area = table.at(line, at)
            merge = f"<w:vMerge w:val='{'restart' if area.top == line else 'continue'}'/>" * (area.height > 1)
            text = paragraph(area.text) if area.top == line else "<w:p/>"
            cells += f"<w:tc><w:tcPr><w:gridSpan w:val='{area.width}'/>{merge}</w:tcPr>{text}</w:tc>"
            at += area.width
        rows += f"<w:tr>{cells}</w:tr>"
    return docx(f"<w:tbl>{rows}</w:tbl>")


def as_pptx(table: Table) -> bytes:
    rows = ""
    for line in range(table.height):
        cells = ""
        for at in range(table.width):
            area = table.at(line, at)
            begins = (area.top, area.left) == (line, at)
            attributes = (
                f"gridSpan='{area.width}' rowSpan='{area.height}'"
                if begins
                else "hMerge='1' " * (at > area.left) + "vMerge='1'" * (line > area.top)
            )
            run = f"<a:r><a:t>{area.text}</a:t></a:r>" if begins else ""
            cells += f"<a:tc {attributes}><a:txBody><a:p>{run}</a:p></a:txBody></a:tc>"
        rows += f"<a:tr>{cells}</a:tr>"
    return pptx([frame(f"<a:tbl>{rows}</a:tbl>")])


def _open_document_rows(table: Table) -> str:
    rows = ""
    for line in range(table.height):
        cells = ""
        for at in range(table.width):
            area = table.at(line, at)
            if (area.top, area.left) == (line, at):
                cells += (
                    f"<table:table-cell table:number-columns-spanned='{area.width}' "
                    f"table:number-rows-spanned='{area.height}'><text:p>{area.text}</text:p></table:table-cell>"
                )
            else:
                cells += "<table:covered-table-cell/>"
        rows += f"<table:table-row>{cells}</table:table-row>"
    return rows


def as_odt(table: Table) -> bytes:
    return odt(f"<table:table>{_open_document_rows(table)}</table:table>")


def as_ods(table: Table) -> bytes:
    return ods(f"<table:table table:name='S'>{_open_document_rows(table)}</table:table>")


def as_xlsx(table: Table) -> bytes:
    rows = ""
    for line in range(table.height):
        begins = [table.at(line, at) for at in range(table.width)]
        values = [a.text if (a.top, a.left) == (line, at) else None for at, a in enumerate(begins)]
        rows += row(line + 1, values)
    merges = "".join(
        f'<mergeCell ref="{column(a.left)}{a.top + 1}:{column(a.left + a.width - 1)}{a.top + a.height}"/>'
        for a in table.areas
        if a.width * a.height > 1
    )
    return xlsx({"S": sheet(rows, after=f"<mergeCells>{merges}</mergeCells>")})


def rows_of(content: bytes, name: str) -> list[Block]:
    blocks = parse_bytes(content, name).blocks
    return [b for b in blocks if b.text not in ("S", "Slide 1")]


@pytest.mark.parametrize(
    ("build", "name"),
    [(as_docx, "a.docx"), (as_pptx, "a.pptx"), (as_odt, "a.odt"), (as_ods, "a.ods"), (as_xlsx, "a.xlsx")],
)
@settings(max_examples=60, deadline=None)
@given(table=tables())
def test_each_text_stands_in_exactly_the_rows_it_covers(build, name, table):
    blocks = rows_of(build(table), name)
    texts = [[f.text for f in b.fragments if f.text] for b in blocks]
    assert texts == table.expected()
    if name in ("a.docx", "a.pptx", "a.odt"):
        for block in blocks:
            for at, fragment in enumerate(block.fragments):
                if fragment.text:
                    assert next(a for a in table.areas if a.text == fragment.text).left == at
