"""Lines of a PDF → headings, paragraphs, list items and table rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

import regex

from core.types import Box
from ingest.parse.model import Block, BlockKind, Fragment
from ingest.parse.pdf_layout import Line
from ingest.parse.pdf_words import LINE_HYPHEN
from ingest.parse.text import glue_between

_ENDS = regex.compile(r"[.!?:;。！？：；…][\"'”’」』）)】\]]*$")
_LIST_ITEM = regex.compile(
    r"(?:[-–*•·‣▪●○■□◦]\s*\S|\(?\d{1,2}[.)、）]\s*\D|\(?[a-z][.)]\s|[（(]?[一二三四五六七八九十]{1,3}[、)）])"
)
_BULLET = regex.compile(r"[-–*•·‣▪●○■□◦]\s")
_NUMBERED_HEADING = regex.compile(
    r"(?:\d{1,2}(?:\.\d{1,2}){0,3}\.?|[A-Z]\.|第[一二三四五六七八九十\d]+[章节条])\s*\S"
)
_WORD = regex.compile(r"[\p{L}]+(?:-[\p{L}]+)*")
_CJK = regex.compile(r"\p{Han}")
# First parts that usually keep their hyphen when a line ends after it.
_HEADS = (
    "well self non cross high low long short half full real built hard soft one two three four five six "
    "first second third ever all co ex so"
)
_COMPOUND_HEADS = frozenset(_HEADS.split())
_HEADING_RATIO = 1.1
_MIN_TABLE_ROWS = 2


def blocks_of_lines(lines: list[Line]) -> Iterator[Block]:
    """Blocks of a whole document, from its lines in reading order."""
    if not lines:
        return
    scale = _Scale(lines)
    vocabulary = _vocabulary(lines)
    tables = 0
    for group in _joined(list(_groups(lines, scale)), scale):
        if len(group) >= _MIN_TABLE_ROWS and all(line.cells for line in group):
            tables += 1
            yield from _table(group, tables)
            continue
        kind, level = _kind(group, scale)
        yield Block(kind, tuple(_fragments(group, vocabulary)), level)


class _Scale:
    """Font sizes relative to the body text, the size most characters have."""

    def __init__(self, lines: list[Line]) -> None:
        sizes: Counter[float] = Counter()
        for line in lines:
            sizes[round(line.size, 1)] += len(line.text)
        self._body = max(sizes.most_common(1)[0][0], 0.1)
        ratios = {self.step(line) for line in lines if self.of(line) >= _HEADING_RATIO}
        self._levels = {ratio: min(i + 1, 4) for i, ratio in enumerate(sorted(ratios, reverse=True))}

    def of(self, line: Line) -> float:
        """Font size of a line; 1 = body text."""
        return line.size / self._body

    def step(self, line: Line) -> float:
        """The height, coarse enough that two headings of one level agree."""
        return round(self.of(line) * 10) / 10

    def level(self, line: Line) -> int:
        """Heading level by rank of height; below all of them for a heading in body height."""
        return self._levels.get(self.step(line), min(max(self._levels.values(), default=0) + 1, 4))


def _vocabulary(lines: list[Line]) -> frozenset[str]:
    """Words that stand whole inside a line; they decide whether a line-end hyphen belongs to the word."""
    words: set[str] = set()
    for line in lines:
        found = _WORD.findall(line.text)
        words.update(w.lower() for w in (found[:-1] if line.text.endswith(("-", LINE_HYPHEN)) else found))
    return frozenset(words)


def _groups(lines: list[Line], scale: _Scale) -> Iterator[list[Line]]:
    """Paragraphs inside one column of one page."""
    leading = _leading(lines)
    group = [lines[0]]
    for last, line in pairwise(lines):
        if _same_paragraph(last, line, leading, scale, len(group)) or _same_table(last, line, leading):
            group.append(line)
        else:
            yield group
            group = [line]
    yield group


def _leading(lines: list[Line]) -> float:
    """Usual distance between the tops of two lines, in font sizes."""
    steps = [
        (b.box.top - a.box.top) / a.size
        for a, b in pairwise(lines)
        if a.page == b.page and a.region == b.region and 0 < b.box.top - a.box.top < 3 * a.size
    ]
    return median(steps) if steps else 1.2


def _same_place(last: Line, line: Line, leading: float) -> bool:
    if last.page != line.page or last.region != line.region:
        return False
    return 0 < line.box.top - last.box.top <= 1.3 * leading * max(last.size, line.size)


def _same_table(last: Line, line: Line, leading: float) -> bool:
    if not (last.cells and line.cells) or last.page != line.page or last.region != line.region:
        return False
    return 0 < line.box.top - last.box.top <= 2.2 * leading * max(last.size, line.size)


def _same_paragraph(last: Line, line: Line, leading: float, scale: _Scale, lines_so_far: int) -> bool:
    if not _same_place(last, line, leading) or last.cells or line.cells:
        return False
    if _LIST_ITEM.match(line.text):
        return False
    # Recognised text (OCR) has a size of its own on every line.
    if abs(scale.of(line) - scale.of(last)) > (0.3 if _goes_on(line.text) else 0.1):
        return False
    width = max(line.region.x1 - line.region.x0, 1.0)
    ended = _ENDS.search(last.text) is not None
    short = last.box.x1 < line.region.x1 - 0.2 * width
    if ended and short:
        return False
    indented = line.box.x0 > line.region.x0 + 0.7 * line.size
    if indented and ended and last.box.x0 < line.box.x0 - 0.5 * line.size and lines_so_far > 1:
        return False
    return not (short and last.box.x1 < line.region.x0 + 0.5 * width and not _goes_on(line.text))


def _goes_on(text: str) -> bool:
    """Whether a line reads like the middle of a sentence."""
    return text[:1].islower() or text[:1] in ",;)，；、）"


def _joined(groups: list[list[Line]], scale: _Scale) -> Iterator[list[Line]]:
    """Paragraphs that go on in the next column or on the next page become one."""
    pending = groups[0]
    for group in groups[1:]:
        last, first = pending[-1], group[0]
        moved = last.page != first.page or last.region != first.region
        if moved and _continues(last, first, scale):
            pending = pending + group
            continue
        yield pending
        pending = group
    yield pending


def _continues(last: Line, first: Line, scale: _Scale) -> bool:
    if last.cells or first.cells or _ENDS.search(last.text) or _LIST_ITEM.match(first.text):
        return False
    if abs(scale.of(last) - scale.of(first)) > 0.06 or scale.of(last) > 1.08:
        return False
    if last.text.endswith(LINE_HYPHEN) or _goes_on(first.text):
        return True
    full = last.box.x1 > last.region.x1 - 0.12 * (last.region.x1 - last.region.x0)
    return full and _CJK.match(first.text) is not None and _CJK.search(last.text[-1:]) is not None


def _kind(group: list[Line], scale: _Scale) -> tuple[BlockKind, int]:
    text = " ".join(line.text for line in group)
    first = group[0]
    short = len(group) <= 3 and len(text) <= 160 and any(c.isalpha() for c in text)
    if _BULLET.match(text):
        return BlockKind.LIST_ITEM, 0
    if (
        short
        and scale.of(first) >= _HEADING_RATIO
        and not text.rstrip().endswith(("。", "；", ";", ",", "，"))
    ):
        return BlockKind.HEADING, scale.level(first)
    numbered = len(group) == 1 and len(text) <= 80 and _NUMBERED_HEADING.match(text)
    if numbered and scale.of(first) >= 1.03 and not _ENDS.search(text):
        return BlockKind.HEADING, scale.level(first)
    return (BlockKind.LIST_ITEM if _LIST_ITEM.match(text) else BlockKind.PARAGRAPH), 0


def _fragments(group: list[Line], vocabulary: frozenset[str]) -> Iterator[Fragment]:
    glue = ""
    for line, following in zip(group, [*group[1:], None], strict=True):
        text, next_glue = line.text, " "
        if following is not None:
            text, next_glue = _line_end(text, following.text, vocabulary)
        yield Fragment(text.replace(LINE_HYPHEN, "-"), glue, page=line.page, box=line.box)
        glue = next_glue


def _line_end(text: str, following: str, vocabulary: frozenset[str]) -> tuple[str, str]:
    """The line without a hyphen that only marks the line end, and the glue to the next line."""
    if not text.endswith(("-", LINE_HYPHEN)):
        return text, glue_between(text, following)
    head, tail = _WORD.findall(text[:-1]), _WORD.match(following)
    if not head or not text[-2:-1].isalpha() or tail is None or not following[:1].islower():
        return text[:-1] + "-", "" if text[-2:-1].isalnum() else " "
    left, right = head[-1].lower(), tail.group().lower()
    if f"{left}-{right}" in vocabulary or (left in _COMPOUND_HEADS and left + right not in vocabulary):
        return text[:-1] + "-", ""
    return text[:-1], ""


def _table(group: list[Line], number: int) -> Iterator[Block]:
    """Rows whose gaps line up. The first row names the columns when it alone holds no number."""
    first_has_number = any(c.isdigit() for c in group[0].text)
    others_have = sum(any(c.isdigit() for c in line.text) for line in group[1:])
    header = not first_has_number and others_have * 2 >= len(group) - 1
    for index, line in enumerate(group):
        yield Block(
            BlockKind.TABLE_ROW,
            tuple(
                Fragment(
                    c.text,
                    " | ",
                    page=line.page,
                    box=Box(*(round(v, 1) for v in (c.x0, c.top, c.x1, c.bottom))),
                )
                for c in line.cells
            ),
            table=number,
            is_table_header=header and index == 0,
        )
