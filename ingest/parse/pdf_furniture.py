"""Running headers, footers and page numbers: lines at page edges that do not belong to the text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from ingest.parse.pdf_layout import Line
from ingest.parse.pdf_words import PageText

_EDGE = 0.1  # share of the page height in which headers and footers stand
_EDGE_LINES = 3
_REPEATED_SHARE = 0.3
_NEAR = 6  # pages: a running title of a chapter comes again so soon, also on facing pages
_NUMBER = re.compile(r"(?<![A-Za-z\d.])(?:\d{1,5}|[ivxlc]{1,7})(?![A-Za-z\d])", re.IGNORECASE)
_PAGE_NUMBER = re.compile(
    r"[-–—·•|~〜\s]*(?:page|p\.|seite|第)?\s*(?:\d{1,5}|[ivxlc]{1,7})\s*(?:页|頁|ページ)?"
    r"(?:\s*(?:/|of|[,，|]?\s*[共总總])\s*\d{1,5}\s*(?:页|頁)?)?[-–—·•|~〜\s]*",
    re.IGNORECASE,
)
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}

Key = tuple[bool, str]
"""Whether a line stands at the top, and its text, perhaps with a number as its distance from the page's."""


def without_furniture(by_page: list[list[Line]], pages: list[PageText]) -> list[Line]:
    """All lines but those that repeat at page edges, where a number may count the pages."""
    edges = [_edge_lines(lines, page) for lines, page in zip(by_page, pages, strict=True)]
    seen: dict[Key, list[int]] = defaultdict(list)
    for index, keys in enumerate(edges):
        for key in {key for keys_of_line in keys.values() for key in keys_of_line}:
            seen[key].append(index)
    kept: list[Line] = []
    for index, (lines, keys) in enumerate(zip(by_page, edges, strict=True)):
        if not keys:
            kept.extend(lines)
            continue
        for at, line in enumerate(lines):
            if at in keys and (
                any(_repeats(seen[key], index, len(pages)) for key in keys[at])
                or _is_page_number(line.text, pages[index].number)
            ):
                continue
            kept.append(line)
    return kept


def _edge_lines(lines: list[Line], page: PageText) -> dict[int, list[Key]]:
    """Index of each of the outermost lines near an edge → its keys."""
    high, low = _EDGE * page.height, (1 - _EDGE) * page.height
    upright = page.turn == 0 and not page.others
    tops: list[tuple[float, int]] = []
    bottoms: list[tuple[float, int]] = []
    for index, line in enumerate(lines):
        top, bottom = line.top, line.bottom
        if not upright:
            box = line.box
            top, bottom = box.top, box.bottom
        if bottom < high:
            tops.append((top, index))
        elif top > low:
            bottoms.append((-bottom, index))
    return {
        index: [(at_top, key) for key in _keys(lines[index].text.strip(), page.number)]
        for at_top, near in ((True, tops), (False, bottoms))
        for _, index in sorted(near)[:_EDGE_LINES]
    }


def _keys(text: str, page: int) -> Iterator[str]:
    """The text as it is, if it has letters, and with each of its numbers relative to the page."""
    if any(c.isalpha() for c in text):
        yield text.casefold()
    for match in _NUMBER.finditer(text):
        yield f"{text[: match.start()]}<{_value(match.group()) - page}>{text[match.end() :]}".casefold()


def _value(number: str) -> int:
    if number.isdigit():
        return int(number)
    values = [_ROMAN[letter] for letter in number.lower()]
    return sum(-v if v < max(values[i:], default=0) else v for i, v in enumerate(values))


def _repeats(seen: list[int], page: int, pages: int) -> bool:
    """Whether a line that stands at the edge of the pages `seen` is a running one on `page`."""
    if len(seen) < 2:
        return False
    if len(seen) >= max(2, -int(-pages * _REPEATED_SHARE // 1)):
        return True
    return any(other != page and abs(other - page) <= _NEAR for other in seen)


def _is_page_number(text: str, page: int) -> bool:
    """Whether a line at an edge says by itself that it is a page number."""
    text = text.strip()
    if not _PAGE_NUMBER.fullmatch(text):
        return False
    return not text.isalnum() or any(word in text for word in ("页", "頁", "ページ")) or text == str(page)
