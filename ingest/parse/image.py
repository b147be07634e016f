"""PNG, JPEG, TIFF, WebP, BMP and GIF: every frame a page, its text by recognition.

Boxes count pixels of the frame as it is shown (after the orientation that a camera noted in it).
"""

from __future__ import annotations

import io
import warnings
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


def parse_image(content: bytes, options: ParseOptions, media_type: str) -> ParsedDocument:
    """Read the text that a picture shows.

    Only a TIFF has pages; of an animation the first frame is read.

    Raises:
        DocumentRejected: `no_text` when recognition is off, missing or finds nothing, `corrupt`, `too_big`.
    """
    if (reason := why_not(options)) is not None:
        raise DocumentRejected("no_text", f"The file is a picture. {reason}")
    recogniser = Recogniser(options.ocr_max_pages)
    lines: list[Line] = []
    lost: list[int] = []
    chars = 0
    with open_image(content) as image:
        total = frame_count(image, media_type)
        for number in range(1, total + 1):
            try:
                page = recogniser.read(number, total, lambda at=number: (frame_pixels(image, at), 1.0))
            except (OSError, SyntaxError, ValueError):  # what Pillow raises on damaged frames
                lost.append(number)
                continue
            if page is not None:
                chars += page.chars
                check_length(chars, options.limits)
                lines.extend(lines_of_page(page))
            tell_pages(number, total)
    return _document(media_type, total, lines, lost, recogniser)


def _document(
    media_type: str, total: int, lines: list[Line], lost: list[int], recogniser: Recogniser
) -> ParsedDocument:
    if len(lost) == total:
        raise DocumentRejected("corrupt", "The picture is damaged and could not be decoded.")
    if not lines:
        raise DocumentRejected(
            "no_text",
            "No text was recognised in the picture. Upload a sharper one, or a document with text.",
        )
    told = recogniser.warnings()
    if lost:
        told.append(
            ParseWarning("pages_unreadable", "These pages are damaged and were skipped.", tuple(lost))
        )
    return ParsedDocument(
        media_type=media_type,
        blocks=blocks_as_shown(blocks_of_lines(lines), recogniser.turns),
        pages=total,
        warnings=tuple(told),
        partial=bool(lost) or recogniser.partial,
    )


@contextmanager
def open_image(content: bytes) -> Generator[Image]:
    """Open a picture without decoding it.

    Raises:
        DocumentRejected: `corrupt`, or `too_big` for more than `MAX_PIXELS`.
    """
    from PIL import Image as images
    from PIL import UnidentifiedImageError

    images.MAX_IMAGE_PIXELS = MAX_PIXELS
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", images.DecompressionBombWarning)
            image = images.open(io.BytesIO(content))
    except (images.DecompressionBombError, images.DecompressionBombWarning) as error:
        raise DocumentRejected(
            "too_big", f"The picture has more than {MAX_PIXELS // 1_000_000} million pixels; make it smaller."
        ) from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise DocumentRejected("corrupt", "The picture is damaged and could not be opened.") from error
    with image:
        yield image


def frame_count(image: Image, media_type: str) -> int:
    """Pages of a picture: the frames of a TIFF, else one."""
    if media_type != TIFF:
        return 1
    try:
        return max(1, min(int(getattr(image, "n_frames", 1)), _MAX_FRAMES))
    except (OSError, SyntaxError, ValueError):  # a damaged list of frames: the first may still be whole
        return 1


def frame_pixels(image: Image, number: int) -> Pixels:
    """Frame `number`, counted from 1, as shown on white paper: height x width x 3, uint8."""
    import numpy as np

    return np.asarray(shown_frame(image, number))


def shown_frame(image: Image, number: int) -> Image:
    """Frame `number`, counted from 1, upright as its camera noted, on white, in RGB.

    Raises:
        OSError, SyntaxError, ValueError: the frame is damaged.
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
