"""Pages that were turned to be recognised: the way from where lines are read to where they are shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from core.types import Box
from ingest.parse.model import Block, Fragment

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Turn:
    """How a page was turned to be read.

    Attributes:
        quarter: quarter turns against the clock that brought it upright, 0 to 3.
        skew: angle of its lines after that, in radians, clockwise.
        width, height: of the page as it is shown, in points.
    """

    quarter: int
    skew: float
    width: float
    height: float

    @property
    def upright_width(self) -> float:
        """Width of the page as it is read."""
        return self.height if self.quarter % 2 else self.width

    @property
    def upright_height(self) -> float:
        """Height of the page as it is read."""
        return self.width if self.quarter % 2 else self.height

    @property
    def is_plain(self) -> bool:
        """Whether the page is read as it is shown."""
        return self.quarter == 0 and self.skew == 0.0

    def levelled(self, corners: Sequence[Point]) -> Box:
        """The box of a line on the upright page, with its skew taken out."""
        return _around([self._rotated(p, -self.skew) for p in corners])

    def shown(self, box: Box) -> Box:
        """A box of the upright, level page on the page as it is shown."""
        if self.is_plain:
            return box
        corners = ((box.x0, box.top), (box.x1, box.top), (box.x1, box.bottom), (box.x0, box.bottom))
        return _around([self._shown(self._rotated(p, self.skew)) for p in corners])

    def _rotated(self, point: Point, angle: float) -> Point:
        if angle == 0.0:
            return point
        cx, cy = self.upright_width / 2, self.upright_height / 2
        x, y = point[0] - cx, point[1] - cy
        return (
            cx + x * math.cos(angle) - y * math.sin(angle),
            cy + x * math.sin(angle) + y * math.cos(angle),
        )

    def _shown(self, point: Point) -> Point:
        x, y = point
        return ((x, y), (self.width - y, x), (self.width - x, self.height - y), (y, self.height - x))[
            self.quarter
        ]


def blocks_as_shown(blocks: Iterable[Block], turns: Mapping[int, Turn]) -> tuple[Block, ...]:
    """The blocks with the boxes of turned pages moved to the pages as they are shown.

    Args:
        blocks: as the layout gave them.
        turns: by page number, 1-based; pages that are not named are left alone.
    """
    turned = {page: turn for page, turn in turns.items() if not turn.is_plain}
    if not turned:
        return tuple(blocks)
    return tuple(
        replace(block, fragments=tuple(_as_shown(f, turned) for f in block.fragments)) for block in blocks
    )


def _as_shown(fragment: Fragment, turns: Mapping[int, Turn]) -> Fragment:
    turn = turns.get(fragment.page or 0)
    if turn is None or fragment.box is None:
        return fragment
    return replace(fragment, box=turn.shown(fragment.box))


def _around(points: Sequence[Point]) -> Box:
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    return Box(*(round(v, 1) for v in (min(xs), min(ys), max(xs), max(ys))))
