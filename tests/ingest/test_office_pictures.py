"""Documents and slides that are nothing but pictures are recognised; others only count their pictures."""

from __future__ import annotations

import pytest

from core.errors import DocumentRejected
from core.types import Span
from ingest.normalize import build
from ingest.parse import ocr, parse_bytes
from ingest.parse.model import OcrMode, ParseOptions
from tests.ingest.office_files import P, packed, rels, shape
from tests.ingest.parsing import W, paragraph, read
from tests.ingest.pictures import encoded, written

A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
PIC = 'xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"'
TEXT = "The reservoir at Greyfell was completed in 1962."

recognised = pytest.mark.skipif(not ocr.available(), reason="the extra `ocr` is not installed")


def picture() -> bytes:
    return encoded(written(TEXT, paper=(1000, 300)))


def scanned_docx(body: str = "") -> bytes:
    drawing = f"<w:drawing><pic:pic {PIC}><pic:blipFill><a:blip {A} {R} r:embed='i1'/></pic:blipFill></pic:pic></w:drawing>"
    return packed(
        {
            "word/document.xml": f"<w:document {W}><w:body><w:p><w:r>{drawing}</w:r></w:p>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": rels({"i1": ("image", "media/image1.png")}),
            "word/media/image1.png": picture(),
        }
    )


def drawn_pptx() -> bytes:
    pic = '<p:pic><p:nvPicPr><p:cNvPr id="2" name="p"/></p:nvPicPr><p:blipFill><a:blip r:embed="i1"/></p:blipFill></p:pic>'
    slides = [shape("Title", "title") + pic, pic]
    order = "".join(f'<p:sldId id="{256 + i}" r:id="s{i}"/>' for i in (1, 2))
    return packed(
        {
            "ppt/presentation.xml": f"<p:presentation {P}><p:sldIdLst>{order}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": rels(
                {f"s{i}": ("slide", f"slides/slide{i}.xml") for i in (1, 2)}
            ),
            **{
                f"ppt/slides/slide{i}.xml": f"<p:sld {P}><p:cSld><p:spTree>{xml}</p:spTree></p:cSld></p:sld>"
                for i, xml in enumerate(slides, start=1)
            },
            **{
                f"ppt/slides/_rels/slide{i}.xml.rels": rels({"i1": ("image", "../media/image1.png")})
                for i in (1, 2)
            },
            "ppt/media/image1.png": picture(),
        }
    )


@recognised
def test_a_document_of_pictures_is_recognised():
    document = read(scanned_docx(), "a.docx")
    assert document.text == TEXT
    assert [w["code"] for w in document.warnings] == ["ocr_used"]


@recognised
def test_a_slide_of_a_picture_is_recognised_and_keeps_its_number():
    document = build(parse_bytes(drawn_pptx(), "a.pptx"))
    assert document.text == f"Title\n\nSlide 2\n\n{TEXT}"
    at = document.text.index(TEXT)
    place = document.offset_map.places(Span(at, at + 5))[0]
    assert (place.page, place.boxes) == (2, ())
    assert {w["code"]: w["pages"] for w in document.warnings} == {"images_not_read": [1], "ocr_used": [2]}


def test_pictures_beside_text_are_counted():
    document = read(scanned_docx(paragraph("Text.")), "a.docx")
    assert document.text == "Text."
    assert [w["code"] for w in document.warnings] == ["images_not_read"]


def test_without_recognition_a_document_of_pictures_says_what_it_is():
    with pytest.raises(DocumentRejected, match="only pictures") as error:
        parse_bytes(scanned_docx(), "a.docx", options=ParseOptions(ocr=OcrMode.OFF))
    assert error.value.code == "no_text"
