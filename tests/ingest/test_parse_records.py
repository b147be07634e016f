import json

from hypothesis import given
from hypothesis import strategies as st

from core.types import Span
from ingest.parse.json_scan import Scalar, pieces, scan
from tests.ingest.parsing import cut, read


def test_a_csv_from_a_spreadsheet_keeps_a_clean_header():
    document = read("\ufeff品名,库存,仓位\r\n轴承 6204,120,A-03\r\n密封圈,45,B-11\r\n".encode(), "stock.csv")
    assert document.text == "品名 | 库存 | 仓位\n轴承 6204 | 120 | A-03\n密封圈 | 45 | B-11"
    assert document.blocks[2].table_header == "品名 | 库存 | 仓位"
    assert document.offset_map.place(document.blocks[2].span).line == 3


def test_quoted_line_ends_semicolons_and_ragged_rows_are_kept():
    document = read(b'name;note\nseal;"two\nlines"\nnut;a;b;c\n', "a.csv")
    assert document.text == "name | note\nseal | two lines\nnut | a | b | c"
    assert document.offset_map.place(document.blocks[2].span).line == 4


def test_every_passage_of_a_long_csv_names_its_columns():
    rows = "".join(f"M-{n},{n * 3},{n * 7}\n" for n in range(100, 300))
    drafts = cut(read(f"编号,一月读数,二月读数\n{rows}".encode(), "meters.csv"))
    assert all(d.heading_path == ("编号 | 一月读数 | 二月读数",) for d in drafts[1:])


def test_a_directive_names_the_delimiter_and_decimal_commas_stay():
    document = read(b"sep=;\nPosten;Preis\nDichtung;1,50\nLager;12,00\n", "a.csv")
    assert document.text == "Posten | Preis\nDichtung | 1,50\nLager | 12,00"
    assert document.offset_map.place(document.blocks[1].span).line == 3


def test_decimal_commas_do_not_win_over_semicolons():
    document = read(b"name;x;y\na;1,5;2,5\nb;3,5;4,5\n", "a.csv")
    assert document.blocks[2].table_header == "name | x | y"
    assert document.text.endswith("b | 3,5 | 4,5")


def test_quotes_inside_cells_are_read_in_both_spellings():
    assert read(b'a,b\n"say ""no""",1\n"x, y",2\n', "a.csv").text == 'a | b\nsay "no" | 1\nx, y | 2'
    assert read(b'a,b\n"say \\"no\\"",1\n"x, y",2\n', "a.csv").text == 'a | b\nsay "no" | 1\nx, y | 2'


def test_a_quote_that_is_never_closed_does_not_swallow_the_file():
    rows = "".join(f"{n},pipe {n}\n" for n in range(300))
    document = read(f'no,what\n1,"3 inch pipe\n{rows}'.encode(), "a.csv")
    assert [w["code"] for w in document.warnings] == ["broken_quotes"]
    assert document.text.splitlines()[-1] == "299 | pipe 299"
    assert len(document.blocks) == 302


def test_titles_above_a_table_are_no_row_of_it():
    document = read("2024年度读数,,\n,,\n编号,读数,责任人\nM-1,10,甲\nM-2,20,乙\n".encode(), "a.csv")
    assert document.text == "2024年度读数\n\n编号 | 读数 | 责任人\nM-1 | 10 | 甲\nM-2 | 20 | 乙"
    assert document.blocks[3].table_header == "编号 | 读数 | 责任人"


def test_years_may_name_columns_and_values_may_not():
    assert read("地区,2022,2023\n甲,5,6\n".encode(), "a.csv").blocks[1].table_header == "地区 | 2022 | 2023"
    assert read(b"1,2\n3,4\n", "a.csv").blocks[1].table_header is None
    assert read(b"red,ok\nred,bad\nblue,ok\n", "a.csv").blocks[1].table_header is None


def test_cells_of_a_wide_row_say_their_columns():
    names = [f"column {n}" for n in range(40)]
    rows = "".join(",".join(f"v{n}-{r}" for n in range(40)) + "\n" for r in range(3))
    drafts = cut(read((",".join(names) + "\n" + rows).encode(), "wide.csv"), 60, 120)
    holding = next(d for d in drafts if "v33-2" in d.text)
    assert "column 33: v33-2" in holding.text


def test_every_cell_leads_to_its_place():
    source = 'a,b\r\n"x, y",12\r\n"two\r\nlines",12\r\n'
    document = read(source.encode(), "a.csv")
    for shown, line in (("x, y", 2), ("lines", 3)):
        at = document.text.index(shown)
        place = document.offset_map.place(Span(at, at + len(shown)))
        assert source[place.start : place.end] == shown
        assert place.line == line
    at = document.text.rindex("12")
    assert document.offset_map.place(Span(at, at + 2)).start == source.rindex("12")


def test_the_meter_reading_stands_in_a_passage_with_its_columns_and_line(shared_data):
    content = (shared_data / "cases" / "D14" / "meter_readings.csv").read_bytes()
    document = read(content, "meter_readings.csv")
    draft = next(d for d in cut(document) if "M-187" in d.text)
    row = next(line for line in draft.text.splitlines() if line.startswith("M-187"))
    assert row.split(" | ")[2:4] == ["661", "878"]
    assert draft.heading_path[-1].split(" | ")[2:4] == ["一月读数", "二月读数"]
    at = document.text.index(row)
    assert document.offset_map.place(Span(at, at + len(row))).line == 188


def test_a_spreadsheet_with_a_mark_has_a_usable_first_column(shared_data):
    document = read((shared_data / "cases" / "D02" / "stock_bom.csv").read_bytes(), "stock_bom.csv")
    assert document.text.split(" | ")[0] == "品名"
    assert "密封圈 | 45" in document.text


def test_json_escapes_are_decoded_and_lone_surrogates_replaced():
    source = (
        '{"id": 1, "text": "\\u5ba2\\u6237\\u53cd\\u9988 \\ud83d\\ude0a \\ud83d end", "tags": ["a", "b"]}'
    )
    document = read(source.encode(), "chat.json")
    assert document.text == "id: 1\ntext: 客户反馈 😊 \ufffd end\ntags: a, b"
    document.text.encode()


def test_json_lines_keep_their_line():
    lines = "\n".join(json.dumps({"t": t}, ensure_ascii=False) for t in ("一", "二"))
    document = read(lines.encode(), "a.jsonl")
    assert document.text == "t: 一\nt: 二"
    assert document.offset_map.place(document.blocks[1].span).line == 2


def test_objects_that_are_alike_become_a_table():
    source = '[{"id": 1, "box": {"w": 2.50}, "note": null},\n {"id": 2, "box": {"w": 1e400}, "note": "dry"}]'
    document = read(source.encode(), "a.json")
    assert document.text == "id | box.w | note\n1 | 2.50\n2 | 1e400 | dry"
    assert document.blocks[2].table_header == "id | box.w | note"
    assert document.offset_map.place(document.blocks[2].span).line == 2


def test_records_of_prose_stay_apart_and_whole():
    long = "The pump doses between four and thirty litres per hour into the tank. " * 4
    source = json.dumps({"items": [{"title": f"Part {n}", "body": long} for n in range(3)], "total": 3})
    drafts = cut(read(source.encode(), "a.json"), 160, 480)
    assert [d.text.splitlines()[0] for d in drafts] == [
        "items.title: Part 0",
        "items.title: Part 1",
        "items.title: Part 2",
        "total: 3",
    ]


def test_numbers_stay_as_written_and_equal_names_stay_both():
    source = '{"n": 12345678901234567890123, "x": 1.10, "a": "one", "a": "two", "t": true}'
    assert (
        read(source.encode(), "a.json").text == "n: 12345678901234567890123\nx: 1.10\na: one\na: two\nt: true"
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=12),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
        max_leaves=12,
    ),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_json_values_stand_at_their_places(value, ascii_only, indent):
    source = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    root, end = scan(source)
    assert end == len(source)
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Scalar):
            written = json.loads(source[node.start : node.end])
            if node.is_string:
                shown = "".join(p.text for p in pieces(source, node.start + 1, node.end - 1))
                assert shown == written or any(c in written for c in "\b\f")
        else:
            stack.extend(node.values)


def test_a_broken_line_does_not_cost_the_others():
    document = read(b'{"a": 1, "b": "x"}\n{"a": 2, "b": \n{"a": 3, "b": "y"}\n', "a.jsonl")
    assert document.text == "a | b\n1 | x\n3 | y"
    assert document.partial
    assert [w["code"] for w in document.warnings] == ["broken_lines"]
    assert document.offset_map.place(document.blocks[2].span).line == 3


def test_what_is_not_json_is_read_as_text():
    assert read(b"{not json at all", "a.json").text == "{not json at all"
    assert "[" in read(b"[" * 100_000 + b"x", "deep.json").text


def test_messages_with_broken_emoji_are_read(shared_data):
    document = read((shared_data / "cases" / "D03" / "chat_surrogate.json").read_bytes(), "chat.json")
    assert "客户反馈：很满意 😊 但物流慢 \ufffd end" in document.text
