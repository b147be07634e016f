"""Between the coordinates of a PDF page and the page as it is shown, and between turned and upright text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Frame:
    """The visible part of a page.

    Attributes:
        left, bottom, right, top: the crop box in the page's own coordinates, before rotation.
        rotation: clockwise, 0, 90, 180 or 270.
    """

    left: float
    bottom: float
    right: float
    top: float
    rotation: int

    @classmethod
    def of(cls, page: Any) -> Frame:
        """The frame of a `pypdfium2.PdfPage`."""
        left, bottom, right, top = page.get_cropbox()
        return cls(left, bottom, right, top, page.get_rotation() % 360)

    @property
    def width(self) -> float:
        """Width of the page as shown, in points."""
        return self.top - self.bottom if self.rotation in (90, 270) else self.right - self.left

    @property
    def height(self) -> float:
        """Height of the page as shown, in points."""
        return self.right - self.left if self.rotation in (90, 270) else self.top - self.bottom

    def shown(self, boxes: Floats) -> Floats:
        """Boxes on the page as shown, in points from its top left.

        Args:
            boxes: shape (4, n): left, top, right, bottom in the page's own coordinates, which grow upwards.

        Returns:
            Shape (4, n): left, top, right, bottom, growing downwards.
        """
        left, top, right, bottom = boxes
        if self.rotation == 90:
            parts = (bottom - self.bottom, left - self.left, top - self.bottom, right - self.left)
        elif self.rotation == 180:
            parts = (self.right - right, bottom - self.bottom, self.right - left, top - self.bottom)
        elif self.rotation == 270:
            parts = (self.top - top, self.right - right, self.top - bottom, self.right - left)
        else:
            parts = (left - self.left, self.top - top, right - self.left, self.top - bottom)
        return np.stack(parts)


def upright(boxes: Floats, turn: int, width: float, height: float) -> Floats:
    """Boxes as they stand when the page is turned so that text in direction `turn` reads left to right.

    Args:
        boxes: shape (4, n): left, top, right, bottom on a shown page of `width` by `height`.
        turn: direction of the text, degrees counter-clockwise. Vertical text, whose columns run down and
            follow each other from right to left, takes 270.
        width: of the page as shown.
        height: of the page as shown.
    """
    x0, top, x1, bottom = boxes
    if turn == 90:
        return np.stack((height - bottom, x0, height - top, x1))
    if turn == 180:
        return np.stack((width - x1, height - bottom, width - x0, height - top))
    if turn == 270:
        return np.stack((top, width - x1, bottom, width - x0))
    return boxes


def turned_back(
    box: tuple[float, float, float, float], turn: int, width: float, height: float
) -> tuple[float, float, float, float]:
    """The place on the shown page of a box that `upright` turned."""
    x0, top, x1, bottom = box
    if turn == 90:
        return top, height - x1, bottom, height - x0
    if turn == 180:
        return width - x1, height - bottom, width - x0, height - top
    if turn == 270:
        return width - bottom, x0, width - top, x1
    return box
