"""Files for `geo bench parse` where none are named: a PDF and web pages with known structure."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium

_TEXT = (
    "the pump of a station was opened by its crew before noon and water ran through every valve until "
    "gauges showed less pressure than orders allow while inspectors noted each reading as rules demand"
)
_WORDS = _TEXT.split()
_LINES = 46
_LEADING = 15.0
_WIDTH, _HEIGHT = 595.0, 842.0


def make_files(folder: Path, *, pages: int = 60, seed: int = 0) -> None:
    """Write a PDF of `pages` pages, half of them in two columns, and twelve web pages into `folder`."""
    source = random.Random(seed)  # noqa: S311 - filler text, no secret
    document = pypdfium2.PdfDocument.new()
    for number in range(pages):
        page = document.new_page(_WIDTH, _HEIGHT)
        columns = ((72.0, 17),) if number % 2 == 0 else ((60.0, 8), (310.0, 8))
        _write(document, page, 72, _HEIGHT - 36, f"Journal of the station, part {number // 10 + 1}", 9)
        for x, words in columns:
            for line in range(_LINES):
                text = " ".join(source.choices(_WORDS, k=words))
                _write(document, page, x, _HEIGHT - 72 - _LEADING * line, text[: 6 * words], 11)
        _write(document, page, 290, 30, str(number + 1), 9)
        page.gen_content()
        page.close()
    document.save(str(folder / "journal.pdf"))
    document.close()
    for number in range(12):
        (folder / f"page{number}.html").write_text(_web_page(source, number), encoding="utf-8")


def _write(
    document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage, x: float, y: float, text: str, size: float
) -> None:
    drawn = pdfium.FPDFPageObj_NewTextObj(document, b"Helvetica", size)
    encoded = (text + "\0").encode("utf-16-le")
    units = ctypes.cast(ctypes.create_string_buffer(encoded, len(encoded)), ctypes.POINTER(ctypes.c_ushort))
    pdfium.FPDFText_SetText(drawn, units)
    pdfium.FPDFPageObj_Transform(drawn, 1, 0, 0, 1, x, y)
    pdfium.FPDFPage_InsertObject(page, drawn)


def _web_page(source: random.Random, number: int) -> str:
    links = "".join(f'<li><a href="/{word}">{word}</a></li>' for word in source.choices(_WORDS, k=30))
    paragraphs = "".join(
        f"<p>{' '.join(source.choices(_WORDS, k=70)).capitalize()}.</p>" for _ in range(12 + number)
    )
    return (
        f"<!doctype html><html lang=en><head><title>Journal {number}</title></head><body>"
        f"<nav><ul>{links}</ul></nav><main><article><h1>Journal {number}</h1>{paragraphs}</article></main>"
        "<footer>All rights reserved</footer></body></html>"
    )
