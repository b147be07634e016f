"""Which pages of a PDF need recognition of their picture, and the way to the recogniser."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pypdfium2
import pypdfium2.raw as pdfium

from ingest.parse.model import ParseOptions
from ingest.parse.pdf_words import PageText
from ingest.parse.recognise import Recogniser, why_not

if TYPE_CHECKING:
    from ingest.parse.ocr import Pixels

UNREADABLE_SHARE = 0.5  # of a page's characters without a text: the page reads as noise
_DRAWN_LETTERS = 40  # paths on a page without text: letters drawn as outlines, not two rules and a box
_STAMP_CHARS = 60
_SCAN_SHARE = 0.6  # of the page that its pictures cover together
_SCAN_CHARS = 100
_DPI = 200  # 10 pt letters are 28 pixels high; more costs memory and reads no better
_MAX_SIDE = 4000  # of the picture: a poster is drawn coarser, its letters are larger


class PageReader:
    """Reads the pages of one document that lack text from their pictures."""

    def __init__(self, options: ParseOptions, total: int) -> None:
        self.recogniser = Recogniser(options.ocr_max_pages)
        self._total = total

    def __call__(self, page: Any, number: int) -> PageText | None:
        """Read an open `pypdfium2.PdfPage`.

        Returns:
            Its text; pieces stand in points from the top left of the page turned upright, and
            `recogniser.turns` leads back to the page as shown. None when nothing was found.
        """
        try:
            return self.recogniser.read(number, self._total, lambda: _picture(page))
        except pypdfium2.PdfiumError:  # it cannot be drawn, for example because it has no size
            return None

    def stamped(self, page: Any, number: int, layer: PageText) -> PageText:
        """The text of a stamped scan; the layer where the picture says little more than the layer does."""
        found = self(page, number)
        if found is None or found.chars < max(_SCAN_CHARS, 3 * layer.chars):
            self.recogniser.forget(number)
            return layer
        return found


def _picture(page: Any) -> tuple[Pixels, float]:
    scale = min(_DPI / 72, _MAX_SIDE / max(*page.get_size(), 1.0))
    return page.render(scale=scale, rev_byteorder=True, prefer_bgrx=False).to_numpy()[:, :, :3], 1 / scale


def page_reader(options: ParseOptions, total: int) -> PageReader | None:
    """The recogniser, or None when it is switched off or not part of this installation."""
    return PageReader(options, total) if why_not(options) is None else None


def lacks_text(text: PageText) -> bool:
    """Whether the text layer of a page is missing or unusable."""
    return text.chars == 0 or text.unmapped > UNREADABLE_SHARE * (text.chars + text.unmapped)


def may_be_scan(page: Any, text: PageText) -> bool:
    """Whether the page is a picture that only a stamp of text stands on: a page number, a scanner's name."""
    if not 0 < text.chars < _STAMP_CHARS:
        return False
    width, height = page.get_size()
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    covered = 0.0
    for index in range(pdfium.FPDFPage_CountObjects(page)):
        item = pdfium.FPDFPage_GetObject(page, index)
        if pdfium.FPDFPageObj_GetType(item) in (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM):
            pdfium.FPDFPageObj_GetBounds(item, left, bottom, right, top)
            covered += max(0.0, right.value - left.value) * max(0.0, top.value - bottom.value)
    return covered >= _SCAN_SHARE * width * height


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
