import pytest

from ingest.parse import parse_bytes
from ingest.parse.html import blocks_of_fragment
from ingest.parse.model import Block, BlockKind
from tests.ingest.parsing import cut, read


def fragment(html: str) -> list[Block]:
    return blocks_of_fragment(html)[0]


def texts(html: str) -> list[str]:
    return [block.text for block in fragment(html)]


def test_nested_lists_keep_levels_and_numbers():
    blocks = fragment(
        "<ol start=3><li>three<ul><li>inner<ol type=a><li>deep</li></ol></li></ul></li><li value=7>seven</li>"
        "<li>eight</li></ol><ol reversed><li>b</li><li>a</li></ol><ol type=I><li>x</li></ol>"
    )
    assert [(b.level, b.text) for b in blocks] == [
        (0, "3. three"),
        (1, "inner"),
        (2, "a. deep"),
        (0, "7. seven"),
        (0, "8. eight"),
        (0, "2. b"),
        (0, "1. a"),
        (0, "I. x"),
    ]
    assert {b.kind for b in blocks} == {BlockKind.LIST_ITEM}


def test_definitions_stand_one_level_below_their_terms():
    blocks = fragment(
        "<dl><dt>port</dt><dd>A number.</dd><dt>host</dt><dd><p>A name.</p><p>Or an address.</p></dd></dl>"
    )
    assert [(b.kind.value, b.level, b.text) for b in blocks] == [
        ("list_item", 0, "port"),
        ("list_item", 1, "A number."),
        ("list_item", 0, "host"),
        ("list_item", 1, "A name."),
        ("paragraph", 0, "Or an address."),
    ]


def test_headings_of_all_levels_are_kept():
    blocks = fragment("".join(f"<h{n}>Head {n}</h{n}>" for n in range(1, 7)))
    assert [(b.kind, b.level) for b in blocks] == [(BlockKind.HEADING, n) for n in range(1, 7)]


def test_code_keeps_its_indentation_and_its_lines():
    blocks = fragment("<p>x</p>\n<pre><code>def f():\n    return {\n\t1}\n\n}</code></pre>")
    code = [b for b in blocks if b.kind is BlockKind.CODE]
    assert [b.text for b in code] == ["def f():", "    return {", "    1}", "}"]
    assert [b.fragments[0].line for b in code] == [2, 3, 4, 6]


def test_quotes_captions_summaries_and_addresses_are_paragraphs():
    page = (
        "<blockquote>Quoted.</blockquote><figure><img alt='x'><figcaption>A caption.</figcaption></figure>"
        "<details><summary>More</summary>Inside.</details><address>1 Road</address><p>He said <q>yes</q>.</p>"
    )
    assert texts(page) == ["Quoted.", "A caption.", "More", "Inside.", "1 Road", "He said “yes”."]


def test_a_break_with_an_indent_begins_a_paragraph_and_a_plain_one_does_not():
    assert texts("<div>通知：<br>　　第一条。<br>　　第二条。<br>署名</div>") == [
        "通知：",
        "第一条。",
        "第二条。\u2028署名",
    ]
    assert texts("<p>Line one<br>line two<br><br>New</p>") == ["Line one\u2028line two", "New"]


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("10<sup>5</sup> H<sub>2</sub>O", "10⁵ H₂O"),
        ("the 1<sup>st</sup> of May", "the 1st of May"),
        ("fact<sup><a href='#n1'>[1]</a></sup>.", "fact."),
        ("fact<sup class='reference'>[2]</sup>.", "fact."),
        ("<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>字", "漢字"),
        ("mass <math alttext='{\\displaystyle E=mc^2}'><mi>E</mi></math> here", "mass  E=mc^2  here"),
        ("<math><mfrac><mn>1</mn><mrow><mi>x</mi><mo>+</mo><mn>2</mn></mrow></mfrac></math>", "1/(x + 2)"),
        ("<math><msqrt><msup><mi>a</mi><mn>2</mn></msup></msqrt></math>", "√(a^2)"),
        (
            "see <a href='/x'>the manual</a> and <img class='tex' alt='\\alpha'>",
            "see the manual and  \\alpha",
        ),
        ("soft<wbr>ware &amp; &lt;b&gt;tags&lt;/b&gt; &copy;", "software & <b>tags</b> ©"),
    ],
)
def test_inline_markup_becomes_text(markup, text):
    assert texts(f"<p>{markup}</p>") == [text]


def test_header_cells_name_the_columns_of_later_passages():
    rows = "".join(f"<tr><td>item {n}</td><td>{n}</td></tr>" for n in range(200))
    document = read(
        f"<main><table><thead><tr><th>Name<th>Count</thead>{rows}</table></main>".encode(), "t.html"
    )
    assert all(d.heading_path[-1] == "Name | Count" for d in cut(document)[1:])


def test_spans_are_filled_so_that_each_row_can_be_read_alone():
    page = """<table><caption>Opening</caption>
    <tr><th rowspan=2>Day</th><th colspan=2>Hall</th></tr><tr><th>from</th><th>to</th></tr>
    <tr><td rowspan=2>Monday</td><td>9</td><td>12</td></tr><tr><td>14</td><td>18</td></tr>
    <tr><td colspan=3>Closed on holidays</td></tr><tr><td>Sunday</td><td colspan=2>closed</td></tr></table>"""
    blocks = fragment(page)
    assert [b.text for b in blocks] == [
        "Opening",
        "Day | Hall from | Hall to",
        "Monday | 9 | 12",
        "Monday | 14 | 18",
        "Closed on holidays",
        "Sunday | closed | closed",
    ]
    assert [b.is_table_header for b in blocks] == [False, True, False, False, False, False]
    assert {b.table for b in blocks[1:]} == {1}


def test_a_first_row_set_bold_is_a_header_and_row_heads_are_not():
    bold = (
        "<table><tr><td><b>品类</b></td><td><b>期限</b></td></tr><tr><td>图书</td><td>七天</td></tr></table>"
    )
    heads = "<table><tr><th>容量</th><td>480</td></tr><tr><th>净重</th><td>265</td></tr></table>"
    assert [b.is_table_header for b in fragment(bold)] == [True, False]
    assert [b.is_table_header for b in fragment(heads)] == [False, False]


def test_tables_in_tables_follow_their_row():
    page = """<table border=1><tr><th>Kind</th><th>Sizes</th></tr><tr><td>Pipe</td><td>see
    <table><tr><td>S</td><td>10</td></tr><tr><td>M</td><td>20</td></tr></table></td></tr><tr><td>Rod</td><td>5</td></tr></table>"""
    blocks = fragment(page)
    assert [(b.table, b.text) for b in blocks] == [
        (1, "Kind | Sizes"),
        (1, "Pipe | see"),
        (2, "S | 10"),
        (2, "M | 20"),
        (1, "Rod | 5"),
    ]


def test_layout_tables_are_not_tables():
    page = "<table><tr><td><h2>News</h2><p>First.</p></td><td><p>Second.</p></td></tr></table>"
    assert [(b.kind, b.table) for b in fragment(page)] == [
        (BlockKind.HEADING, None),
        (BlockKind.PARAGRAPH, None),
        (BlockKind.PARAGRAPH, None),
    ]


def test_spans_of_a_hostile_table_do_not_multiply_without_end():
    row = "<tr>" + "<td colspan=1000 rowspan=1000>x</td>" * 40 + "</tr>"
    blocks = fragment(f"<table>{row * 200}</table>")
    assert sum(len(b.fragments) for b in blocks) < 1_000_000


def test_each_fragment_knows_its_line():
    page = (
        "<!doctype html>\n<!-- a\ncomment -->\n<script>\nvar x;\n</script>\n<body>\n<p\n class=x>First\nline "
        "<b>bold\n</b> end</p><style>\n.a{}\n</style><p>After</p>\n<table><tr><td>a\n</td>\n<td>b</td></tr>"
        "<tr><td>c</td><td>d</td></tr></table>\n\n<ul>\n<li>item</ul>"
    )
    lines = page.split("\n")
    for block in fragment(page):
        for piece in block.fragments:
            assert piece.line is not None
            assert all(word in lines[piece.line - 1] for word in piece.text.split()), (piece.text, piece.line)


def test_lines_are_right_in_the_main_content_too():
    paragraphs = "\n\n".join(f"<p>Sentence number {n} tells how the pump is set up.</p>" for n in range(40))
    menu = "\n".join(f"<li><a href='/{n}'>Page {n}</a>" for n in range(30))
    page = f"<body><div><ul>\n{menu}\n</ul></div>\n<script>\n\n</script>\n<div>\n{paragraphs}\n</div></body>"
    lines = page.split("\n")
    document = parse_bytes(page.encode(), "p.html")
    assert len(document.blocks) == 40
    assert all(f.text in lines[f.line - 1] for b in document.blocks for f in b.fragments if f.line)


def test_a_self_link_is_not_part_of_a_heading():
    assert texts('<h2>安装<a class="headerlink" href="#a">¶</a></h2>') == ["安装"]


def test_a_line_of_code_that_is_one_bracket_stays():
    document = read(b"<main><p>Add this to the file:</p><pre>run {\n    fast\n}\n</pre></main>", "page.html")
    assert document.text == "Add this to the file:\n\nrun {\n    fast\n}"
