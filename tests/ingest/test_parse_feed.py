from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.types import Span
from ingest.normalize import build
from ingest.parse import parse_bytes
from tests.ingest.parsing import read


def rss(items: str, head: str = "<title>News</title>", declaration: str = "") -> bytes:
    return f'{declaration}<rss version="2.0"><channel>{head}{items}</channel></rss>'.encode()


ITEM = (
    "<item><title>Pump <![CDATA[& valve]]></title><link>http://example.org/1</link>"
    "<pubDate>Mon, 04 Mar 2024 10:00:00 +0800</pubDate><author>al@example.org (Al Ray)</author>"
    "<category>Works</category>"
    "<description>&lt;p&gt;The &lt;b&gt;pump&lt;/b&gt; runs.&lt;/p&gt;</description></item>"
)


def texts(content: bytes, name: str = "feed.xml") -> list[str]:
    return [b.text for b in parse_bytes(content, name).blocks]


def test_an_entry_is_a_heading_a_line_about_it_and_its_content():
    assert texts(rss(ITEM)) == [
        "News",
        "Pump & valve",
        "2024-03-04T10:00:00+08:00 | Al Ray | http://example.org/1 | Works",
        "The pump runs.",
    ]


def test_entries_stand_below_the_feed_and_headings_inside_below_the_entry():
    inside = "&lt;h1&gt;In&lt;/h1&gt;&lt;p&gt;x&lt;/p&gt;"
    item = f"<item><title>One</title><description>{inside}</description></item>"
    document = read(rss(item), "feed.xml")
    assert document.blocks[-1].heading_path == ("News", "One", "In")
    assert document.title == "News"


def test_the_full_content_is_taken_and_not_its_excerpt():
    content = (
        '<rss xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>'
        "<title>N</title><item><title>T</title>"
        "<description>Short…</description><content:encoded><![CDATA[<p>Whole & long.</p>]]></content:encoded>"
        "</item></channel></rss>"
    )
    assert texts(content.encode()) == ["N", "T", "Whole & long."]


def test_atom_is_read_with_html_and_with_markup_of_its_own():
    content = """<?xml version="1.0"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="zh">
<title>新闻</title><author><name>Li</name></author><updated>2024-03-05T00:00:00Z</updated>
<entry><title type="html">A &amp;amp; B</title><link href="http://example.org/a"/><link rel="self" href="x"/>
<published>2024-03-04T00:00:00Z</published>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>First.</p><p>Second.</p></div></content></entry>
<entry><title>C</title><summary>Plain
text.</summary></entry></feed>"""
    parsed = parse_bytes(content.encode(), "feed.atom")
    assert [b.text for b in parsed.blocks] == [
        "新闻",
        "A & B",
        "2024-03-04T00:00:00+00:00 | http://example.org/a",
        "First.",
        "Second.",
        "C",
        "Plain text.",
    ]
    assert parsed.properties == {"author": "Li", "modified": "2024-03-05T00:00:00+00:00", "language": "zh"}
    assert parsed.media_type == "application/atom+xml"


def test_text_that_an_entry_hides_is_left_out_and_said_so():
    hidden = '&lt;p&gt;Seen.&lt;/p&gt;&lt;p style="display:none"&gt;secret&lt;/p&gt;'
    parsed = parse_bytes(rss(f"<item><title>T</title><description>{hidden}</description></item>"), "feed.xml")
    assert [b.text for b in parsed.blocks] == ["News", "T", "Seen."]
    assert [w.code for w in parsed.warnings] == ["hidden_text"]


def test_titles_of_pictures_are_not_the_title_of_the_entry():
    item = (
        '<item><media:title xmlns:media="http://search.yahoo.com/mrss/">photo</media:title>'
        "<title>Pump</title></item>"
    )
    assert texts(rss(item)) == ["News", "Pump"]


def test_a_place_leads_to_the_line_in_the_feed():
    item = "\n<item>\n<title>T</title>\n<description><![CDATA[<p>a</p>\n<p>valve</p>]]></description></item>"
    document = read(rss(item), "feed.xml")
    at = document.text.index("valve")
    assert document.offset_map.place(Span(at, at + 5)).line == 5


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [("gb2312", "gbk"), ("utf-8", "gbk"), ("big5", "gbk"), ("gbk", "utf-8"), ("utf-16", "utf-8")],
)
def test_a_feed_is_read_in_its_true_encoding_whatever_it_declares(declared, encoding):
    text = "主轴预热说明：预热时间为十五分钟，温度低于五度时延长到二十五分钟。"
    content = rss(
        f"<item><title>{text}</title></item>", declaration=f'<?xml version="1.0" encoding="{declared}"?>'
    )
    assert texts(content.decode().encode(encoding))[-1] == text


def test_names_of_characters_and_bare_ampersands_do_not_break_a_feed():
    parsed = parse_bytes(rss("<item><title>A&nbsp;&amp; B & C&copy; &unknown;</title></item>"), "feed.xml")
    assert parsed.blocks[-1].text == "A & B & C© &unknown;"
    assert not parsed.partial


def test_a_feed_that_is_cut_off_gives_what_came():
    parsed = parse_bytes(rss(ITEM)[:-60], "feed.xml")
    assert parsed.partial
    assert [w.code for w in parsed.warnings] == ["xml_malformed"]
    assert "Pump & valve" in [b.text for b in parsed.blocks]


def test_a_feed_without_entries_is_read_as_xml():
    assert texts(rss("")) == ["version: 2.0", "channel: title: News"]


@pytest.mark.parametrize(
    ("file", "contains"),
    [
        ("enc_gb2312_rss.xml", ("网页设计师 - 文章教程", "如何以及何时使用sIFR")),
        ("enc_big5_rss.xml", ("這是苦勞網的 RSS", "文建會硬不起來")),
    ],
)
def test_the_shared_feeds_are_read(shared_data: Path, file, contains):
    path = shared_data / "data" / "docs" / file
    if not path.exists():
        pytest.skip("file not laid beside this checkout")
    document = build(parse_bytes(path.read_bytes(), file))
    assert all(text in document.text for text in contains)
    assert document.media_type == "application/rss+xml"


@given(st.lists(st.text("ab<>&;\n水", min_size=1, max_size=30), min_size=1, max_size=6))
def test_every_title_is_a_heading_in_order(titles):
    escaped = [t.replace("&", "&amp;").replace("<", "&lt;") for t in titles]
    content = rss("".join(f"<item><title>x{t}y</title></item>" for t in escaped))
    found = [b.text for b in parse_bytes(content, "feed.xml").blocks if b.level == 2]
    assert len(found) == len(titles)
