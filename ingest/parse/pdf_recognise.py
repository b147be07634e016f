"""Which pages of a PDF need recognition of their picture, and the way to the recogniser.

`ingest.parse.ocr.read_page(page, number)` takes an open `pypdfium2.PdfPage` and its 1-based number; it
gives a `PageText` whose pieces stand in points from the top left of the page as shown (as pages with
a text layer have it, so the same layout code reads both), or None when recognition is not installed or finds
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pypdfium2.raw as pdfium

from ingest.parse.model import OcrMode, ParseOptions
from ingest.parse.pdf_words import PageText

PageReader = Callable[[Any, int], PageText | None]

UNREADABLE_SHARE = 0.5  # of a page's characters without a text: the page reads as noise
_DRAWN_LETTERS = 40  # paths on a page without text: letters drawn as outlines, not two rules and a box


def page_reader(options: ParseOptions) -> PageReader | None:
    """The recogniser, or None when it is switched off or not part of this installation."""
    if options.ocr is OcrMode.OFF or find_spec("ingest.parse.ocr") is None:
        return None
    return import_module("ingest.parse.ocr").read_page


def lacks_text(text: PageText) -> bool:
    """Whether the text layer of a page is missing or unusable."""
    return text.chars == 0 or text.unmapped > UNREADABLE_SHARE * (text.chars + text.unmapped)


def has_picture(page: Any) -> bool:
    """Whether something that may hold letters is drawn on the page: an image, or many paths."""
    paths = 0
    for index in range(pdfium.FPDFPage_CountObjects(page)):
        kind = pdfium.FPDFPageObj_GetType(pdfium.FPDFPage_GetObject(page, index))
        if kind in (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM, pdfium.FPDF_PAGEOBJ_SHADING):
            return True
        paths += kind == pdfium.FPDF_PAGEOBJ_PATH
        if paths > _DRAWN_LETTERS:
            return True
    return False
