"""Damaged office packages, in the calling process: a result or a refusal, never another error or a hang."""

from __future__ import annotations

import io
import os
import random
import re
import resource
import time
import zipfile

import openpyxl
import pytest

from core.errors import DocumentRejected
from ingest.parse import parser_of
from ingest.parse.model import Limits, ParseOptions
from tests.ingest import test_parse_docx_structure as word
from tests.ingest import test_parse_opendocument as opendocument
from tests.ingest import test_parse_pptx as slides
from tests.ingest.office_files import core, frame, ods, odt, packed, pptx, rels, shape, word_part
from tests.ingest.parsing import W, paragraph
from tests.support.mutations import mutate

SECONDS = float(os.environ.get("GEO_OFFICE_FUZZ_S", "1"))
OPTIONS = ParseOptions(Limits(max_chars=2_000_000, max_inflated_bytes=32 << 20))
SLOWEST_S = 5
GROWTH_KB = 200_000


def rich_docx() -> bytes:
    body = (
        word.item("总则", 0, style="H1")
        + word.item("item", 1)
        + "<w:p><w:commentRangeStart w:id='1'/><w:r><w:t>text</w:t></w:r><w:commentRangeEnd w:id='1'/><w:r>"
        "<w:footnoteReference w:id='1'/></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
        "<w:p><m:oMath xmlns:m='http://schemas.openxmlformats.org/officeDocument/2006/math'><m:f><m:num><m:r><m:t>a"
        "</m:t></m:r></m:num><m:den><m:rad><m:deg/><m:e><m:r><m:t>b</m:t></m:r></m:e></m:rad></m:den></m:f></m:oMath>"
        "<w:r><w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>"
        "<w:r><w:fldChar w:fldCharType='end'/></w:r><w:r><w:sym w:font='Symbol' w:char='F061'/></w:r></w:p>"
        "<w:tbl>"
        + word.row_of(
            word.cell_of(paragraph("a"), "<w:vMerge w:val='restart'/>"), word.cell_of(paragraph("b"))
        )
        + word.row_of(
            word.cell_of("<w:p/>", "<w:vMerge/>"), word.cell_of(paragraph("c"), "<w:gridSpan w:val='2'/>")
        )
        + "</w:tbl>"
    )
    lists = word.numbering(word.level(0, "chineseCounting", "第%1章"), word.level(1, "decimal", "%1.%2"))
    styles = word_part(
        "<w:style w:styleId='H1'><w:name w:val='heading 1'/><w:basedOn w:val='H1'/></w:style>", "styles"
    )
    return packed(
        {
            "_rels/.rels": rels({"r": ("officeDocument", "word/document.xml")}),
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/numbering.xml": lists,
            "word/styles.xml": styles,
            "word/footnotes.xml": word_part(
                f"<w:footnote w:id='1'>{paragraph('n')}</w:footnote>", "footnotes"
            ),
            "word/comments.xml": word_part(f"<w:comment w:id='1'>{paragraph('c')}</w:comment>", "comments"),
            "docProps/core.xml": core("T", "A", "2026-03-01"),
        }
    )


def rich_xlsx() -> bytes:
    book = openpyxl.Workbook()
    page = book.active
    page.append(["Title"])
    page.append(["编号", "share", "day", "formula"])
    for n in range(8):
        page.append([f"M-{n}", n / 7, 46_000 + n, "=B3*2"])
        page.cell(n + 3, 2).number_format = "0.00%"
        page.cell(n + 3, 3).number_format = "yyyy-mm-dd"
    page.merge_cells("A1:D1")
    page.row_dimensions[5].hidden = True
    book.create_sheet("other").append([1, 2, 3])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def rich_pptx() -> bytes:
    table = f"<a:tbl><a:tr>{slides.cell('a')}{slides.cell('b')}</a:tr><a:tr>{slides.cell('1')}{slides.cell('2')}</a:tr></a:tbl>"
    items = "<a:p><a:pPr lvl='1'><a:buAutoNum type='arabicPeriod'/></a:pPr><a:r><a:t>x</a:t></a:r></a:p>"
    return pptx(
        [shape("T", "title") + shape(items, "body") + frame(table), shape("二", "title") + shape("text")]
    )


def rich_odt() -> bytes:
    body = (
        '<text:h text:outline-level="1">T</text:h><text:list text:style-name="L"><text:list-item>'
        + opendocument.p("a")
        + '</text:list-item></text:list><table:table><table:table-row><table:table-cell table:number-rows-spanned="2">'
        + opendocument.p("x")
        + "</table:table-cell></table:table-row></table:table>"
        + opendocument.p(
            "t<office:annotation><dc:creator>W</dc:creator><text:p>c</text:p></office:annotation>"
        )
    )
    return odt(body, opendocument.OUTLINE)


def rich_ods() -> bytes:
    rows = opendocument.orow(opendocument.oc("a"), opendocument.oc("b")) + opendocument.orow(
        opendocument.oc("1", 'table:number-columns-repeated="3"'), attributes='table:number-rows-repeated="4"'
    )
    return ods(f'<table:table table:name="S">{rows}</table:table>')


def wounded_inside(content: bytes, rng: random.Random) -> bytes:
    """A sound archive with one or two members damaged or gone: swapped bytes, doubled or cut elements."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    for name in rng.sample(list(members), min(len(members), rng.randint(1, 2))):
        body, fate = members[name], rng.random()
        if fate < 0.1:
            del members[name]
        elif fate < 0.5:
            tags = [m.span() for m in re.finditer(rb"<[^<>]*>", body)]
            (a, b), (c, d) = sorted(rng.choices(tags or [(0, 0)], k=2))
            members[name] = body[:c] + body[a:b] + body[d:] if c >= b else body[:a] + body[b:]
        elif fate < 0.8:
            values = [m.span(1) for m in re.finditer(rb"[=>][\"']?([\w.%+-]+)", body)]
            a, b = rng.choice(values or [(0, 0)])
            new = rng.choice((b"-1", b"0", b"999999999999", b"1e999", b"", b"x", "\u4e00".encode(), b"nan"))
            members[name] = body[:a] + new + body[b:]
        else:
            at = rng.randrange(len(body) + 1)
            members[name] = body[:at] + bytes([rng.randrange(256)]) + body[at + 1 :]
    return packed(members)


FORMATS = {
    "docx": rich_docx,
    "xlsx": rich_xlsx,
    "pptx": rich_pptx,
    "odt": rich_odt,
    "ods": rich_ods,
}


@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_packages_give_a_result_or_a_refusal(kind):
    from ingest.parse import formats

    original = FORMATS[kind]()
    parse = parser_of(getattr(formats, kind.upper()))
    assert parse(original, OPTIONS, kind).blocks
    rng = random.Random(int(os.environ.get("GEO_FUZZ_SEED", "20260301")))
    others = [make() for make in FORMATS.values()]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    deadline = time.monotonic() + SECONDS
    count = read = 0
    while time.monotonic() < deadline:
        content = mutate(original, rng, others) if count % 3 == 0 else wounded_inside(original, rng)
        started = time.process_time()
        try:
            document = parse(content, OPTIONS, kind)
            read += bool(document.blocks)
        except DocumentRejected:
            pass
        assert time.process_time() - started < SLOWEST_S
        count += 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_KB
    print(f"{kind}: {count} inputs, {read} read")
