import zipfile
from io import BytesIO

import pytest

from core.errors import DocumentRejected
from ingest.parse.model import Limits
from tests.ingest.parsing import SAMPLES, W, cut, docx, paragraph, read

STYLES = (
    f"<w:styles {W}><w:style w:styleId='T'><w:name w:val='Title'/></w:style>"
    "<w:style w:styleId='H1'><w:name w:val='heading 1'/></w:style>"
    "<w:style w:styleId='H2'><w:name w:val='heading 2'/></w:style>"
    "<w:style w:styleId='Own'><w:basedOn w:val='H2'/><w:name w:val='My heading'/></w:style></w:styles>"
)


def test_tracked_insertions_count_and_deletions_do_not():
    body = (
        "<w:p><w:r><w:t>The fee is </w:t></w:r><w:del><w:r><w:delText>48,000</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>52,500</w:t></w:r></w:ins><w:r><w:t> per year.</w:t></w:r></w:p>"
        "<w:p><w:moveFrom><w:r><w:t>moved away</w:t></w:r></w:moveFrom>"
        "<w:moveTo><w:r><w:t>moved here</w:t></w:r></w:moveTo></w:p>"
    )
    document = read(docx(body), "contract.docx")
    assert document.text == "The fee is 52,500 per year.\n\nmoved here"
    assert [w["code"] for w in document.warnings] == ["has_revisions"]


def test_headings_follow_their_styles_and_styles_their_parents():
    body = (
        paragraph("Manual", "T")
        + paragraph("One", "H1")
        + paragraph("Deep", "Own")
        + paragraph("Text.")
        + paragraph("Two", "H1")
    )
    document = read(docx(body, word__styles=STYLES), "a.docx")
    assert [(h["level"], h["text"]) for h in document.outline] == [
        (0, "Manual"),
        (1, "One"),
        (2, "Deep"),
        (1, "Two"),
    ]
    assert cut(document)[0].heading_path == ("Manual", "One", "Deep")


def test_table_rows_keep_their_header_and_merged_cells_their_text():
    def row(*cells: str) -> str:
        return "<w:tr>" + "".join(f"<w:tc>{c}</w:tc>" for c in cells) + "</w:tr>"

    merged = "<w:tcPr><w:vMerge/></w:tcPr><w:p/>"
    start = "<w:tcPr><w:vMerge w:val='restart'/></w:tcPr>" + paragraph("Sanger")
    table = (
        "<w:tbl>"
        + row(paragraph("No."), paragraph("Method"))
        + row(paragraph("1"), start)
        + row(paragraph("2"), merged)
        + "</w:tbl>"
    )
    document = read(docx(table), "a.docx")
    assert document.text == "No. | Method\n1 | Sanger\n2 | Sanger"
    assert [b.table_header for b in document.blocks] == [None, "No. | Method", "No. | Method"]


def test_hidden_text_and_field_codes_are_left_out():
    body = (
        "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>"
        "<w:r><w:t>Shown</w:t><w:tab/><w:t>text</w:t></w:r></w:p>"
    )
    assert read(docx(body), "a.docx").text == "Shown text"


def test_a_member_that_inflates_past_the_cap_is_refused_while_inflating():
    bomb = docx(paragraph("0" * 3_000_000))
    assert len(bomb) < 10_000
    for limits in (Limits(max_inflated_bytes=1 << 20), Limits(max_inflation_ratio=50)):
        with pytest.raises(DocumentRejected) as error:
            read(bomb, "bomb.docx", limits)
        assert error.value.code == "too_big"


def test_too_many_members_are_refused():
    with pytest.raises(DocumentRejected) as error:
        read(docx(paragraph("x"), **{f"m{i}": "x" for i in range(20)}), "a.docx", Limits(max_members=10))
    assert error.value.code == "too_big"


def test_xml_entities_are_refused_unexpanded():
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(
            "word/document.xml",
            f"<!DOCTYPE d [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><w:document {W}><w:body><w:p><w:r>"
            "<w:t>&a;</w:t></w:r></w:p></w:body></w:document>",
        )
    with pytest.raises(DocumentRejected) as error:
        read(buffer.getvalue(), "a.docx")
    assert error.value.code == "refused"


def test_damaged_xml_and_damaged_archives_are_corrupt():
    good = docx(paragraph("x" * 5000))
    for content in (docx("<w:p>"), good[: len(good) // 2]):
        with pytest.raises(DocumentRejected) as error:
            read(content, "a.docx")
        assert error.value.code == "corrupt"


def test_an_encrypted_office_file_says_so():
    content = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 100 + "EncryptedPackage".encode("utf-16-le")
    with pytest.raises(DocumentRejected) as error:
        read(content, "secret.docx")
    assert error.value.code == "encrypted"


def test_the_samples_read_whole():
    stores = read((SAMPLES / "northgate-stores.docx").read_bytes(), "northgate-stores.docx")
    assert "The diaphragm kit DK-7 for the Kestrel K7 is kept in bay C14" in stores.text
    rules = read((SAMPLES / "yunhe-warehouse-safety.docx").read_bytes(), "yunhe-warehouse-safety.docx")
    assert rules.lang == "zh"
    assert "三号仓库 | 化工原料 | 北侧停车场" in rules.text
