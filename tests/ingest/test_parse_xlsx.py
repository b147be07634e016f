"""XLSX: titles, header rows, several tables, shown values, what is hidden, what is damaged or too big."""

from __future__ import annotations

import datetime as dt
import io
import resource
import subprocess
import sys
import time
from pathlib import Path

import openpyxl
import pytest
from openpyxl.comments import Comment
from openpyxl.styles import Font, PatternFill

from core.errors import DocumentRejected
from core.types import Span
from ingest.parse import parse_bytes
from ingest.parse.grid import is_number
from ingest.parse.model import BlockKind, Limits, ParsedDocument, ParseOptions
from tests.ingest.office_files import packed, rels, row, sheet, xlsx
from tests.ingest.parsing import cut, read


def parsed(content: bytes, **options) -> ParsedDocument:
    return parse_bytes(content, "a.xlsx", options=ParseOptions(**options))


def lines(document: ParsedDocument) -> list[str]:
    return [b.text for b in document.blocks]


def codes(document: ParsedDocument) -> list[str]:
    return [w.code for w in document.warnings]


def saved(book: openpyxl.Workbook) -> bytes:
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def one_sheet(*rows: list[object]) -> tuple[openpyxl.Workbook, object]:
    book = openpyxl.Workbook()
    page = book.active
    page.title = "读数"
    for values in rows:
        page.append(values)
    return book, page


def test_a_lone_cell_above_a_table_is_its_title_and_rows_keep_their_numbers():
    book, _ = one_sheet(["2026 年读数表"], ["单位：吨"], [], ["编号", "一月", "二月"], ["M-1", 661, 878])
    document = parsed(saved(book))
    assert [(b.kind, b.text) for b in document.blocks] == [
        (BlockKind.HEADING, "读数"),
        (BlockKind.HEADING, "2026 年读数表"),
        (BlockKind.PARAGRAPH, "单位：吨"),
        (BlockKind.TABLE_ROW, "编号 | 一月 | 二月"),
        (BlockKind.TABLE_ROW, "M-1 | 661 | 878"),
    ]
    assert [b.fragments[0].line for b in document.blocks] == [None, 1, 2, 4, 5]
    assert {b.member for b in document.blocks} == {"读数"}
    assert [b.is_table_header for b in document.blocks[-2:]] == [True, False]


def test_every_passage_of_a_long_table_carries_its_header_and_its_rows_their_place():
    rows = [[f"M-{n}", n * 3 % 997, n * 7 % 991] for n in range(1, 400)]
    book, _ = one_sheet(["编号", "一月读数", "二月读数"], *rows)
    document = read(saved(book), "a.xlsx")
    passages = cut(document)
    assert len(passages) > 5
    assert all("编号 | 一月读数 | 二月读数" in (*p.heading_path, p.text.split("\n")[0]) for p in passages)
    assert all(line.startswith(("编号", "M-")) for p in passages for line in p.text.split("\n"))
    at = document.text.index("M-187 |")
    place = document.offset_map.places(Span(at, at + 5))[0]
    assert (place.line, place.member) == (188, "读数")


def test_two_header_lines_become_one_name_per_column():
    book, page = one_sheet(
        ["地区", "2025", None, "2026", None], [None, "收入", "成本", "收入", "成本"], ["北", 1, 2, 3, 4]
    )
    page.merge_cells("B1:C1")
    page.merge_cells("D1:E1")
    page.merge_cells("A1:A2")
    assert lines(parsed(saved(book)))[1:] == [
        "地区 | 2025 收入 | 2025 成本 | 2026 收入 | 2026 成本",
        "北 | 1 | 2 | 3 | 4",
    ]


def test_a_value_merged_over_rows_stands_in_each_of_them():
    book, page = one_sheet(["组", "项"], ["甲", "a"], [None, "b"], ["乙", "c"])
    page.merge_cells("A2:A3")
    assert lines(parsed(saved(book)))[1:] == ["组 | 项", "甲 | a", "甲 | b", "乙 | c"]


def test_tables_apart_are_tables_and_an_empty_row_inside_one_parts_nothing():
    book, page = one_sheet(["A", "B"], ["x", 1], [], ["y", 2], [], [], ["C", "D"], ["z", 3])
    for r, values in enumerate((["E", "F"], ["p", 5]), start=1):
        for c, value in enumerate(values):
            page.cell(r, 5 + c, value)
    document = parsed(saved(book))
    tables = {}
    for block in document.blocks:
        if block.table is not None:
            tables.setdefault(block.table, []).append(block.text)
    assert list(tables.values()) == [["A | B", "x | 1", "y | 2"], ["E | F", "p | 5"], ["C | D", "z | 3"]]


def test_values_read_as_people_see_them():
    book, page = one_sheet(["share", "day", "sum", "ok", "err", "text"])
    page.append([0.125, None, 1200, True, "#DIV/0!", "007"])
    page["B2"] = dt.date(2026, 3, 1)
    for cell, form in (("A2", "0.00%"), ("B2", "yyyy-mm-dd"), ("C2", '"￥"#,##0')):
        page[cell].number_format = form
    assert lines(parsed(saved(book)))[-1] == "12.50% | 2026-03-01 | ￥1,200 | TRUE | #DIV/0! | 007"


def test_formulas_give_their_value_and_without_one_they_are_counted():
    content = xlsx({"S": sheet('<row r="1"><c r="A1"><f>1+1</f><v>2</v></c><c r="B1"><f>A1*2</f></c></row>')})
    document = parsed(content)
    assert lines(document) == ["S", "2"]
    assert codes(document) == ["formulas_without_value"]


def test_hidden_sheets_rows_columns_and_white_text_are_left_out_and_counted():
    book, page = one_sheet(
        ["a", "b", "c"], ["r1", "hidden column", "1"], ["hidden row", "x", "2"], ["r3", "y", "3"]
    )
    page.column_dimensions["B"].hidden = True
    page.row_dimensions[3].hidden = True
    page["D4"] = "white on paper"
    page["D4"].font = Font(color="FFFFFFFF")
    page["E1"] = "white on blue"
    page["E1"].font = Font(color="FFFFFFFF")
    page["E1"].fill = PatternFill("solid", fgColor="FF1F4E79")
    other = book.create_sheet("secret")
    other["A1"] = "hidden sheet"
    other.sheet_state = "hidden"
    content = saved(book)
    document = parsed(content)
    assert lines(document) == ["读数", "a | c | white on blue", "r1 | 1", "r3 | 3"]
    assert set(codes(document)) == {"hidden_sheets", "hidden_rows", "hidden_columns", "hidden_text"}
    kept = "\n".join(lines(parsed(content, keep_hidden=True)))
    assert all(w in kept for w in ("hidden column", "hidden row", "hidden sheet", "white on paper"))


def test_comments_stand_apart_with_their_cell():
    book, page = one_sheet(["编号", "状态"], ["E-1", "停用"])
    page["B2"].comment = Comment("请核对", "李雷")
    document = parsed(saved(book))
    assert lines(document)[-2:] == ["批注", "B2 李雷：请核对"]
    assert document.blocks[-1].fragments[0].line == 2


def test_a_million_formatted_rows_cost_nothing(shared_data):
    path = shared_data / "cases/D13/phantom_rows.xlsx"
    started = time.perf_counter()
    document = parsed(path.read_bytes())
    assert time.perf_counter() - started < 2
    assert lines(document) == ["台账", "编号 | 设备 | 状态", "E-01 | 冷水机组 | 在用", "E-02 | 空压机 | 停用"]
    code = (
        "import sys; from ingest.parse import parse_bytes; "
        "parse_bytes(open(sys.argv[1], 'rb').read(), 'a.xlsx'); "
        "print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 100 << 20


def test_empty_formatted_rows_are_walked_in_flat_memory():
    empty = "".join(
        f'<row r="{n}" s="1" customFormat="1"><c r="A{n}" s="1"/></row>' for n in range(3, 100_003)
    )
    content = xlsx({"S": sheet(row(1, ["Name", "Value"]) + row(2, ["x", 1]) + empty)})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert lines(parsed(content, limits=Limits(max_inflation_ratio=1000))) == ["S", "Name | Value", "x | 1"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # kB, the XML itself included


def test_more_columns_and_text_than_the_caps_are_told():
    document = parsed(xlsx({"S": sheet('<row r="1"><c r="A1"><v>1</v></c><c r="XFD1"><v>2</v></c></row>')}))
    assert codes(document) == ["too_many_columns"]
    assert document.partial
    with pytest.raises(DocumentRejected) as error:
        parsed(xlsx({"S": sheet(row(1, ["x" * 2000]))}), limits=Limits(max_chars=1000))
    assert error.value.code == "too_big"


def test_a_damaged_sheet_keeps_what_came_before_and_the_other_sheets():
    broken = (
        sheet(row(1, ["a", "b"]) + row(2, ["c", "d"])).replace("<v>", "<v>").split('<row r="2"')[0] + "<row"
    )
    document = parsed(xlsx({"One": broken, "Two": sheet(row(1, ["whole", "sheet"]))}))
    assert lines(document) == ["One", "a | b", "Two", "whole | sheet"]
    assert document.partial
    assert codes(document) == ["part_damaged"]


def test_a_missing_sheet_is_told():
    content = packed(
        {
            "xl/workbook.xml": '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
            'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
            '<sheet name="A" sheetId="1" r:id="r1"/><sheet name="B" sheetId="2" r:id="r2"/></sheets>'
            "</workbook>",
            "xl/_rels/workbook.xml.rels": rels(
                {"r1": ("worksheet", "worksheets/s1.xml"), "r2": ("worksheet", "worksheets/gone.xml")}
            ),
            "xl/worksheets/s1.xml": sheet(row(1, ["x", "y"])),
        }
    )
    document = parsed(content)
    assert lines(document) == ["A", "x | y"]
    assert document.partial


def test_a_document_type_in_a_sheet_is_refused():
    with pytest.raises(DocumentRejected) as error:
        parsed(xlsx({"S": "<!DOCTYPE x [<!ENTITY a 'b'>]>" + sheet(row(1, ["x"]))}))
    assert error.value.code == "refused"


def test_shared_strings_join_their_runs_and_drop_phonetic_hints():
    strings = (
        '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><r><t>东</t></r><r><t>京</t></r>'
        "<rPh sb='0' eb='2'><t>トウキョウ</t></rPh></si></sst>"
    )
    cells = '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>9</v></c></row>'
    assert lines(parsed(xlsx({"S": sheet(cells)}, xl__sharedStrings=strings))) == ["S", "东京"]


def test_the_titled_table_of_the_public_set(shared_data):
    content = Path(shared_data / "data/docs/xlsx_titled_table.xlsx").read_bytes()
    document = read(content, "xlsx_titled_table.xlsx")
    assert [h["text"] for h in document.outline] == [
        "Duck Observations",
        "Number of freshwater ducks per year",
    ]
    assert "Year | Freshwater Ducks\n2019 | 120" in document.text


def test_a_wide_title_with_a_remark_beside_it_is_no_header():
    book, page = one_sheet(
        ["2026 年度报表", None, None, "单位：万元"], ["编号", "名称", "数量", "金额"], ["1", "泵", 3, 4]
    )
    page.merge_cells("A1:C1")
    document = parsed(saved(book))
    assert lines(document)[1:] == [
        "2026 年度报表",
        "单位：万元",
        "编号 | 名称 | 数量 | 金额",
        "1 | 泵 | 3 | 4",
    ]
    assert [b.kind for b in document.blocks[1:3]] == [BlockKind.HEADING, BlockKind.PARAGRAPH]


def test_the_row_that_a_filter_or_a_table_starts_with_names_the_columns():
    book, page = one_sheet(["date", "2026-03-01"], ["No", "2025", "2026"], ["a", 1, 2], ["b", 3, 4])
    page.auto_filter.ref = "A2:C4"
    document = parsed(saved(book))
    assert [(b.text, b.is_table_header) for b in document.blocks[1:]] == [
        ("date | 2026-03-01", False),
        ("No | 2025 | 2026", True),
        ("a | 1 | 2", False),
        ("b | 3 | 4", False),
    ]


def test_a_form_right_above_a_table_is_not_its_header():
    book, _ = one_sheet(
        ["部门：", "仓储部"],
        ["日期：", "2026-03-01"],
        ["编号", "名称", "数量", "单价", "金额"],
        ["1", "泵", 3, 4, 12],
        ["2", "阀", 5, 6, 30],
    )
    document = parsed(saved(book))
    assert [(b.text, b.is_table_header) for b in document.blocks[1:]] == [
        ("部门： | 仓储部", False),
        ("日期： | 2026-03-01", False),
        ("编号 | 名称 | 数量 | 单价 | 金额", True),
        ("1 | 泵 | 3 | 4 | 12", False),
        ("2 | 阀 | 5 | 6 | 30", False),
    ]


def test_a_form_of_wide_values_has_no_header():
    book, page = one_sheet(
        ["项目", "云河仓库", None, None], ["负责", "张三", None, None], ["预算", 120, "工期", 90]
    )
    page.merge_cells("B1:D1")
    page.merge_cells("B2:D2")
    assert not any(b.is_table_header for b in parsed(saved(book)).blocks)


@pytest.mark.parametrize(
    "value", ["2026-03-01", "03-08-2017 14:35:00", "14:40:30", "29-Mar-1940", "12.5%", "¥1,200"]
)
def test_dates_times_and_amounts_name_no_column(value):
    assert is_number(value)


def test_groups_may_stand_above_their_columns_without_being_merged():
    book, _ = one_sheet(
        ["No", "PHAL", None, "CTB", None],
        [None, "Contra", "Ipsi", "Contra", "Ipsi"],
        ["a", "x", "y", "z", "w"],
    )
    assert lines(parsed(saved(book)))[1] == "No | PHAL Contra | PHAL Ipsi | CTB Contra | CTB Ipsi"
