"""The characters of a PDF page as arrays: code, place as shown, and the style each is drawn in.

Layout needs a call into pdfium for every character, so the calls are made as cheap as Python allows: function
pointers without argument conversion that keep the interpreter lock, driven by `map`, writing into one
buffer that numpy reads. Measured: 0.11 µs a box, against 0.37 µs through the typed functions.
"""

from __future__ import annotations

import ctypes
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any

import numpy as np
import pypdfium2.raw as pdfium
from numpy.typing import NDArray

from ingest.parse.pdf_frame import Frame

Floats = NDArray[np.float32]
Codes = NDArray[np.uint32]
Kinds = NDArray[np.uint8]
Indices = NDArray[np.intp]

VISIBLE, SPACE, LINE_END, UNMAPPED, HYPHEN = range(5)
LINE_HYPHEN = 0xAD  # a hyphen that pdfium takes for a mere line-end mark
REPLACED = 0xFFFD

_CHUNK = 4096  # boxes read at once
_CJK = 0x2E80  # from here on words are not parted by spaces: any character may begin another text object


def call(name: str, restype: Any = ctypes.c_int) -> Callable[..., Any]:
    """A pdfium function without argument conversion: pass `c_void_p`, `byref(...)` and small integers."""
    address = ctypes.cast(getattr(pdfium, name), ctypes.c_void_p).value
    return ctypes.PYFUNCTYPE(restype)(address or 0)


_unicode = call("FPDFText_GetUnicode", ctypes.c_uint)
_loose_box = call("FPDFText_GetLooseCharBox")
_text_object = call("FPDFText_GetTextObject", ctypes.c_size_t)
_text = call("FPDFText_GetText")
_text_index = call("FPDFText_GetTextIndexFromCharIndex")
_font_size = call("FPDFText_GetFontSize", ctypes.c_double)
_matrix = call("FPDFText_GetMatrix")
_fill = call("FPDFText_GetFillColor")
_render_mode = call("FPDFTextObj_GetTextRenderMode")
_font = call("FPDFTextObj_GetFont", ctypes.c_size_t)
_font_name = call("FPDFFont_GetBaseFontName", ctypes.c_size_t)
_font_weight = call("FPDFFont_GetWeight")
_is_hyphen = call("FPDFText_IsHyphen")
_is_generated = call("FPDFText_IsGenerated")
_map_error = call("FPDFText_HasUnicodeMapError")

_boxes = (pdfium.FS_RECTF * _CHUNK)()
_box_refs = [ctypes.byref(_boxes, 16 * i) for i in range(_CHUNK)]
_box_view: Floats = np.frombuffer(memoryview(_boxes).cast("B"), np.float32).reshape(_CHUNK, 4)
_colours = (ctypes.c_uint * (4 * _CHUNK))()
_colour_refs = [[ctypes.byref(_colours, 16 * i + 4 * c) for i in range(_CHUNK)] for c in range(4)]
_colour_view = np.frombuffer(memoryview(_colours).cast("B"), np.uint32).reshape(_CHUNK, 4)
_BYTES = np.array([1, 1 << 8, 1 << 16, 1 << 24], np.uint32)
_BLACK = (0, 0, 0, 255)
_form = pdfium.FS_MATRIX()
_form_ref = ctypes.byref(_form)
_name = ctypes.create_string_buffer(128)
_name_ref = ctypes.byref(_name)


def _classes() -> Kinds:
    table = np.zeros(0x10000, np.uint8)
    table[[9, 32, 0xA0, 0x1680, 0x202F, 0x205F, 0x3000, 0xFEFF, 0x200B, *range(0x2000, 0x200B)]] = SPACE
    table[[10, 13]] = LINE_END
    table[[0, 1, *range(3, 9), REPLACED, 0xFFFF]] = UNMAPPED
    table[0xD800:0xE000] = UNMAPPED  # halves of a pair: pdfium gives whole code points
    table[[2, 0xFFFE]] = HYPHEN  # a hyphen at a line end, or a glyph without text: `_settle` asks which
    return table


_CLASS = _classes()


def _word_parts() -> NDArray[np.bool_]:
    """Latin letters and the marks that stand in words; not digits, which may be raised."""
    table = np.zeros(0x10000, np.bool_)
    table[[code for code in range(0x250) if chr(code).isalpha()]] = True
    table[[ord(c) for c in "'.,;:!?()’"]] = True
    return table


_WORD_PART = _word_parts()
_BOLD_NAMES = (b"bold", b"black", b"heavy", b"semibd", b"demi", b"-bd", b"cmbx", b"sfbx", b"-medi")
_MONO_NAMES = (b"mono", b"courier", b"consol", b"typewriter", b"cmtt", b"menlo", b"sourcecode")


@dataclass(frozen=True, slots=True)
class Style:
    """How a text object is drawn.

    Attributes:
        size: font size as drawn, in points.
        bold: by the weight or the name of its font.
        mono: by the name of its font: all letters equally wide, as in program code.
        turn: direction of the text on the page as shown, in degrees counter-clockwise: 0, 90, 180 or 270.
        mode: text render mode; 3 draws nothing.
        colour: fill as red, green, blue, alpha in [0, 255].
    """

    size: float
    bold: bool
    mono: bool
    turn: int
    mode: int
    colour: tuple[int, int, int, int]


@dataclass(slots=True)
class Chars:
    """The characters of a page in the order pdfium gives them, `n` in all.

    A gap or a change of size is always next to a space, or between a letter and something that is none. So
    places and styles are known for `m` of them, in a third of the calls: all but the letters inside of words,
    which belong to the known one before them.

    Attributes:
        code: n code points; unmapped glyphs are U+FFFD, hyphens that only mark a line end U+00AD, and spaces
            that pdfium sees between ideographs 0.
        kind: VISIBLE, SPACE, LINE_END or UNMAPPED for each of them.
        at: the m characters whose place is known, ascending; none is a space or line end.
        boxes: shape (4, m), points: left, top, right, bottom from the shown page's top left.
        style_of: index into `styles` for each of the m.
    """

    code: Codes
    kind: Kinds
    at: Indices
    boxes: Floats
    style_of: Indices
    styles: list[Style]


def read_chars(text_page: Any, frame: Frame, texts: int) -> Chars | None:
    """The characters of a `pypdfium2.PdfTextPage`; None when there is none that people could see.

    Args:
        text_page: open.
        frame: the visible part of its page.
        texts: number of text objects on the page.
    """
    count = text_page.count_chars()
    if count <= 0:
        return None
    handle = ctypes.cast(text_page.raw, ctypes.c_void_p)
    code = _codes(handle, count)
    kind = _CLASS[np.minimum(code, 0xFFFF)]
    visible = (kind != SPACE) & (kind != LINE_END)
    part = _WORD_PART[np.minimum(code, 0xFFFF)]
    ends = visible.copy()
    ends[1:-1] &= ~(part[:-2] & part[1:-1] & part[2:])
    at = np.flatnonzero(ends)
    if not at.size:
        return None
    boxes = _boxes_at(handle, at)
    if _turns_inside(boxes, at, visible):
        at = np.flatnonzero(visible)
        boxes = _boxes_at(handle, at)
    style_of, styles = _styles(handle, code, kind, at, boxes, frame, texts)
    _settle(handle, code, kind)
    return Chars(code, kind, at, frame.shown(boxes), style_of, styles)


def plain_text(text_page: Any) -> str:
    """The text of a page as pdfium orders it, with its line ends, without places or layout."""
    count = text_page.count_chars()
    if count <= 0:
        return ""
    codes = _codes(ctypes.cast(text_page.raw, ctypes.c_void_p), count)
    return codes.tobytes().decode("utf-32-le", "replace")


def _codes(handle: Any, count: int) -> Codes:
    units = (ctypes.c_ushort * (count + 1))()
    written = _text(handle, 0, count, ctypes.byref(units))
    if written == count + 1 and _text_index(handle, count - 1) == count - 1:
        code = np.frombuffer(memoryview(units).cast("B"), np.uint16, count).astype(np.uint32)
        if code.max() < 0xD800 or not ((code >= 0xD800) & (code < 0xE000)).any():
            return code
    # The text leaves out or adds characters: ask for each one.
    code = np.fromiter(map(_unicode, repeat(handle), range(count)), np.uint32, count)
    code[code > 0x10FFFF] = REPLACED
    return code


def _turns_inside(boxes: Floats, at: Indices, visible: NDArray[np.bool_]) -> bool:
    """Whether the letters of a word do not run from left to right, by the places of its two ends."""
    inside = (np.diff(at) > 1) & visible[at[1:] - 1]  # letters, and no space or line end, between the two
    left, top = boxes[0], boxes[1]
    turned = (np.abs(top[1:] - top[:-1]) > 1) | (left[1:] < left[:-1] - 1)
    return bool((turned & inside).any())


def _boxes_at(handle: Any, at: Indices) -> Floats:
    """Boxes of the characters `at`: left, top, right, bottom in the page's own coordinates."""
    boxes: Floats = np.empty((4, at.size), np.float32)
    for start in range(0, at.size, _CHUNK):
        part = at[start : start + _CHUNK]
        _box_view[: part.size] = 0
        deque(map(_loose_box, repeat(handle), part.tolist(), _box_refs), maxlen=0)
        boxes[:, start : start + part.size] = _box_view[: part.size].T
    return boxes


def _settle(handle: Any, code: Codes, kind: Kinds) -> None:
    """Part hyphens at line ends from glyphs without text, and name both by their code."""
    for index in np.flatnonzero(kind == HYPHEN).tolist():
        hyphen = _is_hyphen(handle, index) == 1
        kind[index] = VISIBLE if hyphen else UNMAPPED
        code[index] = LINE_HYPHEN if hyphen else REPLACED
    code[kind == UNMAPPED] = REPLACED
    # A gap between two ideographs that pdfium reads as a space is letter-spacing, unless the file has one.
    cjk = (code >= _CJK) & (code != REPLACED)
    between = np.flatnonzero((kind[1:-1] == SPACE) & cjk[:-2] & cjk[2:]) + 1
    for index in between.tolist():
        if _is_generated(handle, index) == 1:
            code[index] = 0


def _styles(
    handle: Any, code: Codes, kind: Kinds, at: Indices, boxes: Floats, frame: Frame, texts: int
) -> tuple[Indices, list[Style]]:
    """The style of each character whose place is known.

    Where every one of the `texts` objects of the page begins a line, they are asked there. Else wherever one
    can begin: at words, where the height changes, at ideographs.
    """
    before = kind[at - 1]
    height = boxes[1] - boxes[3]
    first = before == LINE_END
    first[0] = True
    asked = np.flatnonzero(first)
    objects = _objects_at(handle, at[asked])
    if np.unique(objects).size != texts:
        first |= (before == SPACE) | (code[at] >= _CJK)
        first[1:] |= np.abs(np.diff(height)) > 0.01
        asked = np.flatnonzero(first)
        objects = _objects_at(handle, at[asked])
    begins = np.flatnonzero(np.concatenate(([True], objects[1:] != objects[:-1])))
    starts = asked[begins]
    # Letters of one font at one size are equally high: the rest of an object's matrix is asked once for them.
    heights = np.round(height[starts], 1).tolist()
    chars = at[starts].tolist()
    drawn = list(map(ctypes.c_void_p, objects[begins].tolist()))
    fonts = [_font(handle) if handle.value else 0 for handle in drawn]
    modes = [_render_mode(handle) if handle.value else 0 for handle in drawn]
    known: dict[tuple[int, int, int, float], int] = {}
    styles: list[Style] = []
    indices: list[int] = []
    for index, font, mode, fill, high in zip(
        chars, fonts, modes, _fills(handle, chars), heights, strict=True
    ):
        key = (font, mode, fill, high)
        found = known.get(key)
        if found is None:
            found = known[key] = len(styles)
            styles.append(_style(handle, index, font, mode, fill, frame.rotation))
        indices.append(found)
    _note_guessed(handle, at[starts], kind)
    return np.repeat(np.array(indices, np.intp), np.diff(np.append(starts, at.size))), styles


def _fills(handle: Any, at: list[int]) -> list[int]:
    """Fill colours of the characters `at`, red in the lowest byte and alpha in the highest."""
    fills: list[int] = []
    for start in range(0, len(at), _CHUNK):
        part = at[start : start + _CHUNK]
        _colour_view[: len(part)] = _BLACK
        deque(map(_fill, repeat(handle), part, *_colour_refs), maxlen=0)
        fills += (_colour_view[: len(part)] @ _BYTES).tolist()
    return fills


def _objects_at(handle: Any, at: Indices) -> NDArray[np.uint64]:
    return np.fromiter(map(_text_object, repeat(handle), at.tolist()), np.uint64, at.size)


def _note_guessed(handle: Any, starts: Indices, kind: Kinds) -> None:
    """Mark characters whose code pdfium guessed because their font maps it to no text."""
    errors = np.fromiter(map(_map_error, repeat(handle), starts.tolist()), np.intc, starts.size)
    ends = np.append(starts[1:], kind.size)
    for at in np.flatnonzero(errors == 1).tolist():
        for index in range(int(starts[at]), int(ends[at])):
            if kind[index] == VISIBLE and _map_error(handle, index) == 1:
                kind[index] = UNMAPPED


def _style(handle: Any, at: int, font: int, mode: int, fill: int, rotation: int) -> Style:
    """The style of the character `at`."""
    a = b = c = d = 1.0
    if _matrix(handle, at, _form_ref):
        a, b, c, d = _form.a, _form.b, _form.c, _form.d
    turn = (90 if b > 0 else 270) if abs(b) > abs(a) else 180 if a < 0 and d < 0 else 0
    size = _font_size(handle, at) * math.hypot(c, d)
    colour = (fill & 255, fill >> 8 & 255, fill >> 16 & 255, fill >> 24)
    bold, mono = _looks(font)
    return Style(round(size, 2), bold, mono, (turn - rotation) % 360, mode, colour)


def _looks(font: int) -> tuple[bool, bool]:
    """Whether a font is bold, and whether it is one for program code."""
    if not font:
        return False, False
    handle = ctypes.c_void_p(font)
    length = _font_name(handle, _name_ref, ctypes.c_size_t(len(_name)))
    return _looks_of(_name.value if 0 < length <= len(_name) else b"", _font_weight(handle))


@lru_cache(maxsize=1000)
def _looks_of(name: bytes, weight: int) -> tuple[bool, bool]:
    name = name.lower()
    bold = weight >= 600 or any(word in name for word in _BOLD_NAMES)
    return bold, any(word in name for word in _MONO_NAMES)
