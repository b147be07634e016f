import json

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


def test_json_escapes_are_decoded_and_lone_surrogates_replaced():
    source = (
        '{"id": 1, "text": "\\u5ba2\\u6237\\u53cd\\u9988 \\ud83d\\ude0a \\ud83d end", "tags": ["a", "b"]}'
    )
    document = read(source.encode(), "chat.json")
    assert document.text == "id: 1\n\ntext: 客户反馈 😊 \ufffd end\n\ntags: a\n\ntags: b"
    document.text.encode()


def test_json_lines_keep_their_line():
    lines = "\n".join(json.dumps({"t": t}, ensure_ascii=False) for t in ("一", "二"))
    document = read(lines.encode(), "a.jsonl")
    assert document.text == "t: 一\n\nt: 二"
    assert document.offset_map.place(document.blocks[1].span).line == 2


def test_what_is_not_json_is_read_as_text():
    assert read(b"{not json at all", "a.json").text == "{not json at all"
    assert "[" in read(b"[" * 100_000 + b"x", "deep.json").text
