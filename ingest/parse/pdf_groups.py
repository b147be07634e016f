"""Lines of a PDF → groups that belong together: paragraphs over lines, columns and pages, tables, code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from ingest.parse.pdf_joints import SOFT, ends_sentence, goes_on, is_cjk
from ingest.parse.pdf_layout import Line

_LIST_ITEM = re.compile(
    r"(?:[-–*•·‣▪●○■□◦➢✓]\s*\S|\(?\d{1,2}[.)、）](?!\d)\s*\S|\(?[a-z][.)]\s|\(?[ivx]{1,4}[.)]\s|[（(]?[一二三四五六七八九十]{1,3}[、)）]|[①-⑳]"
    r"|[（(]\d{1,2}[)）])"
)
_ITEM_FIRST = frozenset("-–*•·‣▪●○■□◦➢✓(（0123456789一二三四五六七八九十①②③④⑤⑥⑦⑧⑨⑩")
_CAPTION = re.compile(
    r"(?:(?:Figure|Fig\.?|Table|Algorithm|Listing)\s*\d+(?:[.-]\d+)*\s*[:.]|[图表圖]\s*\d+(?:[-.．]\d+)*\s)"
)
_NOTE = re.compile(r"(?:[⁰¹²³⁴⁵⁶⁷⁸⁹]+|\[?\d{1,3}\]?|[*†‡§])\s*\S")
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_LEADERS = re.compile(
    r"(?:\.\s?){4,}\s*(?:\d{1,4}|[ivxlc]{1,6})?$|(?:[·…‥]\s?){3,}\s*(?:\d{1,4}|[ivxlc]{1,6})?$"
)
_CONTENTS_ENDS = frozenset("0123456789ivxlcIVXLC.·…‥")
_NOTE_SIZE = 0.95  # of the body
_LOOK_AHEAD = 8  # groups that may float between two halves of a paragraph

Group = list[Line]


class Scale:
    """Font sizes relative to the body text, the size most characters have."""

    def __init__(self, lines: list[Line]) -> None:
        sizes: Counter[float] = Counter()
        bold = mono = total = 0
        for line in lines:
            length = len(line.text)
            sizes[round(line.size, 1)] += length
            total += length
            bold += length if line.bold else 0
            mono += length if line.mono else 0
        self.body = max(sizes.most_common(1)[0][0], 0.1)
        self.bold_is_plain = bold > 0.5 * total
        self.mono_is_plain = mono > 0.5 * total

    def of(self, line: Line) -> float:
        """Font size of a line; 1 = body text."""
        return line.size / self.body

    def is_bold(self, line: Line) -> bool:
        """Whether a line stands out from the text by its weight."""
        return line.bold and not self.bold_is_plain

    def is_code(self, line: Line) -> bool:
        """Whether a line stands out from the text by equally wide letters."""
        return line.mono and not self.mono_is_plain


def groups_of(lines: list[Line], scale: Scale) -> list[Group]:
    """Groups in reading order; what floats between the halves of a paragraph follows it."""
    return list(_joined(list(_grouped(lines, scale)), scale))


def is_list_item(text: str) -> bool:
    """Whether a line begins with a bullet or a number of a list."""
    first = text[:1]
    if first not in _ITEM_FIRST and text[1:2] not in (".", ")"):
        return False
    return _LIST_ITEM.match(text) is not None


def is_caption(text: str) -> bool:
    """Whether a line begins the caption of a figure or table."""
    return text[:1] in "FTAL图表圖" and _CAPTION.match(text) is not None


def is_contents(text: str) -> bool:
    """Whether a line is an entry of a table of contents: dots that lead to a page number."""
    if text[-1] not in _CONTENTS_ENDS or not any(dots in text for dots in (". .", "..", "··", "……")):
        return False
    return _LEADERS.search(text) is not None


def is_table(group: Group) -> bool:
    """Whether the lines are rows of a table without borders."""
    return len(group) > 1 and group[0].has_cells and all(line.parts for line in group)


def _grouped(lines: list[Line], scale: Scale) -> Iterator[Group]:
    """Groups inside one column of one page."""
    leading = _leading(lines)
    group = [lines[0]]
    for last, line in pairwise(lines):
        if last.region is line.region and _belong(group, line, leading, scale):
            group.append(line)
        else:
            yield group
            group = [line]
    yield group


def _leading(lines: list[Line]) -> float:
    """Usual distance between the tops of two lines, in font sizes."""
    steps = [
        step / a.size
        for a, b in pairwise(lines)
        if a.region is b.region and 0 < (step := b.top - a.top) < 3 * a.size
    ]
    # Lines of one paragraph are closer than all others, and most lines are inside of paragraphs.
    return sorted(steps)[int(0.35 * len(steps))] if steps else 1.2


def _belong(group: Group, line: Line, leading: float, scale: Scale) -> bool:
    """Whether `line` goes on the group above it in the same column."""
    last = group[-1]
    in_table = group[0].has_cells
    is_code = scale.is_code(group[0])
    lines_so_far = len(group)
    if last.table is not None or line.table is not None:
        return False
    step = line.top - last.top
    size = max(last.size, line.size)
    if step <= 0 or step > 2.2 * leading * size:
        return False
    celled = last.has_cells or line.has_cells
    if (
        (celled or in_table)
        and last.parts
        and line.parts
        and (_shares_gap(last, line) or (in_table and _lines_up(last, line)))
    ):
        return True
    if celled:
        # Wide spaces of a justified line, inside of a paragraph.
        if in_table and lines_so_far > 1:
            return False
        if ends_sentence(last.text) or not (_is_full(last) and _is_full(line)):
            return False
    elif in_table:
        return False
    if step > 1.3 * leading * size and not (last.mono and line.mono):
        return False
    if is_code and scale.is_code(line):
        return True
    if is_code or (scale.is_code(line) and (ends_sentence(last.text) or not _is_full(last))):
        return False
    return _same_paragraph(last, line, scale, lines_so_far)


def _shares_gap(last: Line, line: Line) -> bool:
    """Whether one gap between pieces goes on from one row to the next: the gap between two columns."""
    enough = 0.6 * line.size
    for a, b in pairwise(last.parts):
        for c, d in pairwise(line.parts):
            if min(b.x0, d.x0) - max(a.x1, c.x1) > enough:
                return True
    return False


def _lines_up(last: Line, line: Line) -> bool:
    """Whether at least two pieces of two rows begin, or end, at the same place."""
    begins = sum(1 for p in line.parts if any(abs(p.x0 - q.x0) < 3 for q in last.parts))
    ends = sum(1 for p in line.parts if any(abs(p.x1 - q.x1) < 3 for q in last.parts))
    return max(begins, ends) >= 2


def _is_full(line: Line) -> bool:
    """Whether a line reaches the right edge of its column."""
    return line.x1 > line.region.x1 - 0.12 * (line.region.x1 - line.region.x0)


def _same_paragraph(last: Line, line: Line, scale: Scale, lines_so_far: int) -> bool:
    text = line.text
    if text[0] in _SUPERSCRIPTS or is_contents(last.text):
        return False
    if is_list_item(text) and (ends_sentence(last.text) or not _mid_sentence(last, text)):
        return False
    continues = goes_on(text)
    # Recognised text has a size of its own on every line.
    if abs(line.size - last.size) > (0.3 if continues else 0.1) * scale.body:
        return False
    if (
        last.bold != line.bold
        and not continues
        and not scale.bold_is_plain
        and last.x1 < line.region.x1 - 2 * line.size
    ):
        return False
    region = line.region
    width = max(region.x1 - region.x0, 1.0)
    ended = ends_sentence(last.text)
    short = last.x1 < region.x1 - 0.2 * width
    if ended and (short or is_caption(text)):
        return False
    indented = line.x0 > region.x0 + 0.7 * line.size
    if indented and ended and last.x0 < line.x0 - 0.5 * line.size and lines_so_far > 1:
        return False
    # A first line that is set in by two characters opens a paragraph, also after a line that ends by chance.
    if (
        indented
        and not continues
        and is_cjk(text[:1])
        and 1.5 * line.size < line.x0 - last.x0 < 2.6 * line.size
    ):
        return False
    return not (short and last.x1 < region.x0 + 0.5 * width and not continues)


def _mid_sentence(last: Line, text: str) -> bool:
    """Whether the number that begins a line is just the next word of a sentence."""
    return (
        _is_full(last) and text[:1].isdigit() and not ends_sentence(last.text) and not is_list_item(last.text)
    )


def _joined(groups: list[Group], scale: Scale) -> Iterator[Group]:
    """Paragraphs that go on in the next column, on the next page or after a float become one."""
    index = 0
    while index < len(groups):
        group = groups[index]
        index += 1
        while True:
            floats: list[Group] = []
            ahead = index
            if _is_open(group[-1], scale):
                while ahead < len(groups) and len(floats) < _LOOK_AHEAD and _floats(groups[ahead], scale):
                    floats.append(groups[ahead])
                    ahead += 1
            if ahead >= len(groups) or not _goes_over(group, groups[ahead], floats, scale):
                break
            group = group + groups[ahead]
            groups[index : ahead + 1] = floats
            if floats:
                break
        yield group


def _is_open(line: Line, scale: Scale) -> bool:
    if line.table is not None or line.has_cells or scale.is_code(line) or ends_sentence(line.text):
        return False
    return scale.of(line) <= 1.08


def _floats(group: Group, scale: Scale) -> bool:
    """Whether a group may stand between two halves of a paragraph: a note, a table or a caption."""
    first = group[0]
    if first.table is not None or is_table(group) or is_caption(first.text):
        return True
    return scale.of(first) < _NOTE_SIZE and _NOTE.match(first.text) is not None


def _goes_over(group: Group, following: Group, floats: list[Group], scale: Scale) -> bool:
    last, first = group[-1], following[0]
    if last.region is first.region and not floats:
        return False
    if not _is_open(last, scale) or first.table is not None or first.has_cells:
        return False
    if abs(scale.of(last) - scale.of(first)) > 0.06 or scale.is_code(first):
        return False
    if is_list_item(first.text) or is_caption(first.text) or scale.is_bold(first) != scale.is_bold(last):
        return False
    if last.text.endswith(SOFT) or goes_on(first.text):
        return True
    if not _is_full(last):
        return False
    if is_cjk(first.text[:1]) and is_cjk(last.text[-1:]):
        return first.x0 < first.region.x0 + 1.5 * first.size
    # A full line without a sentence end goes on, whatever letter the next one begins with.
    return len(last.text) > 30 and last.page != first.page and first.x0 < first.region.x0 + first.size
