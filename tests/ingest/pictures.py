"""Drawn pages: text set by Pillow in a font that has Chinese and Latin letters."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

_FONTS = (
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/opentype/noto/NotoSerifCJK-Regular.ttc",
    "/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc",
    "/usr/share/fonts/google-noto-cjk/NotoSansCJK-Regular.ttc",
)
A4 = (1240, 1754)  # at 150 dpi
Line = tuple[float, float, str]


def font(size: int) -> ImageFont.FreeTypeFont:
    for path in _FONTS:
        if Path(path).exists():
            return ImageFont.truetype(path, size)
    pytest.skip("no font with Chinese letters")


def drawn(lines: Sequence[Line], size: int = 30, paper: tuple[int, int] = A4) -> Image.Image:
    """White paper with black strings whose top left corner is at (x, y)."""
    image = Image.new("RGB", paper, "white")
    draw = ImageDraw.Draw(image)
    for x, y, text in lines:
        draw.text((x, y), text, font=font(size), fill="black")
    return image


def written(text: str, size: int = 30, paper: tuple[int, int] = A4, leading: float = 1.6) -> Image.Image:
    """A page of the given lines from the top, with margins."""
    lines = [(100.0, 120 + n * size * leading, line) for n, line in enumerate(text.splitlines())]
    return drawn([line for line in lines if line[2]], size, paper)


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def scan_pdf(*pages: Image.Image | str, dpi: float = 150) -> bytes:
    """A PDF whose pages are pictures, or a text layer where a string is given."""
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    for page in pages:
        if isinstance(page, str):
            canvas.setPageSize((595, 842))
            for n, line in enumerate(page.splitlines()):
                canvas.drawString(60, 780 - 16 * n, line)
        else:
            width, height = page.width * 72 / dpi, page.height * 72 / dpi
            canvas.setPageSize((width, height))
            canvas.drawImage(ImageReader(page), 0, 0, width, height)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()
