"""Lines and boxes drawn on a page: the borders of tables."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pypdfium2.raw as pdfium

from ingest.parse.pdf_chars import call
from ingest.parse.pdf_frame import Frame

_THIN = 2.5  # points: a drawn rectangle thinner than this is a line
_MIN_LENGTH = 6.0
_MAX_SEGMENTS = 4000  # per page; a map or a plot is not a table

_count = call("FPDFPage_CountObjects")
_object = call("FPDFPage_GetObject", ctypes.c_size_t)
_kind = call("FPDFPageObj_GetType")
_bounds = call("FPDFPageObj_GetBounds")
_segments = call("FPDFPath_CountSegments")
_segment = call("FPDFPath_GetPathSegment", ctypes.c_size_t)
_point = call("FPDFPathSegment_GetPoint")
_segment_kind = call("FPDFPathSegment_GetType")
_matrix = call("FPDFPageObj_GetMatrix")

_corners = (ctypes.c_float * 4)()
_corner_refs = [ctypes.byref(_corners, 4 * i) for i in range(4)]
_form = pdfium.FS_MATRIX()
_form_ref = ctypes.byref(_form)


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line on the page as shown, in points from its top left."""

    x0: float
    top: float
    x1: float
    bottom: float

    @property
    def vertical(self) -> bool:
        """Whether it stands upright."""
        return self.bottom - self.top > self.x1 - self.x0


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is drawn on a page besides its text.

    Attributes:
        rules: straight lines along the edges of the page.
        texts: number of text objects.
        images: boxes of pictures, left, top, right, bottom on the page as shown.
    """

    texts: int
    rules: list[Rule]
    images: list[tuple[float, float, float, float]]


def drawn_on(page: Any, frame: Frame) -> Drawn:
    """Rules and pictures of a `pypdfium2.PdfPage`."""
    handle = ctypes.cast(page.raw, ctypes.c_void_p)
    lines: list[tuple[float, float, float, float]] = []
    images: list[tuple[float, float, float, float]] = []
    objects = list(map(ctypes.c_void_p, map(_object, repeat(handle), range(_count(handle)))))
    kinds = list(map(_kind, objects))
    for drawn, kind in zip(objects, kinds, strict=True):
        if kind == pdfium.FPDF_PAGEOBJ_PATH and len(lines) < _MAX_SEGMENTS:
            _path(drawn, lines)
        elif kind == pdfium.FPDF_PAGEOBJ_IMAGE and _bounds(drawn, *_corner_refs):
            left, bottom, right, top = _corners
            images.append((left, top, right, bottom))
    return Drawn(
        kinds.count(pdfium.FPDF_PAGEOBJ_TEXT),
        [Rule(*map(float, box)) for box in _shown(lines, frame)],
        [tuple(map(float, box)) for box in _shown(images, frame)],  # pyright: ignore[reportArgumentType] - four corners
    )


def _shown(boxes: list[tuple[float, float, float, float]], frame: Frame) -> list[list[float]]:
    if not boxes:
        return []
    return np.round(frame.shown(np.array(boxes, np.float32).T).T.astype(np.float64), 1).tolist()


def _path(path: Any, lines: list[tuple[float, float, float, float]]) -> None:
    """Add the straight lines of a path object as thin boxes: left, top, right, bottom, growing upwards."""
    if not _bounds(path, *_corner_refs):
        return
    left, bottom, right, top = _corners
    wide, high = right - left, top - bottom
    if wide < _MIN_LENGTH and high < _MIN_LENGTH:
        return
    if wide <= _THIN or high <= _THIN:
        lines.append((left, top, right, bottom))
        return
    count = _segments(path)
    if count > 400 or count < 2:
        return
    _outline(path, count, lines)


def _outline(path: Any, count: int, lines: list[tuple[float, float, float, float]]) -> None:
    if not _matrix(path, _form_ref):
        return
    a, b, c, d, e, f = _form.a, _form.b, _form.c, _form.d, _form.e, _form.f
    last = start = (0.0, 0.0)
    for index in range(count):
        segment = ctypes.c_void_p(_segment(path, index))
        if not _point(segment, _corner_refs[0], _corner_refs[1]):
            return
        x, y = _corners[0], _corners[1]
        at = (a * x + c * y + e, b * x + d * y + f)
        kind = _segment_kind(segment)
        if kind == pdfium.FPDF_SEGMENT_BEZIERTO:
            return
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            start = at
        else:
            _add_line(last, at, lines)
        last = at
    if len(lines) and count >= 4:
        _add_line(last, start, lines)


def _add_line(
    a: tuple[float, float], b: tuple[float, float], lines: list[tuple[float, float, float, float]]
) -> None:
    wide, high = abs(a[0] - b[0]), abs(a[1] - b[1])
    if (wide <= 0.5) == (high <= 0.5) or max(wide, high) < _MIN_LENGTH:
        return
    lines.append((min(a[0], b[0]), max(a[1], b[1]), max(a[0], b[0]), min(a[1], b[1])))
