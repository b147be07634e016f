import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import DocumentRejected
from ingest.normalize import build
from ingest.parse import parse_bytes
from ingest.parse.html import blocks_of_fragment
from ingest.parse.model import ParsedDocument
from tests.ingest.parsing import read

ATTACKS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '<a href="javascript:alert(1)">press</a>',
    "<svg onload=alert(1)><text>drawn</text></svg>",
    "<iframe srcdoc='<p>alert(1)</p>'></iframe>",
    "<object data=x>alert(1)</object>",
    "<style>alert(1)</style>",
    "<textarea>alert(1)</textarea><button onclick=alert(1)>alert(1)</button>",
    "<math><annotation-xml encoding='text/html'><script>alert(1)</script></annotation-xml></math>",
    "<body onload=alert(1)>",
    "<template><script>alert(1)</script></template>",
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_active_content_is_never_text(attack):
    document = read(f"<p>Before the part.</p>{attack}<p>After the part.</p>".encode(), "page.html")
    assert "alert" not in document.text
    assert "Before the part." in document.text
    assert "After the part." in document.text


def test_written_out_markup_stays_text():
    document = read("<p>写法是 &lt;script&gt;alert(1)&lt;/script&gt; 这样。</p>".encode(), "page.html")
    assert document.text == "写法是 <script>alert(1)</script> 这样。"


@pytest.mark.parametrize("tag", ["div", "span", "b", "ul><li", "table><tr><td", "blockquote"])
@pytest.mark.parametrize("depth", [300, 1_500, 5_000, 50_000])
def test_deep_nesting_keeps_the_text(tag, depth):
    opening = f"<{tag}>" * depth
    page = f"<body><p>First of all.</p>{opening}<p>The deepest words.</p></body>"
    document = read(page.encode(), "page.html")
    assert "First of all." in document.text
    assert "The deepest words." in document.text


def test_reading_time_grows_with_the_page_and_not_faster():
    def seconds(rows: int) -> float:
        page = "<body><h1>Log</h1>" + "".join(
            f"<div class=row><p>Line {n} of the <a href='/{n}'>log</a> says that pump {n % 7} ran.</p></div>"
            for n in range(rows)
        )
        start = time.process_time()
        parsed = parse_bytes(page.encode(), "log.html")
        assert len(parsed.blocks) == rows + 1
        return time.process_time() - start

    small, large = min(seconds(12_000) for _ in range(2)), seconds(48_000)
    assert large < 8 * small


def test_xhtml_with_closed_elements_and_cdata_is_read():
    page = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><head><title/>'
        '<script src="a.js"/></head><body><a id="top"/><h1>第一章</h1><div/><p>正文从这里开始。</p>'
        "<p><![CDATA[a < b & c]]></p></body></html>"
    )
    assert [(b.text, b.fragments[0].line) for b in blocks_of_fragment(page)[0]] == [
        ("第一章", 2),
        ("正文从这里开始。", 2),
        ("a < b & c", 2),
    ]


def test_a_page_of_frames_shows_what_it_says_without_them():
    frames = "<frame src=a.html><noframes><body><p>请打开目录页。</p></body></noframes>"
    page = f"<html><frameset cols=20%,*>{frames}</frameset></html>"
    assert "请打开目录页。" in read(page.encode(), "page.html").text


@pytest.mark.parametrize(
    "page",
    [
        "<p>One<p>Two<div>Three",
        "</div></p><p>One</b></i><p>Two</table><div>Three</span>",
        "<ul><li>One<li>Two</ul></ul>Three",
        "<table><tr><td>One<td>Two<tr><td>Three",
        "<<p>>One</p><p>Two</p><p a='\">Three</p><p b='>Three</p>",
        "One<br>Two <!-- never closed Three --><p>Three",
    ],
)
def test_broken_markup_loses_no_text(page):
    text = read(page.encode(), "page.html").text
    assert all(word in text for word in ("One", "Two", "Three"))


def test_a_page_as_one_line_of_bare_text_is_read():
    assert read(b"<html><body>Just a line of text without any element.</body></html>", "a.html").text == (
        "Just a line of text without any element."
    )


@pytest.mark.parametrize("name", ["gb2312", "gbk", "big5", "utf-16", "shift_jis"])
def test_declared_encodings_are_read(name):
    text = "検索用の頁です。" if name == "shift_jis" else "網頁內容" if name == "big5" else "网页的正文内容"
    page = f'<html><head><meta charset="{name}"></head><body><p>{text * 4}</p></body></html>'
    assert text in read(page.encode(name), "page.html").text


def test_a_declaration_far_down_the_head_is_found():
    head = f'<head><!-- {"x" * 6000} --><meta charset="gbk"></head>'
    page = f"<html>{head}<body><p>迟来的声明也算数。</p></body></html>"
    assert "迟来的声明也算数" in read(page.encode("gbk"), "page.html").text


_SOUP = (
    "<div> </div> <p> </p> <table> <tr> <td_colspan=3> <th_rowspan=2> </table> <ul> <li> </ul> <pre> </pre> "
    "<h1> </h1> <br> <hr> <a_href='/x'> </a> <nav> </nav> <article> </article> <span_style='display:none'> "
    "</span> <math> <mfrac> </math> <sup> </sup> <!-- --> <style> .a{color:#fff} </style> <script> </script> "
    "<dl> <dt> <dd> <q> <frameset> <form> text 中文。 &amp; &#0; &#xD800; < > \x00 \x01 \u2028 \ufffe {} "
    "' \" <svg> <template> <title> <body> <html> <select>"
)
_PIECES = st.sampled_from([piece.replace("_", " ") for piece in _SOUP.split(" ")])


@given(st.lists(_PIECES, max_size=60))
@settings(max_examples=300, deadline=2000)
def test_any_soup_of_tags_is_read_or_refused(pieces):
    page = " ".join(pieces)
    parsed, reason = _outcome(b"<!doctype html>" + page.encode("utf-8", "surrogatepass"))
    if parsed is None:
        assert reason in ("empty", "no_text", "encoding")
        return
    assert all(b.text.strip() or b.table for b in parsed.blocks)
    assert [b.paragraph for b in parsed.blocks] == list(range(len(parsed.blocks)))


def _outcome(content: bytes) -> tuple[ParsedDocument | None, str]:
    try:
        parsed = parse_bytes(content, "page.html")
        build(parsed)
    except DocumentRejected as error:
        return None, error.code
    return parsed, ""
