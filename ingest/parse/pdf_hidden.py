"""Which characters of a PDF page people cannot see."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.parse.pdf_chars import LINE_END, Chars
from ingest.parse.pdf_frame import Frame

_INVISIBLE_MODES = (3, 7)  # neither filled nor stroked
_WHITE = 245  # each of red, green, blue
_FAINT = 12  # alpha
_MIN_SIZE = 1.0  # points
_MIN_CONTRAST = 24  # grey levels between the letters and what is around them
_PICTURE_SIDE = 1600  # pixels of the longer side of a page drawn to look at it

Flags = NDArray[np.bool_]


def hidden_chars(
    chars: Chars, frame: Frame, images: list[tuple[float, float, float, float]], page: Any
) -> Flags | None:
    """Characters that are drawn invisibly, in white on white, too small to read or off the page.

    Invisible text over a picture is the recognised text of a scan; that counts as seen.

    Args:
        chars: of the page.
        frame: its visible part.
        images: boxes of its pictures, as shown.
        page: the open `pypdfium2.PdfPage`; drawn only when it has white text.

    Returns:
        One flag for each of `chars.at`, or None when all can be seen.
    """
    boxes = chars.boxes
    middle_x, middle_y = (boxes[0] + boxes[2]) / 2, (boxes[1] + boxes[3]) / 2
    hidden = (middle_x < 0) | (middle_y < 0) | (middle_x > frame.width) | (middle_y > frame.height)
    invisible = _of(chars, [s.mode in _INVISIBLE_MODES or s.colour[3] < _FAINT for s in chars.styles])
    if invisible is not None:
        hidden |= invisible & ~_inside(middle_x, middle_y, images)
    small = _of(chars, [s.size < _MIN_SIZE for s in chars.styles])
    if small is not None:  # a font may have no size of its own and letters all the same
        hidden |= small & (boxes[3] - boxes[1] < _MIN_SIZE)
    white = _of(chars, [min(s.colour[:3]) >= _WHITE and s.mode in (0, 2, 4, 6) for s in chars.styles])
    if white is not None:
        white &= ~hidden
        if white.any():
            hidden |= _unseen(chars, white, page)
    return hidden if hidden.any() else None


def _of(chars: Chars, flags: list[bool]) -> Flags | None:
    """Characters whose style has its flag set; None when there are none."""
    return np.array(flags, np.bool_)[chars.style_of] if any(flags) else None


def _inside(x: NDArray[Any], y: NDArray[Any], boxes: list[tuple[float, float, float, float]]) -> Flags:
    inside = np.zeros(x.size, np.bool_)
    for left, top, right, bottom in boxes:
        inside |= (x >= left) & (x <= right) & (y >= top) & (y <= bottom)
    return inside


def _unseen(chars: Chars, white: Flags, page: Any) -> Flags:
    """White characters around which the drawn page is of one colour."""
    width, height = page.get_size()
    scale = min(2.0, _PICTURE_SIDE / max(width, height, 1))
    picture = page.render(scale=scale, grayscale=True, may_draw_forms=False).to_numpy()
    picture = picture.reshape(picture.shape[0], -1)
    unseen = np.zeros(white.size, np.bool_)
    at = np.flatnonzero(white)
    # Letters of one line are looked at together.
    line = np.flatnonzero((np.diff(at, prepend=-9) > 1) | (chars.kind[chars.at[at] - 1] == LINE_END))
    for start, end in zip(line.tolist(), [*line[1:].tolist(), at.size], strict=True):
        members = at[start:end]
        boxes = chars.boxes[:, members] * scale
        x0, y0 = np.floor(boxes[:2].min(axis=1)).astype(int)
        x1, y1 = np.ceil(boxes[2:].max(axis=1)).astype(int)
        part = picture[max(y0, 0) : max(y1, 1), max(x0, 0) : max(x1, 1)]
        unseen[members] = part.size == 0 or int(part.max()) - int(part.min()) < _MIN_CONTRAST
    return unseen
