"""Characters of a PDF page → pieces: runs of text on one baseline without a gap. The only door to pdfium."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from core.errors import DocumentRejected

# pdfium marks a hyphen at a line end with U+FFFE or U+0002; unmapped glyphs come as U+FFFE, U+FFFD or NUL.
LINE_END_HYPHENS = "\ufffe\x02"
LINE_HYPHEN = "\u00ad"
_UNMAPPED = frozenset("\ufffe\ufffd\x00")
_PIECE_GAP = 1.2  # in font heights: a wider gap is a gutter or a table column, not a space
_SPACE_GAP = 0.22  # in font heights: a gap without a space character that reads as one


@dataclass(slots=True)
class Piece:
    """Text on one baseline. Coordinates in points from the top left; `size` is its font size in points."""

    text: str
    x0: float
    top: float
    x1: float
    bottom: float
    size: float

    @property
    def middle(self) -> float:
        """Height of the piece's centre line."""
        return (self.top + self.bottom) / 2


@dataclass(slots=True)
class PageText:
    """One page. `unmapped` counts characters whose glyph has no text, `chars` all others.

    `recognised` pages were read from their picture.
    """

    number: int
    width: float
    height: float
    pieces: list[Piece]
    chars: int
    unmapped: int = 0
    recognised: bool = False


def open_pdf(content: bytes) -> Any:
    """Open a document.

    Raises:
        DocumentRejected: `encrypted` or `corrupt`.
    """
    try:
        document = pypdfium2.PdfDocument(content)
        if len(document) == 0:
            raise DocumentRejected("corrupt", "The PDF has no pages.")
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            raise DocumentRejected("encrypted", "The PDF needs a password; upload it without one.") from error
        raise DocumentRejected("corrupt", "The PDF is damaged and could not be opened.") from error
    return document


def pdf_title(document: Any) -> str:
    """Title from the document information."""
    try:
        return str(document.get_metadata_dict().get("Title") or "")
    except (pypdfium2.PdfiumError, UnicodeDecodeError):
        return ""


def read_pages(document: Any) -> Iterator[tuple[Any, PageText] | None]:
    """Each page with its text, open until the next is asked for; None for one that cannot be loaded."""
    for index in range(len(document)):
        try:
            page = document[index]
            text_page = page.get_textpage()
        except pypdfium2.PdfiumError:
            yield None
            continue
        try:
            yield page, _page(page, text_page, index + 1)
        finally:
            text_page.close()
            page.close()


def _page(page: Any, text_page: Any, number: int) -> PageText:
    turned = _Turned(page)
    width, height = turned.width, turned.height
    count = text_page.count_chars()
    if count <= 0:
        return PageText(number, width, height, [], 0, 0)
    raw = text_page.raw
    box = pdfium.FS_RECTF()
    by_ref = ctypes.byref(box)
    loose, unicode_of = pdfium.FPDFText_GetLooseCharBox, pdfium.FPDFText_GetUnicode
    builder = _Builder()
    for index in range(count):
        code = unicode_of(raw, index)
        if code in (13, 10):
            builder.end_line()
        elif code in (32, 9, 0xA0, 0x3000):
            builder.space()
        elif loose(raw, index, by_ref) and builder.add(_character(code), *turned.corners(box)):
            builder.font_size = _font_size(raw, index)
    builder.end_line()
    return PageText(number, width, height, builder.pieces, builder.chars, builder.unmapped)


def _font_size(raw: Any, index: int) -> float:
    """Font size of one character as drawn: the nominal size times the scale of its text matrix."""
    matrix = pdfium.FS_MATRIX()
    nominal = pdfium.FPDFText_GetFontSize(raw, index)
    if not pdfium.FPDFText_GetMatrix(raw, index, ctypes.byref(matrix)):
        return nominal
    return nominal * math.hypot(matrix.c, matrix.d)


class _Turned:
    """From the page's own coordinates (origin bottom left, before rotation) to the page as it is shown."""

    def __init__(self, page: Any) -> None:
        self._left, self._bottom, self._right, self._top = page.get_cropbox()
        self._rotation = page.get_rotation() % 360
        wide, high = self._right - self._left, self._top - self._bottom
        self.width, self.height = (high, wide) if self._rotation in (90, 270) else (wide, high)

    def corners(self, box: Any) -> tuple[float, float, float, float]:
        """x0, top, x1, bottom of a pdfium rectangle, origin at the shown page's top left."""
        if self._rotation == 90:
            return (
                box.bottom - self._bottom,
                box.left - self._left,
                box.top - self._bottom,
                box.right - self._left,
            )
        if self._rotation == 180:
            return (
                self._right - box.right,
                box.bottom - self._bottom,
                self._right - box.left,
                box.top - self._bottom,
            )
        if self._rotation == 270:
            return (
                self._top - box.top,
                self._right - box.right,
                self._top - box.bottom,
                self._right - box.left,
            )
        return box.left - self._left, self._top - box.top, box.right - self._left, self._top - box.bottom


def _character(code: int) -> str:
    return "\ufffd" if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF else chr(code)


class _Builder:
    """Joins characters into pieces as long as they stay on the baseline and leave no wide gap."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.chars = 0
        self.unmapped = 0
        self.font_size = 0.0
        self._text: list[str] = []
        self._box = (0.0, 0.0, 0.0, 0.0)
        self._sizes: list[float] = []
        self._space = False

    def add(self, char: str, x0: float, top: float, x1: float, bottom: float) -> bool:
        """Add one visible character with its box; True when a new piece begins with it."""
        if char in _UNMAPPED:
            self.unmapped += 1
        else:
            self.chars += 1
        size = max(bottom - top, 0.1)
        if self._text:
            left, high, right, low = self._box
            last = max(self._sizes[-1], size)
            same_line = min(low, bottom) - max(high, top) > 0.4 * min(size, low - high)
            gap = x0 - right
            if not same_line or gap > _PIECE_GAP * last or gap < -1.5 * last or x0 < left - last:
                self._flush()
            elif (self._space or gap > _SPACE_GAP * last) and self._text[-1] != " ":
                self._text.append(" ")
        self._space = False
        begins = not self._text
        if begins:
            self._box = (x0, top, x1, bottom)
            self._sizes = []
        else:
            left, high, right, low = self._box
            self._box = (min(left, x0), min(high, top), max(right, x1), max(low, bottom))
        self._text.append(char)
        self._sizes.append(size)
        return begins

    def space(self) -> None:
        """Note a space; it counts only between two characters of a piece."""
        self._space = True

    def end_line(self) -> None:
        """End the piece at pdfium's line end. The line end is a guess: pieces meet again by geometry."""
        self._flush()

    def _flush(self) -> None:
        if len(self._text) > 1 and self._text[-1] in LINE_END_HYPHENS:
            self.unmapped -= self._text[-1] == "\ufffe"  # it stood for a hyphen
            self._text[-1] = LINE_HYPHEN
        text = "".join("\ufffd" if c in _UNMAPPED else c for c in self._text).strip()
        if text:
            # A font without a usable size (a matrix of zeros) is measured by its boxes.
            size = self.font_size if self.font_size > 0.5 else median(self._sizes)
            self.pieces.append(Piece(text, *self._box, size=round(size, 2)))
        self._text = []
        self._space = False
