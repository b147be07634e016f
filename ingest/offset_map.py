"""The way back from normalized text to the source, compact enough to store with every version."""

from __future__ import annotations

import json
import struct
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.types import Box, SourcePlace, Span

_MAGIC = b"GOM1"
_COLUMNS = ("start", "length", "source_start", "source_length", "line", "page", "paragraph", "box", "member")


@dataclass(frozen=True, slots=True)
class Segment:
    """`length` normalized characters at `start`, and where they came from.

    `None` where the format does not know. Equal lengths map character by character; otherwise the segment
    stands for its whole source range.
    """

    start: int
    length: int
    source_start: int | None = None
    source_length: int = 0
    line: int | None = None
    page: int | None = None
    paragraph: int | None = None
    box: Box | None = None
    member: str | None = None

    @property
    def end(self) -> int:
        """One past the last normalized character."""
        return self.start + self.length


class OffsetMap:
    """Segments in order of normalized text. Gaps between them are characters that we put in (glue)."""

    __slots__ = ("_segments", "_starts")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments: Sequence[Segment] = tuple(s for s in segments if s.length > 0)
        self._starts = [s.start for s in self._segments]
        for before, after in zip(self._segments, self._segments[1:], strict=False):
            if after.start < before.end:
                raise ValueError(f"segments overlap at {after.start}")

    def __len__(self) -> int:
        return len(self._segments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetMap) and self._segments == other._segments

    __hash__ = None  # type: ignore[assignment]  # mutable by nobody, but compared by value only

    def segments_of(self, span: Span) -> Sequence[Segment]:
        """Segments that overlap `span`; for a span of glue alone, the one before it (or the first)."""
        low = max(0, bisect_right(self._starts, span.start) - 1)
        if low < len(self._segments) and self._segments[low].end <= span.start < span.end:
            low += 1
        found: list[Segment] = []
        for segment in self._segments[low:]:
            if segment.start >= span.end:
                break
            found.append(segment)
        if not found and self._segments:
            found = [self._segments[min(max(low - 1, 0), len(self._segments) - 1)]]
        return found

    def places(self, span: Span) -> list[SourcePlace]:
        """Where `span` stands in the source: one place per page (or one for formats without pages)."""
        groups: dict[tuple[int | None, str | None], list[Segment]] = {}
        for segment in self.segments_of(span):
            groups.setdefault((segment.page, segment.member), []).append(segment)
        return [_place(group, span) for group in groups.values()]

    def place(self, span: Span) -> SourcePlace:
        """The first of `places(span)`; an empty place when the map is empty."""
        found = self.places(span)
        return found[0] if found else SourcePlace()

    def page_at(self, offset: int) -> int | None:
        """1-based page of the character at `offset`."""
        found = self.segments_of(Span(offset, offset + 1))
        return found[0].page if found else None

    def page_breaks(self, span: Span) -> tuple[tuple[int, int], ...]:
        """Where another page than before begins inside `span`, as (offset, 1-based page)."""
        breaks: list[tuple[int, int]] = []
        last: int | None = None
        for segment in self.segments_of(span):
            if segment.page is not None and segment.page != last:
                if last is not None:
                    breaks.append((segment.start, segment.page))
                last = segment.page
        return tuple(breaks)

    def to_bytes(self) -> bytes:
        """Serialise: delta-coded int32 columns and JSON side tables, deflated; boxes to 0.1 point."""
        boxes: dict[Box, int] = {}
        members: dict[str, int] = {}
        rows: list[tuple[int, ...]] = [
            (
                s.start,
                s.length,
                -1 if s.source_start is None else s.source_start,
                s.source_length,
                -1 if s.line is None else s.line,
                -1 if s.page is None else s.page,
                -1 if s.paragraph is None else s.paragraph,
                -1 if s.box is None else boxes.setdefault(s.box, len(boxes)),
                -1 if s.member is None else members.setdefault(s.member, len(members)),
            )
            for s in self._segments
        ]
        corners = [[round(v, 1) for v in (b.x0, b.top, b.x1, b.bottom)] for b in boxes]
        side = json.dumps({"boxes": corners, "members": list(members)}, separators=(",", ":")).encode()
        parts = [_MAGIC, struct.pack("<II", len(rows), len(side)), side]
        for column in range(len(_COLUMNS)):
            values = array("i")
            last = 0
            for row in rows:
                values.append(row[column] - last)
                last = row[column]
            parts.append(values.tobytes())
        return zlib.compress(b"".join(parts), 6)

    @classmethod
    def from_bytes(cls, stored: bytes) -> OffsetMap:
        """Read what `to_bytes` wrote.

        Raises:
            ValueError: the bytes are not an offset map.
        """
        try:
            raw = zlib.decompress(stored)
        except zlib.error as error:
            raise ValueError("not an offset map: it does not inflate") from error
        if raw[:4] != _MAGIC:
            raise ValueError("not an offset map: wrong first bytes")
        count, side_length = struct.unpack_from("<II", raw, 4)
        at = 12 + side_length
        side = json.loads(raw[12:at])
        boxes = [Box(*values) for values in side["boxes"]]
        columns: list[list[int]] = []
        for _ in _COLUMNS:
            deltas = array("i")
            deltas.frombytes(raw[at : at + 4 * count])
            at += 4 * count
            total = 0
            columns.append([total := total + d for d in deltas])
        return cls(_segment(row, boxes, side["members"]) for row in zip(*columns, strict=True))


def _segment(row: tuple[int, ...], boxes: list[Box], members: list[str]) -> Segment:
    start, length, source_start, source_length, line, page, paragraph, box, member = row
    return Segment(
        start,
        length,
        None if source_start < 0 else source_start,
        source_length,
        None if line < 0 else line,
        None if page < 0 else page,
        None if paragraph < 0 else paragraph,
        None if box < 0 else boxes[box],
        None if member < 0 else members[member],
    )


def _place(group: list[Segment], span: Span) -> SourcePlace:
    """From the first character whose place is known to the last: labels that we put in have none."""
    known = [s for s in group if s.source_start is not None]
    first = known[0] if known else group[0]
    start, end = _characters(known, span)
    boxes = tuple(dict.fromkeys(s.box for s in group if s.box is not None))
    lines = [s.line for s in group if s.line is not None]
    paragraphs = [s.paragraph for s in group if s.paragraph is not None]
    return SourcePlace(
        start,
        end,
        first.line,
        first.page,
        boxes,
        first.paragraph,
        first.member,
        last_line=max(lines, default=None),
        last_paragraph=max(paragraphs, default=None),
    )


def _characters(known: list[Segment], span: Span) -> tuple[int | None, int | None]:
    if not known:
        return None, None
    first, last = known[0], known[-1]
    start, end = first.source_start or 0, (last.source_start or 0) + last.source_length
    if first.length == first.source_length:
        start += min(max(span.start - first.start, 0), first.length)
    if last.length == last.source_length:
        end = (last.source_start or 0) + min(max(span.end - last.start, 0), last.length)
    return start, max(start, end)
