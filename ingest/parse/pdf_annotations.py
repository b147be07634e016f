"""What people wrote onto a PDF page: the values of form fields and text boxes. Nothing in them is run."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

import numpy as np
import pypdfium2.raw as pdfium

from ingest.parse.pdf_frame import Frame
from ingest.parse.pdf_words import Piece

_HIDDEN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_VALUED = (
    pdfium.FPDF_FORMFIELD_TEXTFIELD,
    pdfium.FPDF_FORMFIELD_COMBOBOX,
    pdfium.FPDF_FORMFIELD_LISTBOX,
)
_PASSWORD = 1 << 13  # field flag (ISO 32000-1, table 228): what is typed is not shown
_MAX_SIZE = 12.0  # points: a box says how much room there is, not how large its letters are
_MAX_ANNOTATIONS = 5000


def written_on(page: Any, frame: Frame, form: Any | None) -> list[Piece]:
    """Filled form fields and free text of a `pypdfium2.PdfPage`, one piece a line.

    Args:
        page: open.
        frame: its visible part.
        form: the document's form environment, or None when it has no form.
    """
    pieces: list[Piece] = []
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            text = _text(annotation, form)
            if text.strip():
                pieces.extend(_lines(text, annotation, frame))
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)
    return pieces


def _text(annotation: Any, form: Any | None) -> str:
    kind = pdfium.FPDFAnnot_GetSubtype(annotation)
    if kind not in (pdfium.FPDF_ANNOT_WIDGET, pdfium.FPDF_ANNOT_FREETEXT):
        return ""
    if pdfium.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
        return ""
    if kind == pdfium.FPDF_ANNOT_FREETEXT:
        return _string(partial(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents"))
    if form is None or pdfium.FPDFAnnot_GetFormFieldType(form, annotation) not in _VALUED:
        return ""
    if pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
        return ""
    return _string(partial(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation))


def _string(read: Any) -> str:
    """A text that pdfium writes as UTF-16 with a terminator, asked for its size first."""
    size = read(None, 0)
    if size <= 2:
        return ""
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    read(buffer, size)
    return bytes(buffer)[: size - 2].decode("utf-16-le", "replace")


def _lines(text: str, annotation: Any, frame: Frame) -> list[Piece]:
    rect = pdfium.FS_RECTF()
    if not pdfium.FPDFAnnot_GetRect(annotation, ctypes.byref(rect)):
        return []
    corners = np.array([[rect.left], [rect.top], [rect.right], [rect.bottom]], np.float32)
    x0, top, x1, bottom = (round(float(v), 1) for v in frame.shown(corners)[:, 0])
    if x1 <= x0 or bottom <= top:
        return []
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    high = (bottom - top) / len(lines)
    size = round(min(high, _MAX_SIZE), 1)
    return [
        Piece(line, x0, round(top + high * i, 1), x1, round(top + high * (i + 1), 1), size)
        for i, line in enumerate(lines)
    ]
