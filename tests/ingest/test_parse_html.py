import pytest

from core.errors import DocumentRejected
from ingest.parse.html import blocks_of_fragment
from tests.ingest.parsing import SAMPLES, cut, read

PAGE = """<!doctype html><html lang="zh"><head><meta charset="utf-8"><title>退换货说明</title>
<script>var a="不要索引我";</script></head><body>
<header><nav><a href="/">首页</a> | <a href="/hot">热销榜</a></nav></header><aside>猜你喜欢：保温杯</aside>
<article><h1>退换货说明</h1><p>自签收之日起十四天内可申请换货，运费由商家承担。</p>
<p style="display:none">隐藏的指令</p><p hidden>看不见</p>
<table><tr><th>品类</th><th>期限</th></tr><tr><td>小家电</td><td>十四天</td></tr></table></article>
<div class="cookie">本站使用 Cookie，点击同意继续。</div><footer>© 示例商城</footer></body></html>"""


def test_content_and_tables_stay_furniture_and_hidden_text_go():
    document = read(PAGE.encode(), "page.html")
    assert document.text == (
        "退换货说明\n\n自签收之日起十四天内可申请换货，运费由商家承担。\n\n品类 | 期限\n小家电 | 十四天"
    )
    assert document.title == "退换货说明"
    assert [w["code"] for w in document.warnings] == ["hidden_text"]


def test_a_page_without_main_content_is_taken_whole_and_says_so():
    page = (
        "<html><body><nav><p>"
        + "Everything here stands inside a navigation element. " * 4
        + "</p></nav></body></html>"
    )
    document = read(page.encode(), "page.html")
    assert "Everything here" in document.text
    assert [w["code"] for w in document.warnings] == ["main_content_not_found"]


def test_a_page_of_links_is_taken_whole():
    links = "".join(f"<li><a href='/{n}'>Chapter {n}</a></li>" for n in range(50))
    document = read(f"<body><h1>Handbook</h1><ul>{links}</ul></body>".encode(), "page.html")
    assert "Chapter 49" in document.text
    assert [w["code"] for w in document.warnings] == ["main_content_not_found"]


def test_headings_that_are_links_stay_over_their_text():
    cards = "".join(
        f"<div><h3><a href='/{n}'>Name {n}</a></h3><p>Works in room {n} and answers letters there.</p></div>"
        for n in range(40)
    )
    document = read(f"<body><h1>Our staff</h1><div>{cards}</div></body>".encode(), "page.html")
    assert "Name 0\n\nWorks in room 0" in document.text
    assert "Name 39" in document.text


def test_headings_lists_breaks_and_code_become_blocks():
    page = (
        "<main><h1>Guide</h1><p>One<br>two<br><br>three</p><h2>Steps</h2><ol><li><p>Unpack.</p></li>"
        "<li>Fill.</li></ol><pre>a = 1\nb = 2</pre></main>"
    )
    document = read(page.encode(), "page.html")
    assert document.text == "Guide\n\nOne two\n\nthree\n\nSteps\n\n1. Unpack.\n2. Fill.\n\na = 1\nb = 2"
    assert [h["level"] for h in document.outline] == [1, 2]


def test_bytes_win_over_a_declared_encoding_that_does_not_fit():
    page = '<html><head><meta charset="utf-8"></head><body><p>检索增强生成需要可靠的引用。</p></body></html>'
    document = read(page.encode("gbk"), "page.html")
    assert "检索增强生成需要可靠的引用" in document.text
    assert document.encoding == "gb18030"


def test_lines_wrapped_in_the_source_join_without_a_space_in_chinese():
    document = read("<p>第一行的文字\n  接着第二行的文字。</p>".encode(), "page.html")
    assert document.text == "第一行的文字接着第二行的文字。"


def test_markup_in_text_stays_text():
    document = read(b"<p>Write &lt;b&gt;bold&lt;/b&gt; like this, then save the page again.</p>", "page.html")
    assert "Write <b>bold</b> like this" in document.text


def test_nested_tables_are_read_in_order():
    inner = "<table><tr><td>A1</td><td>B1</td></tr><tr><td>A2</td><td>B2</td></tr></table>"
    document = read(
        f"<table><tr><td>Left</td><td>{inner}</td></tr></table><p>After</p>".encode(), "page.html"
    )
    assert document.text.split() == ["Left", "A1", "|", "B1", "A2", "|", "B2", "After"]


@pytest.mark.parametrize("page", [b"<html></html>", b"<html><script>x</script></html>", b"<!doctype html>"])
def test_a_page_without_text_is_empty(page):
    with pytest.raises(DocumentRejected) as error:
        read(page, "page.html")
    assert error.value.code == "empty"


def test_the_library_sample_has_no_menu_and_no_cookie_bar():
    document = read((SAMPLES / "lindmark-library.html").read_bytes(), "lindmark-library.html")
    assert "Sign in" not in document.text
    assert "cookies" not in document.text
    assert "Books are lent for 28 days" in document.text
    hours = next(d for d in cut(document) if "Sunday" in d.text)
    assert hours.heading_path[-1] == "Opening hours"


def test_a_fragment_is_taken_whole():
    blocks, warnings = blocks_of_fragment(
        "<nav>Chapter list</nav><p>Dear reader,</p><script>alert(1)</script><p hidden>no</p><p>bye</p>"
    )
    assert [b.text for b in blocks] == ["Chapter list", "Dear reader,", "bye"]
    assert [w.code for w in warnings] == ["hidden_text"]
    assert blocks_of_fragment("  ") == ([], ())
