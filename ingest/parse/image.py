"""PNG, JPEG, TIFF, WebP, BMP and GIF: every frame a page, its text by recognition.

Boxes count pixels of the frame as it is shown (after the orientation that a camera noted in it).
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from core.errors import DocumentRejected
from ingest.parse.formats import TIFF
from ingest.parse.model import ParsedDocument, ParseOptions, ParseWarning
from ingest.parse.pdf_blocks import blocks_of_lines
from ingest.parse.pdf_layout import Line, lines_of_page
from ingest.parse.progress import tell_pages
from ingest.parse.recognise import Recogniser, why_not
from ingest.parse.turned import blocks_as_shown
from ingest.parse.within import check_length

if TYPE_CHECKING:
    from PIL.Image import Image

    from ingest.parse.ocr import Pixels

# A3 at 600 dpi has 70 million; decoded to three bytes each they stay well below the parser's memory cap.
MAX_PIXELS = 150_000_000
_MAX_FRAMES = 2000
_DAMAGED = "The picture is damaged or cut off; upload it again from the original."
# What Pillow raises on damaged files.
DAMAGE = (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, struct.error, zlib.error)


def parse_image(content: bytes, options: ParseOptions, media_type: str) -> ParsedDocument:
    """Read the text that a picture shows.

    Only a TIFF has pages; of an animation the first frame is read.

    Raises:
        DocumentRejected: `no_text` when recognition is off, missing or finds nothing, `corrupt`, `too_big`.
    """
    if (reason := why_not(options)) is not None:
        raise DocumentRejected("no_text", f"The file is a picture. {reason}")
    with open_image(content) as image:
        total = frame_count(image, media_type)
    reader = _Reader(content, total, options)
    for number in range(1, total + 1):
        reader.read(number)
        tell_pages(number, total)
    return reader.document(media_type)


class _Reader:
    """Reads the frames of one picture in turn."""

    def __init__(self, content: bytes, total: int, options: ParseOptions) -> None:
        self._content, self._total, self._options = content, total, options
        self._recogniser = Recogniser(options.ocr_max_pages)
        self._lines: list[Line] = []
        self._chars = 0
        self._damaged: list[int] = []
        self._lost: list[int] = []

    def read(self, number: int) -> None:
        """Read a frame; of one that is cut off, what is there."""
        try:
            page = self._recogniser.read(number, self._total, lambda: (self._pixels(number), 1.0))
        except DAMAGE:
            self._lost.append(number)
            return
        if page is not None:
            self._chars += page.chars
            check_length(self._chars, self._options.limits)
            self._lines.extend(lines_of_page(page))

    def _pixels(self, number: int) -> Pixels:
        with open_image(self._content) as image:
            try:
                return frame_pixels(image, number)
            except DAMAGE:
                pass
        with open_image(self._content) as image, _cut_off_allowed():
            pixels = frame_pixels(image, number)
        self._damaged.append(number)
        return pixels

    def document(self, media_type: str) -> ParsedDocument:
        """The document of all frames; raises `DocumentRejected` when nothing was read."""
        if len(self._lost) == self._total:
            raise DocumentRejected("corrupt", _DAMAGED)
        if not self._lines and self._damaged:
            raise DocumentRejected("corrupt", f"{_DAMAGED} No text was recognised in what is left of it.")
        if not self._lines:
            raise DocumentRejected(
                "no_text",
                "No text was recognised in the picture. Upload a sharper one, or a document with text.",
            )
        return ParsedDocument(
            media_type=media_type,
            blocks=blocks_as_shown(blocks_of_lines(self._lines), self._recogniser.turns),
            pages=self._total,
            warnings=tuple(self._warnings()),
            partial=bool(self._lost or self._damaged) or self._recogniser.partial,
        )

    def _warnings(self) -> list[ParseWarning]:
        told = self._recogniser.warnings()
        for code, detail, pages in (
            ("pages_damaged", "These pages are damaged; what is left of them was read.", self._damaged),
            ("pages_unreadable", "These pages are damaged and were skipped.", self._lost),
        ):
            if pages:
                told.append(ParseWarning(code, detail, tuple(pages)))
        return told


@contextmanager
def _cut_off_allowed() -> Generator[None]:
    """Let Pillow leave grey what is missing at the end of a file."""
    from PIL import ImageFile

    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        yield
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False


@contextmanager
def open_image(content: bytes) -> Generator[Image]:
    """Open a picture without decoding it.

    Raises:
        DocumentRejected: `corrupt`, or `too_big` for more than `MAX_PIXELS`.
    """
    from PIL import Image as images

    images.MAX_IMAGE_PIXELS = MAX_PIXELS
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", images.DecompressionBombWarning)
            image = images.open(io.BytesIO(content))
    except (images.DecompressionBombError, images.DecompressionBombWarning) as error:
        raise DocumentRejected(
            "too_big", f"The picture has more than {MAX_PIXELS // 1_000_000} million pixels; make it smaller."
        ) from error
    except DAMAGE as error:
        raise DocumentRejected("corrupt", _DAMAGED) from error
    with image:
        yield image


def frame_count(image: Image, media_type: str) -> int:
    """Pages of a picture: the frames of a TIFF, else one."""
    if media_type != TIFF:
        return 1
    try:
        return max(1, min(int(getattr(image, "n_frames", 1)), _MAX_FRAMES))
    except DAMAGE:  # a damaged list of frames: the first may still be whole
        return 1


def frame_pixels(image: Image, number: int) -> Pixels:
    """Frame `number`, counted from 1, as shown on white paper: height x width x 3, uint8."""
    import numpy as np

    return np.asarray(shown_frame(image, number))


def shown_frame(image: Image, number: int) -> Image:
    """Frame `number`, counted from 1, upright as its camera noted, on white, in RGB.

    Raises:
        one of `DAMAGE`: the frame is damaged.
    """
    from PIL import Image as images
    from PIL import ImageOps

    if number > 1 or image.tell() != 0:
        image.seek(number - 1)
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise DocumentRejected(
            "too_big",
            f"Page {number} has more than {MAX_PIXELS // 1_000_000} million pixels; make it smaller.",
        )
    frame: Any = ImageOps.exif_transpose(image)
    if frame.mode.startswith("I;16") or frame.mode in ("I", "F"):
        frame = _eight_bits(frame)
    if frame.has_transparency_data:
        frame = frame.convert("RGBA")
        paper = images.new("RGBA", frame.size, "white")
        frame = images.alpha_composite(paper, frame)
    return frame.convert("RGB")


def _eight_bits(frame: Any) -> Any:
    """Grey values of more than eight bits, spread over eight; Pillow would cut them off at 255."""
    import numpy as np
    from PIL import Image as images

    values = np.asarray(frame, dtype=np.float32)
    low, high = float(values.min()), float(values.max())
    span = max(high - low, 1e-9)
    return images.fromarray(((values - low) * (255 / span)).astype(np.uint8))
