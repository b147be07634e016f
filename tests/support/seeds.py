"""One small valid file of every format that is read, made on the spot; what the fuzz run mutates."""

from __future__ import annotations

import io
import json
import zipfile
from email.message import EmailMessage

TEXT = "The pump is checked every 30 days. 水泵每三十天检查一次，阀门编号 XY-2080。"
ROWS = [["Meter", "January", "二月读数"], ["M-186", "655", "870"], ["M-187", "661", "878"]]


def seeds() -> dict[str, bytes]:
    """File name → content."""
    return {
        **_texts(),
        **_markup(),
        "report.pdf": _pdf(),
        "letter.docx": _docx(),
        "sheet.xlsx": _xlsx(),
        "slides.pptx": _pptx(),
        "memo.odt": _odt(),
        "sheet.ods": _ods(),
        "book.epub": _epub(),
        "mail.eml": _eml().as_bytes(),
        "thread.eml": _thread(),
        "box.mbox": b"".join(b"From a@example.org Mon\n%s\n" % _eml().as_bytes() for _ in range(3)),
        "page.mhtml": _saved_page(),
        "page.png": _picture("PNG"),
        "page.jpg": _picture("JPEG"),
    }


def _texts() -> dict[str, bytes]:
    table = "\n".join(",".join(row) for row in ROWS)
    return {
        "notes.txt": f"Pump rules\n\n{TEXT}\n\n1. Close the valve.\n2. 打开阀门。\n".encode(),
        "notes_gbk.txt": (TEXT * 4).encode("gb18030"),
        "notes_big5.txt": ("水泵每三十天檢查一次，閥門編號。" * 6).encode("big5"),
        "notes_utf16.txt": (TEXT * 4).encode("utf-16"),
        "rules.md": (
            f"---\ntitle: Rules\n---\n# Pump\n\n{TEXT}\n\n| a | b |\n|---|---|\n| 1 | 二 |\n\n```\nx = 1\n```\n"
        ).encode(),
        "meters.csv": table.encode("utf-8-sig"),
        "meters.tsv": table.replace(",", "\t").encode(),
        "data.json": json.dumps({"rows": ROWS, "note": TEXT, "deep": [{"k": [1, None, True]}]}).encode(),
        "data.jsonl": "\n".join(json.dumps({"id": i, "text": TEXT}) for i in range(4)).encode(),
        "talk.srt": f"1\n00:00:01,000 --> 00:00:03,000\n<i>{TEXT}</i>\n\n2\n00:00:04,000 --> 00:00:05,000\nEnd.\n".encode(),
        "talk.vtt": f"WEBVTT\n\n00:01.000 --> 00:03.000\n<v Ann>{TEXT}\n\nNOTE no\n\n00:04.000 --> 00:05.000\nEnd.\n".encode(),
    }


def _markup() -> dict[str, bytes]:
    cells = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in ROWS)
    body = f"<h1>Pump</h1><p>{TEXT * 3}</p><table>{cells}</table><ul><li>One<li>二</ul>"
    return {
        "page.html": (
            f"<!doctype html><html><head><meta charset=utf-8><title>Pump</title></head>"
            f"<body><nav>Home | News</nav><main>{body}</main><footer>Cookies</footer></body></html>"
        ).encode(),
        "feed.xml": (
            f'<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><item><title>Pump</title>'
            f"<description>&lt;p&gt;{TEXT}&lt;/p&gt;</description></item></channel></rss>"
        ).encode(),
        "atom.xml": (
            f'<feed xmlns="http://www.w3.org/2005/Atom"><title>N</title><entry><title>P</title>'
            f'<content type="html">{TEXT}</content></entry></feed>'
        ).encode(),
        "records.xml": (
            f"<pumps><pump id='1'><site>&nbsp;a</site><note>{TEXT}</note></pump>"
            f"<pump id='2'><note><![CDATA[<p>q</p>]]></note></pump></pumps>"
        ).encode(),
        "article.xml": f"<article><title>Pump</title><section><p>{TEXT}</p></section></article>".encode(),
    }


def _pdf() -> bytes:
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    for page in range(3):
        canvas.setFont("Helvetica-Bold", 18)
        canvas.drawString(60, 780, f"Section {page + 1}")
        canvas.setFont("Helvetica", 10)
        for line in range(30):
            canvas.drawString(60 + 250 * (line % 2), 740 - 12 * line, f"Line {line} of the pump manual.")
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _zip(members: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            stored = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content, stored)
    return buffer.getvalue()


def _docx() -> bytes:
    w = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    row = "".join(f"<w:tc><w:p><w:r><w:t>{c}</w:t></w:r></w:p></w:tc>" for c in ROWS[0])
    body = (
        f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Pump</w:t></w:r></w:p>'
        f"<w:p><w:r><w:t>{TEXT}</w:t></w:r><w:ins><w:r><w:t>new</w:t></w:r></w:ins>"
        f"<w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p><w:tbl><w:tr>{row}</w:tr></w:tbl>"
    )
    return _zip(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f"<w:document {w}><w:body>{body}</w:body></w:document>",
            "word/comments.xml": f'<w:comments {w}><w:comment w:id="0"><w:p><w:r><w:t>c</w:t></w:r></w:p></w:comment></w:comments>',
        }
    )


def _xlsx() -> bytes:
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "读数"
    for row in ROWS:
        sheet.append(row)
    sheet.merge_cells("A5:C5")
    sheet["A5"] = TEXT
    book.create_sheet("Empty")
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _pptx() -> bytes:
    p = "http://schemas.openxmlformats.org/presentationml/2006/main"
    a = "http://schemas.openxmlformats.org/drawingml/2006/main"
    r = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    rels = "http://schemas.openxmlformats.org/package/2006/relationships"
    slide = (
        f'<p:sld xmlns:p="{p}" xmlns:a="{a}"><p:cSld><p:spTree><p:sp><p:nvSpPr><p:cNvPr id="2" name="T"/><p:cNvSpPr/>'
        f'<p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>Pump</a:t></a:r></a:p></p:txBody></p:sp>'
        f'<p:sp><p:nvSpPr><p:cNvPr id="3" name="B"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:txBody><a:p><a:r><a:t>{TEXT}</a:t>'
        f"</a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
    )
    return _zip(
        {
            "[Content_Types].xml": "<Types/>",
            "ppt/presentation.xml": (
                f'<p:presentation xmlns:p="{p}" xmlns:r="{r}"><p:sldIdLst><p:sldId id="256" r:id="rId1"/></p:sldIdLst></p:presentation>'
            ),
            "ppt/_rels/presentation.xml.rels": (
                f'<Relationships xmlns="{rels}"><Relationship Id="rId1" Type="{r}/slide" Target="slides/slide1.xml"/></Relationships>'
            ),
            "ppt/slides/slide1.xml": slide,
        }
    )


def _ods() -> bytes:
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    rows = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{c}</text:p></table:table-cell>" for c in row)
        + '<table:table-cell table:number-columns-repeated="1000"/></table:table-row>'
        for row in ROWS
    )
    return _zip(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "content.xml": f'<office:document-content {spaces}><office:body><office:spreadsheet><table:table table:name="S">{rows}</table:table></office:spreadsheet></office:body></office:document-content>',
        }
    )


def _odt() -> bytes:
    office = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
    text = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
    table = "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
    cells = "".join(f"<table:table-cell><text:p>{c}</text:p></table:table-cell>" for c in ROWS[1])
    content = (
        f'<office:document-content xmlns:office="{office}" xmlns:text="{text}" xmlns:table="{table}"><office:body><office:text>'
        f'<text:h text:outline-level="1">Pump</text:h><text:p>{TEXT}</text:p><table:table><table:table-row>{cells}'
        f"</table:table-row></table:table></office:text></office:body></office:document-content>"
    )
    return _zip({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


def _epub() -> bytes:
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
        '<rootfile full-path="o.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        '<dc:title>Book</dc:title></metadata><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="b" href="b.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="b"/>'
        '<itemref idref="a"/></spine></package>'
    )
    chapter = '<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>{}</h1><p>{}</p></body></html>'
    return _zip(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "o.opf": opf,
            "a.xhtml": chapter.format("Two", TEXT),
            "b.xhtml": chapter.format("One", TEXT),
        }
    )


def _eml() -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = "Pump 水泵"
    message["From"], message["To"] = "a@example.org", "b@example.org"
    message["Date"] = "Mon, 02 Mar 2026 10:00:00 +0000"
    message.set_content(TEXT)
    message.add_alternative(f"<p>{TEXT}</p>", subtype="html")
    message.add_attachment(b"Meter,Value\nM-187,878\n", maintype="text", subtype="csv", filename="m.csv")
    return message


def _thread() -> bytes:
    """A reply that quotes, forwards a message and carries an invitation."""
    message = EmailMessage()
    message["Subject"] = "=?gbk?B?y66xww==?="
    message["From"], message["Message-ID"] = "a@example.org", "<2@example.org>"
    message.set_content(f"Yes.\n\nOn Monday, Bo wrote:\n> {TEXT}\n> > deeper\n\nNo.\n")
    event = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x\\, y\nDTSTART;TZID=A/B:20260302T100000\nEND:VEVENT\nEND:VCALENDAR\n"
    message.add_attachment(event.encode(), maintype="text", subtype="calendar")
    message.add_attachment(_eml())
    message.add_attachment(_pdf(), maintype="application", subtype="pdf", filename="水.pdf")
    return message.as_bytes()


def _saved_page() -> bytes:
    return (
        b"From: <Saved by Blink>\r\nSnapshot-Content-Location: http://example.org/\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: multipart/related; type="text/html"; boundary="x"\r\n\r\n--x\r\nContent-Type: text/html\r\n'
        b"Content-Transfer-Encoding: quoted-printable\r\n\r\n<html><body><h1>A</h1><p>b=E6=B0=B4</p></body></html>\r\n"
        b"--x\r\nContent-Type: text/css\r\n\r\np { color: red }\r\n--x--\r\n"
    )


def _picture(kind: str) -> bytes:
    from PIL import Image, ImageDraw

    picture = Image.new("RGB", (360, 80), "white")
    ImageDraw.Draw(picture).text((10, 20), "The pump is checked every 30 days.", fill="black", font_size=20)
    buffer = io.BytesIO()
    picture.save(buffer, kind)
    return buffer.getvalue()
