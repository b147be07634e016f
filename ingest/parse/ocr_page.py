"""What recognition found on a page, in the form that the layout code reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from core.types import Box
from ingest.parse.pdf_words import PageText, Piece
from ingest.parse.turned import Turn

_DOUBTFUL_CONFIDENCE = 0.8  # of a page on average: worth a look by a person
_SIZE_STEP = 1.4  # heights of lines are known to about 15 %: font sizes in steps, so that body text agrees
_FONT_SHARE = 0.85  # of a line's box


@dataclass(frozen=True, slots=True)
class OcrLine:
    """A line as recognised; `box` in points of the page as it is read (turned upright)."""

    text: str
    confidence: float
    box: Box


@dataclass(frozen=True, slots=True)
class OcrPage:
    """What a picture says.

    Attributes:
        width, height: of the page as it is read, in points.
        turn: from there to the page as it is shown.
        dropped: lines found but not read well enough to be kept.
    """

    lines: tuple[OcrLine, ...]
    width: float
    height: float
    turn: Turn
    dropped: int

    @property
    def doubtful(self) -> bool:
        """Whether a person should look at the page before trusting its text."""
        chars = sum(len(line.text) for line in self.lines)
        sure = sum(len(line.text) * line.confidence for line in self.lines)
        return self.dropped > 0 or (chars > 0 and sure < _DOUBTFUL_CONFIDENCE * chars)

    def page_text(self, number: int) -> PageText:
        """The page for the layout code."""
        sizes = _font_sizes(self.lines)
        pieces = [_piece(line, size) for line, size in zip(self.lines, sizes, strict=True)]
        chars = sum(len(line.text) for line in self.lines)
        return PageText(number, self.width, self.height, pieces, chars, recognised=True)


def _font_sizes(lines: Sequence[OcrLine]) -> list[float]:
    heights = [line.box.bottom - line.box.top for line in lines]
    weighed = [h for h, line in zip(heights, lines, strict=True) for _ in range(max(1, len(line.text)))]
    body = max(median(weighed), 0.1) if weighed else 1.0
    steps = [round(math.log(max(h, 0.1) / body, _SIZE_STEP)) for h in heights]
    return [round(body * _SIZE_STEP**step * _FONT_SHARE, 2) for step in steps]


def _piece(line: OcrLine, size: float) -> Piece:
    """Boxes of neighbours touch; letters keep a space between them, Chinese characters do not."""
    room = 0.12 * (line.box.bottom - line.box.top)
    left = room if line.text[0] < "\u2e80" else 0.0
    right = room if line.text[-1] < "\u2e80" else 0.0
    x0, x1 = line.box.x0 + left, line.box.x1 - right
    if x1 <= x0:
        x0, x1 = line.box.x0, line.box.x1
    return Piece(line.text, x0, line.box.top, x1, line.box.bottom, size)
