"""What the parser tests share: documents in, passages out; small files made on the spot."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from ingest.normalize import NormalizedDocument, build
from ingest.parse import parse_bytes
from ingest.parse.model import Limits, ParseOptions
from ingest.split import PassageDraft, split
from ingest.tokens import rough_counter

SAMPLES = Path(__file__).resolve().parents[2] / "docs" / "samples"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def read(content: bytes, name: str, limits: Limits | None = None) -> NormalizedDocument:
    return build(parse_bytes(content, name, options=ParseOptions(limits or Limits())))


def cut(document: NormalizedDocument, target: int = 160, cap: int = 480) -> list[PassageDraft]:
    return split(document, rough_counter, target, cap)


def docx(body: str, **members: str | bytes) -> bytes:
    """A DOCX package around the XML of its body."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", f"<w:document {W}><w:body>{body}</w:body></w:document>")
        for name, content in members.items():
            archive.writestr(name.replace("__", "/") + ".xml", content)
    return buffer.getvalue()


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def pdf(*pages: list[tuple[float, float, str]], size: float = 11, password: str = "") -> bytes:
    """A PDF whose pages hold strings at (x, y from the top)."""
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    encryption = StandardEncryption(password, canPrint=0) if password else None
    canvas = Canvas(buffer, pagesize=A4, encrypt=encryption, invariant=1)
    for page in pages:
        for x, y, text in page:
            canvas.setFont("Helvetica", size)
            canvas.drawString(x, A4[1] - y, text)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()
