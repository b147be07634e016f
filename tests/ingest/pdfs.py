"""PDFs made on the spot for the parser's tests."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ingest.parse.model import Block, OcrMode, ParsedDocument, ParseOptions
from ingest.parse.pdf import parse_pdf

WIDTH, HEIGHT = 595.27, 841.89  # A4 in points
_FILLER = "The board met in spring and agreed on the budget for the new pumping station near the river bend"
SERIF = _FILLER.split()

Text = tuple[float, float, str]
Draw = Callable[[Any], None]


def made(*pages: Draw | Sequence[Text], size: float = 11, **options: Any) -> bytes:
    """A PDF; each page is a list of (x, y from the top, text) or a function that draws on the canvas."""
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1, **options)
    for page in pages:
        canvas.setFont("Helvetica", size)
        if callable(page):
            page(canvas)
        else:
            put(canvas, page)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def put(canvas: Any, texts: Iterable[Text], font: str = "Helvetica", size: float = 11) -> None:
    canvas.setFont(font, size)
    for x, y, text in texts:
        canvas.drawString(x, HEIGHT - y, text)


def column(x: float, lines: Sequence[str], top: float = 80, leading: float = 14) -> list[Text]:
    return [(x, top + leading * i, line) for i, line in enumerate(lines)]


def row_by_row(*columns: list[Text]) -> list[Text]:
    """As many programs write columns: line by line over the whole page."""
    return sorted((text for part in columns for text in part), key=lambda text: (text[1], text[0]))


def prose(label: str, lines: int, words: int = 5) -> list[str]:
    """Lines that say in which order they belong: `label1 …`, `label2 …`."""
    return [
        f"{label}{i} " + " ".join(SERIF[(i + k) % len(SERIF)] for k in range(words))
        for i in range(1, lines + 1)
    ]


def read(content: bytes, **options: Any) -> ParsedDocument:
    return parse_pdf(content, ParseOptions(**{"ocr": OcrMode.OFF, **options}))


def text_of(document: ParsedDocument) -> str:
    return "\n".join(block.text for block in document.blocks)


def kinds(document: ParsedDocument) -> list[tuple[str, str]]:
    return [(block.kind.value, block.text) for block in document.blocks]


def order(document: ParsedDocument, *labels: str) -> list[str]:
    """The labels in the order in which they stand in the text."""
    text = text_of(document)
    return sorted(labels, key=lambda label: text.index(label))


def headings(document: ParsedDocument) -> list[tuple[int, str]]:
    return [(b.level, b.text) for b in document.blocks if b.kind.value == "heading"]


def rows(document: ParsedDocument) -> list[Block]:
    return [block for block in document.blocks if block.kind.value == "table_row"]


def codes(document: ParsedDocument) -> list[str]:
    return [warning.code for warning in document.warnings]


def chinese(canvas: Any, size: float = 11) -> None:
    """Choose a Chinese font that no file has to carry."""
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont

    if "STSong-Light" not in pdfmetrics.getRegisteredFontNames():
        pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    canvas.setFont("STSong-Light", size)
