import pytest

from core.errors import DocumentRejected
from core.types import Span
from ingest.parse.sniff import sniff
from tests.ingest.parsing import SAMPLES, read

ZH = "主轴预热说明：预热时间为十五分钟，温度低于五度时延长到二十五分钟。换刀后必须重新对刀。"


def test_a_byte_order_mark_does_not_reach_the_text():
    assert read("\ufeff品名,库存\n轴承,120\n".encode(), "stock.csv").text.startswith("品名")


def test_nul_and_controls_are_removed_and_marks_that_reorder_text_too():
    text = read(b"Warranty period: 24\x00 months.\r\nSerial\x07 prefix is Q\xe2\x80\xaeX-7.", "a.txt").text
    assert "Warranty period: 24 months." in text
    assert "Serial prefix is QX-7." in text


def test_lone_surrogates_become_replacement_characters():
    content = "反馈\ud83d完毕，没有其他问题。".encode("utf-16-le", "surrogatepass")
    text = read(b"\xff\xfe" + content, "a.txt").text
    assert text == "反馈\ufffd完毕，没有其他问题。"


def test_hard_wrapped_lines_join_and_short_lines_stay_apart():
    wrapped = (
        "The pump doses between four and thirty litres per hour and it is\n"
        "mounted on a wall that carries at least ninety kilograms of load.\n"
        "\n"
        "Kind regards\nThe works office\n"
    )
    text = read(wrapped.encode(), "letter.txt").text
    assert "per hour and it is mounted on a wall" in text
    assert "Kind regards\n" in text


def test_chinese_lines_join_without_a_space():
    line = "锅炉给水泵轴承温度异常处理办法适用于全部机组并由当班人员执行直到检修"
    assert read(f"{line}\n{line}\n{line}。\n".encode(), "a.txt").text == line * 3 + "。"


def test_every_span_leads_to_its_offset_and_line_in_the_source():
    source = "标题\r\n\r\n第一段：压力 为０.３兆帕。\r\n第二段：温度为\u200b四十度。\r\n"
    document = read(source.encode("gb18030"), "a.txt")
    at = document.text.index("四十度")
    place = document.offset_map.place(Span(at, at + 3))
    assert source[place.start : place.end] == "四十度"
    assert place.line == 4


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        (b"", "zero.txt", "empty"),
        (b"", "zero.pdf", "empty"),
        (" \n\t\u3000\u200b\n".encode(), "blank.txt", "empty"),
        (b" \r\n\n", "spaces.txt", "empty"),
        (b"---\n\n====\n", "lines.txt", "empty"),
        (b"%PDF-1.4\n1 0 obj", "really_a_pdf.txt", "type_mismatch"),
        (b"Plain text, the name lies.", "really_text.pdf", "type_mismatch"),
        (b"Plain text, the name lies.", "really_text.docx", "type_mismatch"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "picture.txt", "type_mismatch"),
        (bytes(range(1, 32)) * 40, "noise.txt", "unsupported_format"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 64, "old.doc", "unsupported_format"),
        (b"PK\x03\x04 not a zip", "broken.docx", "corrupt"),
    ],
)
def test_what_cannot_be_read_is_rejected_with_its_reason(content, name, reason):
    with pytest.raises(DocumentRejected) as error:
        read(content, name)
    assert error.value.code == reason
    assert error.value.detail


def test_content_decides_when_there_is_no_extension():
    assert sniff(b"%PDF-1.7\n", "report")[0] == "application/pdf"
    assert sniff(b"<!DOCTYPE html><html></html>", "page")[0] == "text/html"
    assert sniff(b"just words", "notes", "application/octet-stream")[0] == "text/plain"
    assert sniff(b"# Title", "notes", "text/markdown; charset=utf-8")[0] == "text/markdown"


def test_html_under_a_text_name_is_read_as_html_and_said_so():
    media_type, warnings = sniff(b"<html><body>x</body></html>", "page.txt")
    assert media_type == "text/html"
    assert [w.code for w in warnings] == ["type_corrected"]


def test_the_gbk_sample_reads_as_chinese():
    document = read((SAMPLES / "qinglan-pump-station.txt").read_bytes(), "qinglan-pump-station.txt")
    assert document.encoding == "gb18030"
    assert document.title == "青岚泵站检修规程"
    assert "达到八十五度时自动停机。" in document.text


def shape(source: str, name: str = "a.txt") -> list[tuple[str, str]]:
    document = read(source.encode(), name)
    return [(b.kind.value, document.text[b.span.start : b.span.end]) for b in document.blocks]


def outline(source: str) -> list[tuple[int, str]]:
    return [(h["level"], h["text"]) for h in read(source.encode(), "a.txt").outline]


def test_numbered_chapters_are_headings():
    source = (
        "青岚泵站检修规程\n\n第一章 总则\n\n第一条 本规程适用于全站。\n第二条 由当班人员执行。\n\n"
        "第二节　范围\n\n泵房。\n\n1.2 检查周期\n\n每四小时一次。\n\n1.2.1 夜间\n\n每八小时一次。\n"
    )
    assert outline(source) == [
        (1, "青岚泵站检修规程"),
        (2, "第一章 总则"),
        (3, "第二节 范围"),
        (3, "1.2 检查周期"),
        (4, "1.2.1 夜间"),
    ]


def test_underlined_and_capital_lines_are_headings():
    source = (
        "Pump notes\n==========\nIt doses water.\n\nParts\n-----\n\nA seal.\n\nSAFETY RULES\n\nStop it.\n"
    )
    assert outline(source) == [(1, "Pump notes"), (2, "Parts"), (2, "SAFETY RULES")]


@pytest.mark.parametrize(
    "source",
    [
        "Intro line here.\n\n1. Unpack the pump\n\n2. Fill it\n\n3. Start it\n",
        "一、打开阀门\n二、关闭水泵\n三、记录读数\n",
        "Text before.\n\nThis is a sentence, standing alone.\n\nText after.\n",
        "a | b\n-----\n1 | 2\n",
        "Before.\n\n第一章讲了水泵的安装，第二章讲检修。\n\nAfter.\n",
    ],
)
def test_lists_sentences_and_rules_are_no_headings(source):
    assert outline(source) == []


def test_a_table_drawn_with_spaces_keeps_its_rows_and_header():
    rows = ("Part           Stock  Place", "Seal              45  B-11", "Ball bearing     120  A-03")
    source = "Stock list:\n\n" + "\n".join(rows) + "\n\nEnd of list.\n"
    document = read(source.encode(), "a.txt")
    rows = [b for b in document.blocks if b.kind.value == "table_row"]
    assert [document.text[b.span.start : b.span.end] for b in rows] == [
        "Part | Stock | Place",
        "Seal | 45 | B-11",
        "Ball bearing | 120 | A-03",
    ]
    assert rows[2].table_header == "Part | Stock | Place"
    assert document.offset_map.place(rows[2].span).line == 5


@pytest.mark.parametrize(
    "source",
    [
        "| 品名 | 库存 |\n|------|------|\n| 密封圈 | 45 |\n",
        "+------+------+\n| 品名 | 库存 |\n+======+======+\n| 密封圈 | 45 |\n+------+------+\n",
        "┌──────┬──────┐\n│ 品名 │ 库存 │\n├──────┼──────┤\n│ 密封圈 │ 45 │\n└──────┴──────┘\n",
        "品名\t库存\n密封圈\t45\n",
    ],
)
def test_tables_with_bars_boxes_and_tabs_are_read_alike(source):
    document = read(source.encode(), "a.txt")
    assert document.text == "品名 | 库存\n密封圈 | 45"
    assert document.blocks[1].table_header == "品名 | 库存"


def test_prose_with_double_spaces_is_no_table():
    source = "One sentence.  Another one.\nIt goes on here.  And ends.\nThe last line.  Done.\n"
    assert {kind for kind, _ in shape(source)} == {"paragraph"}


def test_code_keeps_its_indentation():
    source = "Run this:\n\n    for x in range(3):\n        print(x)\n\nThen stop.\n"
    assert shape(source) == [
        ("paragraph", "Run this:"),
        ("code", "    for x in range(3):"),
        ("code", "        print(x)"),
        ("paragraph", "Then stop."),
    ]
    fenced = "Run this:\n\n```sh\nif true; then\n\techo done\n\nfi\n```\n\nThen stop.\n"
    assert shape(fenced)[1:4] == [("code", "if true; then"), ("code", "    echo done"), ("code", "fi")]


def test_lines_of_a_log_stay_apart():
    line = "2026-01-{:02} 10:00:00 INFO worker finished the nightly synchronisation of all {} stores\n"
    source = "".join(line.format(n, n) for n in range(10, 14))
    assert len(shape(source, "a.log")) == 4


def test_private_use_characters_are_counted_and_kept():
    document = read("图标\ue001与\ue002说明文字在这里。".encode(), "a.txt")
    assert "\ue001" in document.text
    assert [w["code"] for w in document.warnings] == ["private_use"]


def test_selectors_and_tags_stay_where_they_mean_something():
    flag = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
    source = f"心❤\ufe0f 葛\U000e0100城 {flag} a\U000e0041\U000e0042b x\ufe0f\ufe0fy"
    assert read(source.encode(), "a.txt").text == f"心❤\ufe0f 葛\U000e0100城 {flag} ab x\ufe0fy"


def test_chapters_without_blank_lines_are_found_and_a_table_of_contents_is_not():
    source = (
        "第一章 总则\n第二章 职责\n第三章 附则\n\n第一章 总则\n第一条 制定本规程。\n第二条 适用于全站。\n"
        "第二章 职责\n第三条 站长负责。\n"
    )
    assert outline(source) == [(2, "第三章 附则"), (2, "第一章 总则"), (2, "第二章 职责")][1:]
