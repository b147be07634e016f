"""Text in pictures: the one door to rapidocr, whose wheel carries models for Chinese and English.

A picture becomes the same pieces that the text layer of a PDF gives, so that columns, headings, tables and
paragraphs are found by the same code. Loaded lazily, only in the process that parses. One thread: several
documents are read by several processes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from statistics import median
from typing import TYPE_CHECKING, Any

from ingest.parse.ocr_page import OcrLine, OcrPage
from ingest.parse.turned import Turn

if TYPE_CHECKING:
    import numpy as np

    Pixels = np.ndarray[Any, np.dtype[np.uint8]]
    Quad = np.ndarray[Any, np.dtype[np.float32]]

MISSING = "Recognition of text in pictures is not installed: pip install 'geo-engine[ocr]'."
# Lines below it are mostly ornaments, photographs and stains; it is the library's own default.
_MIN_CONFIDENCE = 0.5
# Long side at which lines are looked for: 1600 finds what 2400 does on A4 in 10 pt, in 0.4 of the time and
# with half of the memory. Recognition takes its crops from the picture itself.
_DETECT_SIDE = 1600
_MAX_SHORT_SIDE = 2600  # A4 at 300 dpi; more detail than the recogniser's 48 rows per line is not used
_SMALL_LINE = 18  # rows of pixels: lines lower than this are read better from a doubled picture
_MAX_DOUBLED = 1400
_TALL = 2.2  # height by width from which a picture is searched in parts (long screenshots)
_SAMPLE = 5  # lines that decide which way up a page is
_SURE = 0.9
_CONFIDENT_TURN = 0.6


def available() -> bool:
    """Whether the extra `ocr` is installed; loads nothing."""
    return find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None


def read_image(pixels: Pixels, points_per_pixel: float = 1.0) -> OcrPage:
    """Read one picture.

    Args:
        pixels: height x width x 3, uint8, RGB or BGR.
        points_per_pixel: size of a pixel on the page, which gives the boxes their unit.

    Returns:
        Its lines in no particular order; none when the picture holds no text.
    """
    height, width = pixels.shape[:2]
    scaled, scale = _fitted(pixels)
    quads, scaled, scale = _found(scaled, scale)
    quarter = _quarter_turns(scaled, quads)
    upright = _turned(scaled, quarter)
    quads = [_turned_quad(q, scaled.shape, quarter) for q in quads]
    quads = [q for q in quads if not _is_tall(q)] if _mostly_level(quads) else quads
    skew = _skew(quads)
    per_pixel = points_per_pixel / scale
    turn = Turn(quarter, skew, width * points_per_pixel, height * points_per_pixel)
    lines: list[OcrLine] = []
    dropped = 0
    for quad, (text, confidence) in zip(quads, _recognised(_crops(upright, quads)), strict=True):
        if not text.strip():
            continue
        if confidence < _MIN_CONFIDENCE:
            dropped += 1
            continue
        corners = [(float(x) * per_pixel, float(y) * per_pixel) for x, y in quad]
        lines.append(OcrLine(text.strip(), confidence, turn.levelled(corners)))
    return OcrPage(tuple(lines), turn.upright_width, turn.upright_height, turn, dropped)


# -- the library ---------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _engine() -> Any:
    import cv2
    from rapidocr import RapidOCR

    cv2.setNumThreads(1)
    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.use_cls": False,  # which way up is decided per page
            "Global.use_preprocess_img": False,
            "Global.text_score": 0.0,
            # Line by line: six together are padded to the longest of them, which takes 1.2 times as long and
            # twice the memory (A4 in 10 pt at 200 dpi: 3.4 s of one core and 660 MB; 4.1 s and 1,160 MB).
            "Rec.rec_batch_num": 1,
            "Det.limit_type": "max",
            "Det.limit_side_len": _DETECT_SIDE,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def _detected(pixels: Pixels) -> list[Quad]:
    """Lines as four corners each, from the top left clockwise, in pixels."""
    found = _engine()(pixels, use_det=True, use_cls=False, use_rec=False)
    return [] if found.boxes is None else list(found.boxes)


def _crops(pixels: Pixels, quads: Sequence[Quad]) -> list[Pixels]:
    """The lines cut out and straightened; one that is taller than wide is laid on its left side."""
    return list(_engine().crop_text_regions(pixels, quads)) if quads else []


def _recognised(crops: Sequence[Pixels]) -> list[tuple[str, float]]:
    """Text and confidence of each crop."""
    if not crops:
        return []
    found = _engine().recognize_txt(list(crops))
    return list(zip(found.txts, (float(s) for s in found.scores), strict=True))


# -- size ----------------------------------------------------------------------------------------


def _fitted(pixels: Pixels) -> tuple[Pixels, float]:
    scale = min(1.0, _MAX_SHORT_SIDE / min(pixels.shape[:2]))
    return (_resized(pixels, scale), scale) if scale < 1 else (pixels, 1.0)


def _resized(pixels: Pixels, scale: float) -> Pixels:
    import cv2

    size = (max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale)))
    return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)  # type: ignore[return-value]  # cv2's stubs know no dtype


def _found(pixels: Pixels, scale: float) -> tuple[list[Quad], Pixels, float]:
    """Lines of a picture, which is doubled first where they are small."""
    quads = _searched(pixels)
    small = not quads or median(min(_sides(q)) for q in quads) < _SMALL_LINE
    if small and max(pixels.shape[:2]) <= _MAX_DOUBLED:
        pixels, scale = _resized(pixels, 2.0), scale * 2
        quads = _searched(pixels)
    return quads, pixels, scale


def _searched(pixels: Pixels) -> list[Quad]:
    height, width = pixels.shape[:2]
    if height <= _TALL * width or height <= _DETECT_SIDE:
        return _detected(pixels)
    found: list[Quad] = []
    for top, bottom in _parts(pixels):
        for quad in _detected(pixels[top:bottom]):
            quad[:, 1] += top
            found.append(quad)
    return found


def _parts(pixels: Pixels) -> list[tuple[int, int]]:
    """Rows to search together, cut where the picture is calm so that no line is cut through."""
    height, width = pixels.shape[:2]
    step = max(round(1.4 * width), 800)
    calm = pixels.max(axis=2).std(axis=1)
    parts: list[tuple[int, int]] = []
    top = 0
    while height - top > 1.2 * step:
        low, high = top + int(0.8 * step), top + step
        cut = low + int(calm[low:high].argmin())
        parts.append((top, cut))
        top = cut
    return [*parts, (top, height)]


# -- which way up --------------------------------------------------------------------------------


def _sides(quad: Quad) -> tuple[float, float]:
    """Length along the first side and along the second."""
    (x0, y0), (x1, y1), (x2, y2), _ = quad
    return math.hypot(x1 - x0, y1 - y0), math.hypot(x2 - x1, y2 - y1)


def _is_tall(quad: Quad) -> bool:
    along, down = _sides(quad)
    return down >= 1.5 * along


def _mostly_level(quads: Sequence[Quad]) -> bool:
    tall = sum(max(_sides(q)) for q in quads if _is_tall(q))
    return tall <= 0.5 * sum(max(_sides(q)) for q in quads)


def _quarter_turns(pixels: Pixels, quads: Sequence[Quad]) -> int:
    """Quarter turns against the clock that bring the picture upright: the longest lines read best so."""
    if not quads:
        return 0
    level = _mostly_level(quads)
    sample = [q for q in sorted(quads, key=lambda q: -max(_sides(q))) if _is_tall(q) is not level]
    crops = _crops(pixels, sample[:_SAMPLE])
    first, second = (0, 2) if level else (1, 3)
    as_is = _confidence(crops)
    if as_is >= _SURE:
        return first
    over = _confidence([_turned(c, 2) for c in crops])
    if max(as_is, over) < _CONFIDENT_TURN:
        return 0
    return first if as_is >= over else second


def _confidence(crops: Sequence[Pixels]) -> float:
    found = _recognised(crops)
    chars = sum(len(text) for text, _ in found)
    return sum(len(text) * confidence for text, confidence in found) / chars if chars else 0.0


def _turned(pixels: Pixels, quarter: int) -> Pixels:
    import numpy as np

    return np.ascontiguousarray(np.rot90(pixels, quarter)) if quarter else pixels


def _turned_quad(quad: Quad, shape: Sequence[int], quarter: int) -> Quad:
    """Where the corners lie in the turned picture, from its top left clockwise."""
    import numpy as np

    height, width = shape[:2]
    x, y = quad[:, 0], quad[:, 1]
    moved = {
        0: (x, y),
        1: (y, width - x),
        2: (width - x, height - y),
        3: (height - y, x),
    }[quarter]
    return np.roll(np.stack(moved, axis=1), -quarter, axis=0).astype(np.float32)


def _skew(quads: Sequence[Quad]) -> float:
    """Angle of the lines in radians, clockwise; 0 where the page hangs straight."""
    long = [q for q in quads if _sides(q)[0] > 4 * _sides(q)[1]]
    if len(long) < 3:
        return 0.0
    angle = median(math.atan2(float(q[1][1] - q[0][1]), float(q[1][0] - q[0][0])) for q in long)
    return angle if math.radians(0.25) < abs(angle) < math.radians(20) else 0.0
