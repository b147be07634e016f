"""What a file is said to be, and what is refused with which words."""

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import DocumentRejected
from ingest.parse import formats, parser_of
from ingest.parse.sniff import sniff

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64)
ZH = "主轴预热说明：预热时间为十五分钟，温度低于五度时延长到二十五分钟。"
MESSAGE = (
    "Received: from a by b; Mon, 1 Jan 2024 00:00:00 +0000\r\n"
    "From: Al <al@example.org>\r\nSubject: Pumps\r\n\r\nText.\r\n"
)
SAVED_PAGE = (
    "From: <Saved by Blink>\r\nSnapshot-Content-Location: http://example.org/\r\nSubject: Pumps\r\n"
    'MIME-Version: 1.0\r\nContent-Type: multipart/related;\r\n\ttype="text/html"; boundary="b"\r\n\r\n--b\r\n'
)
CUES = "1\n00:00:01,000 --> 00:00:02,500\nHello.\n"
TABS = "name\tcount\nbearing\t120\nvalve\t7\n"


REASONS = {"empty", "unsupported_format", "type_mismatch", "corrupt", "encrypted"}


def outcome(content: bytes, name: str) -> str:
    try:
        return sniff(content, name)[0]
    except DocumentRejected as error:
        return error.code


def package(*names: str, mimetype: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        if mimetype:
            archive.writestr("mimetype", mimetype)
        for name in names:
            archive.writestr(name, "x")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"%PDF-1.7\n", formats.PDF),
        (b"\xef\xbb\xbf\n%PDF-1.4\n", formats.PDF),
        (package("[Content_Types].xml", "word/document.xml"), formats.DOCX),
        (package("word/document2.xml"), formats.DOCX),
        (package("xl/workbook.xml"), formats.XLSX),
        (package("ppt/presentation.xml"), formats.PPTX),
        (package("content.xml", mimetype=formats.ODT), formats.ODT),
        (package("content.xml", mimetype=formats.ODS), formats.ODS),
        (package("OEBPS/a.xhtml", mimetype="application/epub+zip\n"), formats.EPUB),
        (package("META-INF/container.xml"), formats.EPUB),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), formats.PNG),
        (b"\xff\xd8\xff\xe0" + bytes(20), formats.JPEG),
        (b"II*\x00" + bytes(20), formats.TIFF),
        (b"MM\x00*" + bytes(20), formats.TIFF),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 " + bytes(20), formats.WEBP),
        (b"BM\x46\x00\x00\x00" + bytes(4) + b"\x36\x00\x00\x00\x28\x00\x00\x00", formats.BMP),
        (b"GIF89a" + bytes(20), formats.GIF),
        (MESSAGE.encode(), formats.EML),
        (b"From al@example.org Mon Jan  1 00:00:00 2024\n" + MESSAGE.encode(), formats.EML),
        (
            MESSAGE.encode().replace(b"\r\n\r\n", b"\r\n" + b"X-Trace: %s\r\n" % (b"x" * 70) * 400),
            formats.EML,
        ),
        (SAVED_PAGE.encode(), formats.MHTML),
        (b"<!-- a --><!DOCTYPE html><p>x", formats.HTML),
        (b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD"><html xmlns="x"/>', formats.HTML),
        ("<!doctype html><p>x".encode("utf-16"), formats.HTML),
        (b"<h1>Pumps</h1>\n<p>Check <b>daily</b>.</p>", formats.HTML),
        (b'<?xml version="1.0"?><book><p>x</p></book>', formats.XML),
        (b"<book><p>x</p></book>\n", formats.XML),
        (b'<?xml version="1.0"?>\n<!-- a -->\n<rss version="2.0"><channel/></rss>', formats.RSS),
        (b'<rdf:RDF xmlns:rdf="x"><channel rdf:about="y"/></rdf:RDF>', formats.RSS),
        (b'<feed xmlns="http://www.w3.org/2005/Atom"></feed>', formats.ATOM),
        (CUES.encode(), formats.SRT),
        (CUES.encode("utf-16"), formats.SRT),
        (b"\x00\x00\xfe\xff" + CUES.encode("utf-32-be"), formats.SRT),
        (b"\xef\xbb\xbfWEBVTT\n\n00:01.000 --> 00:02.000\nHello", formats.VTT),
        (b'{"a": [1, 2]}', formats.JSON),
        (b'{"a": 1}\n{"a": 2}\n', formats.JSONL),
        (b"a,b,c\n1,2,3\n4,5,6\n", formats.CSV),
        (TABS.encode(), formats.TSV),
        (b"Just words, and more words.\n", formats.TEXT),
        (b"# Not a heading without a name\n", formats.TEXT),
        (ZH.encode("utf-16-le"), formats.TEXT),
        (ZH.encode("utf-16-be"), formats.TEXT),
        (("<" * 5000).encode(), formats.TEXT),
    ],
)
def test_content_decides_without_a_name(content, media_type):
    assert sniff(content, "upload") == (media_type, ())


@pytest.mark.parametrize(
    ("content", "name", "media_type"),
    [
        (b"<html><body>x</body></html>", "page.txt", formats.HTML),
        (b"<html><body>x</body></html>", "export.csv", formats.HTML),
        (b"<html><table><tr><td>x</td></tr></table></html>", "export.xls", formats.HTML),
        (TABS.encode(), "export.xls", formats.TSV),
        (SAVED_PAGE.encode(), "letter.doc", formats.MHTML),
        (package("word/document.xml"), "letter.doc", formats.DOCX),
        (package("xl/workbook.xml"), "prices.xls", formats.XLSX),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "photo.JPG", formats.PNG),
        (CUES.encode(), "talk.txt", formats.SRT),
        (MESSAGE.encode(), "mail.txt", formats.EML),
        (b'<?xml version="1.0"?><rss><channel/></rss>', "news.html", formats.RSS),
        (b"No header at all.", "odd.eml", formats.TEXT),
    ],
)
def test_a_wrong_name_that_does_no_harm_is_corrected_and_said_so(content, name, media_type):
    found, warnings = sniff(content, name)
    assert found == media_type
    assert [w.code for w in warnings] == ["type_corrected"]


@pytest.mark.parametrize(
    ("content", "name", "media_type"),
    [
        (b'<?xml version="1.0"?><rss><channel/></rss>', "news.xml", formats.RSS),
        (b'<?xml version="1.0"?><html xmlns="x"/>', "page.xml", formats.HTML),
        (b"# Notes\n\n<html> is the root.", "notes.md", formats.MARKDOWN),
        (CUES.replace(",", ".").encode(), "talk.vtt", formats.SRT),
        (SAVED_PAGE.encode(), "page.mhtml", formats.MHTML),
        (b"X-Trace: x\r\nbroken line\r\nSubject: Pumps\r\n\r\nText.", "mail.eml", formats.EML),
        (b'{"a": 1}', "config.txt", formats.TEXT),
        (b"From: Al\nTo: Bo\nSubject: Pumps\n\nA memo, not a message.", "memo.txt", formats.TEXT),
        (b"The header %PDF-1.4 begins a PDF.", "about.txt", formats.TEXT),
        (b"BM25 is a ranking function; MZ and ID3 are names.", "bm25.txt", formats.TEXT),
        (b"MZ\n", "initials.txt", formats.TEXT),
    ],
)
def test_a_name_that_fits_needs_no_word(content, name, media_type):
    assert sniff(content, name) == (media_type, ())


@pytest.mark.parametrize(
    ("content", "name", "says"),
    [
        (b"%PDF-1.4\n1 0 obj", "notes.txt", ("'.txt", "PDF")),
        (b"%PDF-1.4\n1 0 obj", "notes.docx", (".docx", "PDF")),
        (b"Plain words.", "report.pdf", (".pdf", "plain text")),
        (b"<!doctype html><p>Sign in</p>", "report.pdf", (".pdf", "HTML")),
        (b"Plain words.", "letter.docx", (".docx", "plain text")),
        (b"Plain words.", "letter.doc", (".doc", "plain text")),
        (package("word/document.xml"), "page.html", (".html", "DOCX")),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "notes.md", (".md", "PNG")),
    ],
)
def test_content_that_contradicts_the_name_is_refused_by_naming_both(content, name, says):
    with pytest.raises(DocumentRejected) as error:
        sniff(content, name)
    assert error.value.code == "type_mismatch"
    assert all(word.strip("'") in error.value.detail for word in says)


@pytest.mark.parametrize(
    ("content", "reason", "says"),
    [
        (OLE + "WordDocument".encode("utf-16-le"), "unsupported_format", "Save it as DOCX"),
        (OLE + "Workbook".encode("utf-16-le"), "unsupported_format", "Save it as XLSX"),
        (OLE + "PowerPoint Document".encode("utf-16-le"), "unsupported_format", "Save it as PPTX"),
        (OLE + "__properties_version1.0".encode("utf-16-le"), "unsupported_format", "Save it as .eml"),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted", "without the password"),
        (package("readme.txt"), "unsupported_format", "Unpack it"),
        (package("xl/workbook.bin"), "unsupported_format", "Save it as XLSX"),
        (package("OFD.xml"), "unsupported_format", "Export it as PDF"),
        (
            package("content.xml", mimetype="application/vnd.oasis.opendocument.graphics"),
            "unsupported_format",
            "PDF",
        ),
        (b"PK\x03\x04 not a zip", "corrupt", "damaged"),
        (b"\x1f\x8b\x08" + bytes(20), "unsupported_format", "gzip"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(20), "unsupported_format", "7z"),
        (b"Rar!\x1a\x07\x01\x00" + bytes(20), "unsupported_format", "RAR"),
        (b"a.txt" + bytes(252) + b"ustar\x0000" + bytes(250), "unsupported_format", "tar"),
        (b"{\\rtf1 \\ansi}", "unsupported_format", "Save it as DOCX"),
        (b"\x00\x00\x00\x20ftypheic" + bytes(20), "unsupported_format", "Save it as JPEG"),
        (b"\x00\x00\x00\x20ftypisom" + bytes(20), "unsupported_format", "transcript"),
        (b"ID3\x04" + bytes(20), "unsupported_format", "audio"),
        (b"MZ\x90" + bytes(64), "unsupported_format", "program"),
        (b"\x7fELF" + bytes(20), "unsupported_format", "program"),
        (b"wOF2" + bytes(20), "unsupported_format", "font"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"><text>x</text></svg>', "unsupported_format", "SVG"),
        (bytes(range(1, 32)) * 40, "unsupported_format", "no known kind"),
        (bytes(5000), "unsupported_format", "no known kind"),
        (b"", "empty", "0 bytes"),
    ],
)
def test_what_is_not_read_is_refused_with_what_to_do(content, reason, says):
    with pytest.raises(DocumentRejected) as error:
        sniff(content, "upload")
    assert error.value.code == reason
    assert says in error.value.detail
    if reason == "unsupported_format":
        assert formats.READABLE in error.value.detail


def test_every_format_that_is_called_readable_has_a_parser():
    assert all(callable(parser_of(media_type)) for media_type in formats.FORMATS)


def test_a_declared_type_is_a_hint_only():
    assert sniff(b"# Title", "notes", "text/markdown; charset=utf-8")[0] == formats.MARKDOWN
    assert sniff(b"words", "notes", "application/pdf") == (formats.TEXT, ())
    found, warnings = sniff(b"%PDF-1.7\n", "report", "text/plain")
    assert found == formats.PDF
    assert [w.code for w in warnings] == ["type_corrected"]
    assert sniff(b"%PDF-1.7\n", "report.pdf", "text/plain") == (formats.PDF, ())


def test_comments_without_end_cost_one_pass():
    for piece in (b"<!-- a -->", b"<!--", b"<?a ?>", b"<!doctype ["):
        assert sniff(piece * 4000, "upload")[0]


@given(st.binary(max_size=400), st.sampled_from(["a", "a.txt", "a.pdf", "a.xml", "a.xls", "a.eml", "a.png"]))
def test_any_bytes_get_a_readable_type_or_a_reason(content, name):
    assert outcome(content, name) in REASONS | set(formats.FORMATS)
