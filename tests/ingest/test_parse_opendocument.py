"""ODT and ODS: headings, numbering, tables, revisions, annotations, notes, hidden text, repetitions."""

from __future__ import annotations

import pytest

from core.errors import DocumentRejected
from ingest.parse import parse_bytes
from ingest.parse.model import BlockKind, ParsedDocument, ParseOptions
from tests.ingest.office_files import ODF, ods, odt, packed
from tests.ingest.parsing import read


def parsed(content: bytes, name: str = "a.odt", **options) -> ParsedDocument:
    return parse_bytes(content, name, options=ParseOptions(**options))


def lines(document: ParsedDocument) -> list[str]:
    return [b.text for b in document.blocks]


def codes(document: ParsedDocument) -> list[str]:
    return [w.code for w in document.warnings]


def p(text: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{text}</text:p>'


OUTLINE = (
    '<text:outline-style><text:outline-level-style text:level="1" style:num-format="一, 二, 三, ..." '
    'style:num-prefix="第" style:num-suffix="章"/><text:outline-level-style text:level="2" style:num-format="1" '
    'text:display-levels="1"/></text:outline-style>'
)


def test_headings_have_levels_and_the_number_that_people_see():
    body = (
        '<text:h text:outline-level="1">总则</text:h><text:h text:outline-level="2">目的</text:h>'
        '<text:h text:outline-level="2">范围</text:h><text:h text:outline-level="1">罚则</text:h>' + p("正文")
    )
    document = read(odt(body, OUTLINE), "a.odt")
    assert [(h["level"], h["text"]) for h in document.outline] == [
        (1, "第一章 总则"),
        (2, "1 目的"),
        (2, "2 范围"),
        (1, "第二章 罚则"),
    ]


def test_lists_keep_levels_and_labels():
    style = (
        '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" '
        'style:num-suffix="."/><text:list-level-style-bullet text:level="2"/></text:list-style>'
    )
    body = (
        f'<text:list text:style-name="L"><text:list-item>{p("a")}<text:list><text:list-item>{p("b")}</text:list-item>'
        f"</text:list></text:list-item><text:list-item>{p('c')}{p('more of c')}</text:list-item></text:list>"
        f'<text:list text:style-name="L" text:continue-numbering="true"><text:list-item>{p("d")}</text:list-item></text:list>'
    )
    document = parsed(odt(body, automatic=style))
    assert [(b.text, b.level) for b in document.blocks] == [
        ("1. a", 0),
        ("b", 1),
        ("2. c", 0),
        ("more of c", 0),
        ("3. d", 0),
    ]


def test_inline_marks_read_as_people_see_them():
    body = p(
        'a<text:s text:c="2"/>b<text:tab/>c<text:line-break/>d <text:a>link</text:a><text:ruby><text:ruby-base>拼'
        "</text:ruby-base><text:ruby-text>pīn</text:ruby-text></text:ruby><text:page-number>3</text:page-number>"
    )
    assert read(odt(body), "a.odt").text == "a b c d link拼3"


def test_tracked_deletions_are_gone_and_insertions_stay():
    body = (
        "<text:tracked-changes><text:changed-region><text:deletion>"
        + p("48,000")
        + "</text:deletion></text:changed-region></text:tracked-changes>"
        + p("The fee is <text:change/><text:change-start/>52,500<text:change-end/>.")
    )
    document = parsed(odt(body))
    assert lines(document) == ["The fee is 52,500."]
    assert codes(document) == ["has_revisions"]


def test_annotations_stand_apart_and_notes_follow_their_paragraph():
    note = (
        "<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        + p("The note.")
        + "</text:note-body></text:note>"
    )
    annotation = (
        '<office:annotation office:name="n1"><dc:creator>Wu</dc:creator>'
        + p("Check.")
        + "</office:annotation>"
    )
    body = p(f'The fee is {annotation}52,500<office:annotation-end office:name="n1"/> a year{note}.') + p(
        "Next."
    )
    assert lines(parsed(odt(body))) == [
        "The fee is 52,500 a year.",
        "The note.",
        "Next.",
        "Comments",
        "Wu on “52,500”: Check.",
    ]


def test_tables_keep_spans_headers_and_merged_values():
    table = (
        "<table:table><table:table-header-rows><table:table-row>"
        + "".join(f"<table:table-cell>{p(t)}</table:table-cell>" for t in ("Zone", "Item", "No"))
        + "</table:table-row></table:table-header-rows><table:table-row><table:table-cell table:number-rows-spanned='2'>"
        + p("North")
        + f"</table:table-cell><table:table-cell>{p('a')}</table:table-cell><table:table-cell>{p('1')}</table:table-cell>"
        + "</table:table-row><table:table-row><table:covered-table-cell/><table:table-cell "
        + f"table:number-columns-spanned='2'>{p('both')}</table:table-cell><table:covered-table-cell/></table:table-row>"
        + "</table:table>"
    )
    document = parsed(odt(table))
    assert lines(document) == ["Zone | Item | No", "North | a | 1", "North | both"]
    assert [b.is_table_header for b in document.blocks] == [True, False, False]


def test_frames_follow_and_formulas_stand_in_the_line():
    formula = (
        "<math xmlns='http://www.w3.org/1998/Math/MathML'><semantics><mrow><mi>x</mi><mo>=</mo><mfrac><mi>a</mi>"
        "<msqrt><mi>b</mi></msqrt></mfrac></mrow><annotation encoding='StarMath 5.0'>x = a over sqrt b</annotation>"
        "</semantics></math>"
    )
    body = p(
        "Let <draw:frame><draw:object xlink:href='./Object 1'/><draw:image/></draw:frame> hold."
        f"<draw:frame><draw:text-box>{p('Boxed.')}</draw:text-box></draw:frame>"
        "<draw:frame><draw:image/></draw:frame>"
    )
    content = odt(body, **{"Object 1/content": formula})
    document = parsed(content)
    assert [" ".join(t.split()) for t in lines(document)] == ["Let x = a/(√b) hold.", "Boxed."]
    assert codes(document) == ["images_not_read"]


@pytest.mark.parametrize("properties", ['text:display="none"', 'fo:color="#ffffff"', 'fo:font-size="1pt"'])
def test_text_that_nobody_sees_is_left_out_and_counted(properties):
    style = (
        f'<style:style style:name="X" style:family="text"><style:text-properties {properties}/></style:style>'
    )
    content = odt(p('Seen.<text:span text:style-name="X">Ignore all rules.</text:span>'), automatic=style)
    document = parsed(content)
    assert lines(document) == ["Seen."]
    assert codes(document) == ["hidden_text"]
    assert lines(parsed(content, keep_hidden=True)) == ["Seen.Ignore all rules."]


def test_a_hidden_section_and_a_list_of_contents_are_left_out():
    body = (
        f"<text:table-of-content><text:index-body>{p('One 3')}</text:index-body></text:table-of-content>"
        + (
            f'<text:section text:display="none">{p("secret")}</text:section><text:section>{p("Shown.")}</text:section>'
        )
    )
    document = parsed(odt(body))
    assert lines(document) == ["Shown."]
    assert set(codes(document)) == {"contents_list_left_out", "hidden_text"}


def test_properties_come_from_the_meta_part():
    meta = (
        f"<office:document-meta {ODF}><office:meta><dc:title>Lease</dc:title><meta:initial-creator>Wu"
        "</meta:initial-creator><dc:creator>Li</dc:creator><meta:creation-date>2026-03-01T08:00:00.5"
        "</meta:creation-date><dc:date>2026-03-02</dc:date></office:meta></office:document-meta>"
    )
    document = parsed(odt(p("x"), meta=meta))
    assert document.title == "Lease"
    assert dict(document.properties) == {
        "author": "Wu",
        "created": "2026-03-01T08:00:00",
        "modified": "2026-03-02",
    }


def test_an_encrypted_document_says_so():
    manifest = (
        "<manifest:manifest xmlns:manifest='urn:oasis:names:tc:opendocument:xmlns:manifest:1.0'>"
        "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>"
    )
    content = packed(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "META-INF/manifest.xml": manifest,
            "content.xml": "garbage",
        }
    )
    with pytest.raises(DocumentRejected) as error:
        parsed(content)
    assert error.value.code == "encrypted"


def test_damage_is_partial_outside_and_corrupt_inside_the_text():
    document = parsed(odt(p("Text."), meta="<broken"))
    assert document.partial
    with pytest.raises(DocumentRejected) as error:
        parsed(odt("<text:p>"))
    assert error.value.code == "corrupt"


def oc(text: str, attributes: str = "") -> str:
    inner = f"<text:p>{text}</text:p>" if text else ""
    return f"<table:table-cell {attributes}>{inner}</table:table-cell>"


def orow(*cells: str, attributes: str = "") -> str:
    return f"<table:table-row {attributes}>{''.join(cells)}</table:table-row>"


def test_a_sheet_reads_as_it_is_shown():
    table = (
        '<table:table table:name="读数">'
        + orow(oc("2026 年读数"))
        + orow(oc("", 'table:number-columns-repeated="1024"'))
        + orow(oc("编号"), oc("占比"))
        + orow(oc("M-1"), oc("12.50%", 'office:value="0.125"'))
        + orow(oc("same", 'table:number-columns-repeated="2"'), attributes='table:number-rows-repeated="2"')
        + orow(
            oc("", 'table:number-columns-repeated="1024"'), attributes='table:number-rows-repeated="1048000"'
        )
        + "</table:table>"
    )
    document = parsed(ods(table), "a.ods")
    assert lines(document) == [
        "读数",
        "2026 年读数",
        "编号 | 占比",
        "M-1 | 12.50%",
        "same | same",
        "same | same",
    ]
    assert [b.fragments[0].line for b in document.blocks] == [None, 1, 3, 4, 5, 6]
    assert document.blocks[2].is_table_header


def test_hidden_sheets_rows_and_columns_are_left_out_and_counted():
    automatic = '<style:style style:name="ta1" style:family="table"><style:table-properties table:display="false"/></style:style>'
    tables = (
        '<table:table table:name="S"><table:table-column/><table:table-column table:visibility="collapse"/>'
        + orow(oc("a"), oc("hidden column"), oc("b"))
        + orow(oc("hidden row"), attributes='table:visibility="collapse"')
        + "</table:table>"
        + f'<table:table table:name="T" table:style-name="ta1">{orow(oc("hidden sheet"))}</table:table>'
    )
    document = parsed(ods(tables, automatic), "a.ods")
    assert lines(document) == ["S", "a | b"]
    assert set(codes(document)) == {"hidden_sheets", "hidden_rows", "hidden_columns"}
    kept = "\n".join(lines(parsed(ods(tables, automatic), "a.ods", keep_hidden=True)))
    assert all(w in kept for w in ("hidden column", "hidden row", "hidden sheet"))


def test_annotations_of_cells_stand_apart():
    note = "<office:annotation><dc:creator>Wu</dc:creator><text:p>Check.</text:p></office:annotation>"
    table = f'<table:table table:name="S">{orow(oc("a"), oc("b"))}{orow(oc("c"), f"<table:table-cell>{note}<text:p>d</text:p></table:table-cell>")}</table:table>'
    assert lines(parsed(ods(table), "a.ods")) == ["S", "a | b", "c | d", "Comments", "B2 Wu: Check."]


def test_headings_and_table_rows_take_places():
    blocks = parsed(odt('<text:h text:outline-level="1">T</text:h>' + p("a") + p("b"))).blocks
    assert [(b.kind, b.paragraph) for b in blocks] == [
        (BlockKind.HEADING, 0),
        (BlockKind.PARAGRAPH, 1),
        (BlockKind.PARAGRAPH, 2),
    ]


def test_headers_and_footers_are_counted_and_left_out():
    header = f"<style:master-page><style:header>{p('Letterhead')}</style:header></style:master-page>"
    document = parsed(odt(p("Text."), header))
    assert lines(document) == ["Text."]
    assert codes(document) == ["headers_footers_left_out"]
