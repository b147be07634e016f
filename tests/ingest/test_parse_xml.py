import base64
import html
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import DocumentRejected
from core.types import Span
from ingest.parse import parse_bytes
from tests.ingest.parsing import read

LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol">'
    + "".join(
        f'<!ENTITY lol{n} "{f"&lol{n - 1 if n > 1 else chr(32)};".replace(" ", "") * 10}">'
        for n in range(1, 10)
    )
    + "]><lolz>&lol9;</lolz>"
)


def texts(content: str, name: str = "a.xml") -> list[str]:
    return [b.text for b in parse_bytes(content.encode(), name).blocks]


def test_sections_of_prose_give_headings_and_paths():
    document = read(
        b"""<book xmlns="http://docbook.org/ns/docbook" xml:lang="en"><info><title>Manual</title></info>
<chapter><title>Pump</title><para>It <emphasis>runs</emphasis>
daily.</para><section><title>Valve</title><para>Opens at 5 bar.</para>
<figure><title>Fig 1</title></figure><para>Closes at 2.</para></section></chapter></book>""",
        "a.xml",
    )
    text = document.text
    paths = {text[b.span.start : b.span.end]: b.heading_path for b in document.blocks}
    assert paths["It runs daily."][-1] == "Pump"
    assert paths["Closes at 2."][-2:] == ("Pump", "Valve")
    assert document.title == "Manual"


def test_tables_lists_and_code_keep_their_form():
    parsed = parse_bytes(
        b"""<article><p>Long text about the pump and all of its parts, as prose goes.</p>
<table><thead><row><entry>a</entry><entry>b</entry></row></thead><tbody><row><entry>1</entry><entry/></row></tbody></table>
<list><item><p>one</p></item><item>two</item></list><programlisting>x = 1

y = 2</programlisting></article>""",
        "a.xml",
    )
    assert [(b.kind.value, b.text, b.is_table_header) for b in parsed.blocks[1:]] == [
        ("table_row", "a | b", True),
        ("table_row", "1 | ", False),
        ("list_item", "one", False),
        ("list_item", "two", False),
        ("code", "x = 1", False),
        ("code", "y = 2", False),
    ]
    assert parsed.blocks[-1].fragments[0].line == 5


def test_records_keep_their_names_together():
    content = (
        '<staff><person id="7"><name>Al</name><dept>Works</dept><empty/></person>'
        "<person id='8'><name>Bo</name><dept>Sales</dept></person><note>closed</note></staff>"
    )
    assert texts(content) == [
        "person: id: 7 | name: Al | dept: Works",
        "person: id: 8 | name: Bo | dept: Sales",
        "note: closed",
    ]


def test_files_packed_into_xml_are_no_text():
    packed = base64.encodebytes(bytes(range(256)) * 4).decode()
    assert texts(f"<a><note>text</note><picture>{packed}</picture></a>") == ["note: text"]
    assert texts(f"<a><picture id='1'>{packed}</picture></a>") == ["picture: id: 1"]


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (
            "<FictionBook><body><title><p>Book</p></title><section><title><p>One</p></title>"
            "<p>The pump runs.</p></section></body></FictionBook>",
            ("Book", "One"),
        ),
        (
            "<article><front><article-meta><title-group><article-title>Pumps</article-title>"
            "</title-group></article-meta></front><body><sec><title>Methods</title>"
            "<p>The pump runs.</p></sec></body></article>",
            ("Methods",),
        ),
        (
            '<TEI xmlns="http://www.tei-c.org/ns/1.0"><text><body><div><head>第一章</head><div><head>水泵</head>'
            "<p>The pump runs.</p></div></div></body></text></TEI>",
            ("第一章", "水泵"),
        ),
        (
            "<topic id='t'><title>Pumps</title><body><p>The pump runs.</p></body></topic>",
            ("Pumps",),
        ),
    ],
)
def test_books_articles_and_topics_keep_their_sections(content, path):
    document = read(content.encode(), "a.xml")
    assert document.text.endswith("The pump runs.")
    assert document.blocks[-1].heading_path == path


def test_values_in_attributes_are_text():
    assert texts(
        '<rows><row Id="1" Title="泵" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"/></rows>'
    ) == ["row: Id: 1 | Title: 泵"]


def test_a_place_leads_to_the_line():
    document = read(b"<?xml version='1.0'\n?>\n<staff>\n<a>x</a>\n<b>valve</b><b>y</b></staff>", "a.xml")
    at = document.text.index("valve")
    assert document.offset_map.place(Span(at, at + 5)).line == 5


def test_lines_past_65535_are_counted():
    content = "<rows>" + "\n" * 70_000 + "<row><a>x</a><b>valve</b></row></rows>"
    assert parse_bytes(content.encode(), "a.xml").blocks[0].fragments[-1].line == 70_001


@pytest.mark.parametrize(
    "content",
    [
        LAUGHS,
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        '<!DOCTYPE a [<!-- ]> -->\n<!ENTITY x "]>">]><a>&x;</a>',
        '<!-- <b> --><!DOCTYPE a [<!ENTITY x "y">]><a t="&x;">text</a>',
    ],
)
def test_declared_entities_are_refused(content):
    with pytest.raises(DocumentRejected) as error:
        texts(content)
    assert error.value.code == "refused"


def test_a_document_type_without_entities_is_not_loaded_and_does_no_harm():
    content = (
        '<!DOCTYPE article PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "http://example.invalid/docbookx.dtd">'
        "<article><para>The pump&nbsp;runs&mdash;daily.</para></article>"
    )
    assert texts(content) == ["The pump runs—daily."]


def test_a_document_type_that_names_a_list_of_characters_is_ignored():
    content = (
        '<?xml version="1.0"?>\n<!-- <!DOCTYPE b [<!ENTITY c "d">]> -->\n<!DOCTYPE a [\n<!ENTITY % chars '
        'PUBLIC "x" "http://127.0.0.1:1/x.ent">\n%chars;]>\n<a><p>one&eacute; <i>b</i></p><p>two</p></a>'
    )
    parsed = parse_bytes(content.encode(), "a.xml")
    assert [(b.text, b.fragments[0].line) for b in parsed.blocks] == [("oneé b", 6), ("two", 6)]
    assert not parsed.partial


def test_text_that_is_cut_off_inside_a_section_of_characters_is_kept():
    parsed = parse_bytes(b"<a><note><![CDATA[The pump <b> runs", "a.xml")
    assert parsed.partial
    assert parsed.blocks[0].text == "note: The pump <b> runs"


def test_what_is_not_well_formed_is_read_as_far_as_it_goes_and_said_so():
    parsed = parse_bytes(b"<doc><p>One <b>two</p><p>three</p>", "a.xml")
    assert parsed.partial
    assert [w.code for w in parsed.warnings] == ["xml_malformed"]
    assert "three" in " ".join(b.text for b in parsed.blocks)


@pytest.mark.parametrize("content", ["<?xml version='1.0'?>", "<a></a>", "<?xml"])
def test_what_holds_no_text_has_a_reason(content):
    with pytest.raises(DocumentRejected) as error:
        texts(content)
    assert error.value.code in ("empty", "corrupt")


def test_deep_nesting_is_no_trouble():
    with suppress(DocumentRejected):
        assert parse_bytes(("<a>" * 5000 + "x" + "</a>" * 5000).encode(), "a.xml").partial


NAMES = st.sampled_from(["p", "section", "title", "row", "td", "a", "b", "item"])
NODES = st.recursive(
    st.text("xyz 水&", max_size=8).map(lambda t: t.replace("&", "&amp;")),
    lambda inner: st.tuples(NAMES, st.lists(inner, max_size=4)).map(
        lambda n: f"<{n[0]}>{''.join(n[1])}</{n[0]}>"
    ),
    max_leaves=25,
)


def letters(text: str) -> str:
    return "".join(sorted(c for c in text if c in "xyzq水&"))


@given(NODES, st.sampled_from(["q", "<c>q</c><d>q</d>", "<p>q</p>"]))
def test_no_letter_of_any_tree_is_lost_or_doubled(inner, lead):
    content = f"<root>{lead}{inner}</root>"
    words = letters(html.unescape(re.sub(r"<[^>]*>", "", content)))
    assert letters("".join(texts(content))) == words
