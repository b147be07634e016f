"""PPTX: order, titles, lists, tables, groups, charts, SmartArt, notes, comments, hidden parts, damage."""

from __future__ import annotations

import io
import zipfile

from core.types import Span
from ingest.parse import parse_bytes
from ingest.parse.model import BlockKind, ParsedDocument, ParseOptions
from tests.ingest.office_files import core, frame, packed, pptx, rels, shape
from tests.ingest.parsing import read

A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def parsed(content: bytes, **options) -> ParsedDocument:
    return parse_bytes(content, "a.pptx", options=ParseOptions(**options))


def lines(document: ParsedDocument) -> list[str]:
    return [b.text for b in document.blocks]


def codes(document: ParsedDocument) -> list[str]:
    return [w.code for w in document.warnings]


def with_parts(slide: str, links: dict[str, tuple[str, str]], **parts: str) -> bytes:
    """One slide with linked parts, named without folder and ending."""
    base = pptx([slide])
    with zipfile.ZipFile(io.BytesIO(base)) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    members["ppt/slides/_rels/slide1.xml.rels"] = rels(links).encode()
    return packed({**members, **{f"ppt/{name}.xml": xml for name, xml in parts.items()}})


def test_slides_follow_the_order_of_the_show_and_know_their_page():
    document = read(
        pptx([shape("First", "title") + shape("one"), shape("Second", "title") + shape("two")]), "a.pptx"
    )
    assert [h["text"] for h in document.outline] == ["First", "Second"]
    assert document.pages == 2
    at = document.text.index("two")
    assert document.offset_map.places(Span(at, at + 3))[0].page == 2


def test_shapes_read_from_top_left_to_bottom_right_placeholders_first():
    slide = (
        shape("bottom", x=0, y=5_000_000)
        + shape("right", x=900_000, y=1_000_000)
        + shape("left", x=0, y=1_050_000)
        + shape("body", "body", y=6_000_000)
        + shape("Title", "title", y=3_000_000)
    )
    assert lines(parsed(pptx([slide]))) == ["Title", "body", "left", "right", "bottom"]


def test_lists_keep_levels_and_automatic_numbers():
    item = '<a:p><a:pPr lvl="{}">{}</a:pPr><a:r><a:t>{}</a:t></a:r></a:p>'
    number = '<a:buAutoNum type="romanUcPeriod"/>'
    text = "\n".join(
        (
            item.format(0, number, "a"),
            item.format(1, "", "b"),
            item.format(0, number, "c"),
            item.format(0, "<a:buNone/>", "plain"),
        )
    )
    document = parsed(pptx([shape("T", "title") + shape(text, "body")]))
    assert lines(document) == ["T", "I. a", "b", "II. c", "plain"]
    assert [(b.kind, b.level) for b in document.blocks[1:]] == [
        (BlockKind.LIST_ITEM, 0),
        (BlockKind.LIST_ITEM, 1),
        (BlockKind.LIST_ITEM, 0),
        (BlockKind.PARAGRAPH, 0),
    ]


def cell(text: str, attributes: str = "") -> str:
    return f"<a:tc {attributes}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"


def test_tables_keep_merged_values_in_their_rows():
    tall, wide, down, right = 'rowSpan="2"', 'gridSpan="2"', 'vMerge="1"', 'hMerge="1"'
    table = (
        '<a:tbl><a:tblPr firstRow="1"/>'
        f"<a:tr>{cell('Zone')}{cell('Item')}{cell('Count')}</a:tr>"
        f"<a:tr>{cell('North', tall)}{cell('pumps')}{cell('3')}</a:tr>"
        f"<a:tr>{cell('', down)}{cell('both', wide)}{cell('', right)}</a:tr></a:tbl>"
    )
    document = parsed(pptx([shape("T", "title") + frame(table)]))
    assert lines(document)[1:] == ["Zone | Item | Count", "North | pumps | 3", "North | both"]
    assert [b.is_table_header for b in document.blocks[1:]] == [True, False, False]


def test_groups_and_formulas_are_read_where_they_stand():
    formula = (
        "<a:p><a:r><a:t>Let </a:t></a:r><mc:AlternateContent><mc:Choice Requires='a14'><m:oMath><m:f><m:num><m:r>"
        "<m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></m:oMath></mc:Choice>"
        "<mc:Fallback><a:r><a:t>[picture]</a:t></a:r></mc:Fallback></mc:AlternateContent></a:p>"
    )
    group = f"<p:grpSp><p:nvGrpSpPr><p:cNvPr id='1' name='g'/></p:nvGrpSpPr>{shape('inside')}{shape(formula, y=900000)}</p:grpSp>"
    assert lines(parsed(pptx([shape("T", "title") + group]))) == ["T", "inside", "Let a/b"]


def test_hidden_slides_shapes_and_text_off_the_slide_are_left_out_and_counted():
    slides = [
        shape("Seen", "title") + shape("gone", properties='hidden="1"') + shape("far away", x=20_000_000),
        shape("Hidden slide", "title"),
    ]
    content = pptx(slides, shows=["1", "0"])
    document = parsed(content)
    assert lines(document) == ["Seen"]
    assert {(w.code, w.pages) for w in document.warnings} == {("hidden_text", (1,)), ("hidden_slides", (2,))}
    kept = "\n".join(lines(parsed(content, keep_hidden=True)))
    assert all(w in kept for w in ("gone", "far away", "Hidden slide"))


def test_footers_and_slide_numbers_are_furniture():
    document = parsed(pptx([shape("T", "title") + shape("Confidential", "ftr") + shape("text")]))
    assert lines(document) == ["T", "text"]
    assert codes(document) == ["headers_footers_left_out"]


def test_notes_and_comments_stand_apart_under_headings():
    notes = f"<p:notes xmlns:p='http://schemas.openxmlformats.org/presentationml/2006/main' {A}>{shape('Say this.', 'body')}{shape('7', 'sldNum')}</p:notes>"
    comments = (
        "<p:cmLst xmlns:p='http://schemas.openxmlformats.org/presentationml/2006/main'>"
        "<p:cm authorId='1'><p:text>Check it.</p:text></p:cm></p:cmLst>"
    )
    authors = (
        "<p:cmAuthorLst xmlns:p='http://schemas.openxmlformats.org/presentationml/2006/main'>"
        "<p:cmAuthor id='1' name='Wu'/></p:cmAuthorLst>"
    )
    links = {"r1": ("notesSlide", "../notes1.xml"), "r2": ("comments", "../comment1.xml")}
    content = with_parts(
        shape("T", "title") + shape("body"), links, notes1=notes, comment1=comments, commentAuthors=authors
    )
    assert lines(parsed(content)) == ["T", "body", "Notes", "Say this.", "Comments", "Wu: Check it."]
    chinese = with_parts(shape("季度总结", "title") + shape("销售额增长"), links, notes1=notes)
    assert lines(parsed(chinese)) == ["季度总结", "销售额增长", "备注", "Say this."]


def test_a_slide_without_a_title_begins_a_section_of_its_own():
    document = parsed(pptx([shape("T", "title"), shape("loose text"), shape("零散的文字")]))
    assert lines(document) == ["T", "Slide 2", "loose text", "第 3 页", "零散的文字"]


def test_smartart_reads_as_a_list():
    diagram = (
        f"<dgm:dataModel xmlns:dgm='http://schemas.openxmlformats.org/drawingml/2006/diagram' {A}><dgm:ptLst>"
        "<dgm:pt modelId='0' type='doc'/>"
        "<dgm:pt modelId='2'><dgm:t><a:p><a:r><a:t>Build</a:t></a:r></a:p></dgm:t></dgm:pt>"
        "<dgm:pt modelId='1'><dgm:t><a:p><a:r><a:t>Plan</a:t></a:r></a:p></dgm:t></dgm:pt>"
        "<dgm:pt modelId='3'><dgm:t><a:p><a:r><a:t>Budget</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst><dgm:cxnLst>"
        "<dgm:cxn srcId='0' destId='1' srcOrd='0'/><dgm:cxn srcId='0' destId='2' srcOrd='1'/>"
        "<dgm:cxn srcId='1' destId='3' srcOrd='0'/></dgm:cxnLst></dgm:dataModel>"
    )
    slide = shape("T", "title") + frame(
        f"<dgm:relIds xmlns:dgm='http://schemas.openxmlformats.org/drawingml/2006/diagram' {R} r:dm='r1'/>",
        "diagram",
    )
    document = parsed(with_parts(slide, {"r1": ("diagramData", "../data1.xml")}, data1=diagram))
    assert [(b.text, b.level) for b in document.blocks[1:]] == [("Plan", 0), ("Budget", 1), ("Build", 0)]


def test_pictures_are_counted_and_unknown_frames_told():
    slide = (
        shape("T", "title")
        + "<p:pic><p:nvPicPr><p:cNvPr id='1' name='p' descr='a pump'/></p:nvPicPr></p:pic>"
    )
    slide += frame("<x/>", "chartex")
    assert codes(parsed(pptx([slide]))) == ["images_not_read", "parts_not_read"]


def test_a_damaged_slide_loses_only_itself():
    content = pptx([shape("One", "title"), "<p:sp>", shape("Three", "title")])
    document = parsed(content)
    assert lines(document) == ["One", "Three"]
    assert document.partial
    assert "slide 2" in document.warnings[0].detail


def test_properties_come_from_the_package():
    document = parsed(pptx([shape("T", "title")], docProps__core=core("Q1", "Wu", "2026-03-01")))
    assert (document.title, dict(document.properties)) == ("Q1", {"author": "Wu", "created": "2026-03-01"})


def test_the_tables_of_the_public_set(shared_data):
    document = read((shared_data / "data/docs/pptx_tables.pptx").read_bytes(), "pptx_tables.pptx")
    assert [h["text"] for h in document.outline][:2] == ["Test Table Slide", "Second slide title"]
    assert "Class1 A merged with B" in document.text
    assert "R4 | True | False | True | False | True | False" in document.text
