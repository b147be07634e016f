"""A page as a picture, for people who want to see where a passage stands."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import DocumentRejected
from ingest.parse.formats import IMAGES, PDF

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_WIDTH = 2000
_MAX_HEIGHT = 8000  # of a long screenshot
NO_PICTURE = "no_picture"


@dataclass(frozen=True, slots=True)
class PagePicture:
    """A PNG, and the size of the page in the unit of the boxes on it."""

    png: bytes
    page_width: float
    page_height: float


def page_picture(content: bytes, media_type: str, number: int, width: int) -> PagePicture:
    """Draw one page.

    Args:
        content: the whole file.
        media_type: as sniffed.
        number: 1-based.
        width: of the picture in pixels; less where the page is very tall.

    Raises:
        DocumentRejected: `no_picture` when the format has no pages or not this one, else as its parser.
    """
    if media_type == PDF:
        image, size = _pdf_page(content, number, width)
    elif media_type in IMAGES:
        image, size = _frame(content, media_type, number, width)
    else:
        raise DocumentRejected(NO_PICTURE, "This format has no pages to show.")
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=3)
    return PagePicture(buffer.getvalue(), *size)


def _pdf_page(content: bytes, number: int, width: int) -> tuple[Image, tuple[float, float]]:
    import pypdfium2

    from ingest.parse.pdf_document import open_pdf

    document = open_pdf(content)
    try:
        if number > len(document):
            raise DocumentRejected(NO_PICTURE, f"The document has {len(document)} pages.")
        try:
            page = document[number - 1]
        except pypdfium2.PdfiumError as error:
            raise DocumentRejected(NO_PICTURE, "This page is damaged and cannot be shown.") from error
        size = page.get_size()
        scale = min(width / max(size[0], 1.0), _MAX_HEIGHT / max(size[1], 1.0))
        return page.render(scale=scale, rev_byteorder=True).to_pil().convert("RGB"), size
    finally:
        document.close()


def _frame(content: bytes, media_type: str, number: int, width: int) -> tuple[Image, tuple[float, float]]:
    from ingest.parse.image import DAMAGE, frame_count, open_image, shown_frame

    with open_image(content) as image:
        if number > frame_count(image, media_type):
            raise DocumentRejected(NO_PICTURE, "The picture has no such page.")
        try:
            frame = shown_frame(image, number)
        except DAMAGE as error:
            raise DocumentRejected(NO_PICTURE, "This page is damaged and cannot be shown.") from error
    size = frame.size
    scale = min(width / size[0], _MAX_HEIGHT / size[1], 1.0)  # a small picture is not blown up
    shown = (max(1, round(size[0] * scale)), max(1, round(size[1] * scale)))
    return frame.resize(shown) if shown != size else frame, (float(size[0]), float(size[1]))
