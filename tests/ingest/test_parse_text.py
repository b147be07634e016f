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
