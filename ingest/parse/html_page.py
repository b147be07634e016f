"""The text of a page in document order, with sums that any element can ask for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

_INLINE = (
    "a abbr acronym b bdi bdo big br cite code data del dfn em font i img ins kbd label mark math nobr q rb "
    "rp rt ruby s samp small span strike strong sub sup time tt u var wbr"
)
INLINE_TAGS = frozenset(_INLINE.split())
HEADING_TAGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
# A link around a piece of code is a reference, not a menu.
_CODE_TAGS = frozenset({"pre", "code", "kbd", "samp"})
MIN_PROSE = 25
"""Weight from which a run of text reads as prose rather than as a label."""
# Shorter pieces occur by chance inside others; they must fill whole text nodes.
_SURE_CHARS = 16
_ANCHOR_CHARS = 24


def weight_of(text: str) -> int:
    """How much `text` says: a Chinese character counts as three Latin letters (its bytes in UTF-8)."""
    return len(text.encode("utf-8", "replace"))


class PageText:
    """The text nodes under `root` that are not blank, numbered from 0.

    An element's text is a range of nodes, so its size, prose and share of links cost two look-ups each.

    Attributes:
        root: the element that was read.
        owners: per node, the element it hangs on, and whether it follows that element (`tail`).
        depth: of the deepest element.
    """

    def __init__(self, root: Any) -> None:
        self.root = root
        self.owners: list[tuple[Any, bool]] = []
        self.depth = 0
        self._packed: list[str] = []
        self._is_link: list[bool] = []
        # Per element: text nodes, links and block elements before its start and before its end.
        self._first: dict[Any, tuple[int, int, int]] = {}
        self._last: dict[Any, tuple[int, int, int]] = {}
        self._read(root)
        self._sum_up()

    def _sum_up(self) -> None:
        sizes = [len(p) for p in self._packed]
        linked = [size if is_link else 0 for size, is_link in zip(sizes, self._is_link, strict=True)]
        self._starts = [0, *accumulate(sizes)]
        self._linked = [0, *accumulate(linked)]
        self._prose = [0, *accumulate(map(self._prose_of, self._packed, self._is_link))]
        self._text = "".join(self._packed)

    def _read(self, root: Any) -> None:
        from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

        nodes = links = blocks = in_link = in_code = depth = 0
        firsts, lasts = self._first, self._last
        owners, texts, linked = self.owners, self._packed, self._is_link
        for event, element in etree.iterwalk(root, events=("start", "end")):
            tag = element.tag
            if event == "start":
                firsts[element] = (nodes, links, blocks)
                depth += 1
                if depth > self.depth:
                    self.depth = depth
                if tag not in INLINE_TAGS:
                    blocks += 1
                if tag in _CODE_TAGS:
                    in_code += 1
                elif tag == "a" and _leads_away(element):
                    in_link += 1
                    links += 1
                text = element.text
            else:
                lasts[element] = (nodes, links, blocks)
                depth -= 1
                if tag in _CODE_TAGS:
                    in_code -= 1
                elif tag == "a" and _leads_away(element):
                    in_link -= 1
                text = None if element is root else element.tail
            if text and (packed := _pack(text)):
                nodes += 1
                owners.append((element, event == "end"))
                texts.append(packed)
                linked.append(in_link > 0 and not in_code)

    @staticmethod
    def _prose_of(packed: str, is_link: bool) -> int:
        weight = 0 if is_link else weight_of(packed)
        return weight if weight >= MIN_PROSE else 0

    def forget(self, elements: Iterable[Any]) -> None:
        """Count the text inside these elements no more; they leave the tree."""
        for element in elements:
            for number in range(*self.span(element)):
                self._packed[number] = ""
        self._sum_up()

    def __len__(self) -> int:
        return len(self.owners)

    def __contains__(self, element: Any) -> bool:
        return element in self._last

    @property
    def elements(self) -> int:
        """Number of elements, `root` among them."""
        return len(self._last)

    def packed(self, number: int) -> str:
        """The text of a node without white space."""
        return self._packed[number]

    def span(self, element: Any) -> tuple[int, int]:
        """Numbers of the first node inside `element` and of the first one after it."""
        return self._first[element][0], self._last[element][0]

    def chars(self, element: Any) -> int:
        """Characters inside `element`, white space apart."""
        first, last = self.span(element)
        return self._starts[last] - self._starts[first]

    def link_chars(self, element: Any) -> int:
        """Characters inside `element` that are links."""
        first, last = self.span(element)
        return self._linked[last] - self._linked[first]

    def prose(self, element: Any) -> int:
        """Weight of the running text inside `element`: neither links nor labels."""
        first, last = self.span(element)
        return self._prose[last] - self._prose[first]

    def links(self, element: Any) -> int:
        """Links inside `element` or around it."""
        return self._last[element][1] - self._first[element][1]

    def has_blocks(self, element: Any) -> bool:
        """Whether block-level elements stand inside `element`."""
        inside = self._last[element][2] - self._first[element][2]
        return inside > (element.tag not in INLINE_TAGS)

    def weight(self, element: Any) -> int:
        """Weight of all text inside `element`."""
        first, last = self.span(element)
        return weight_of(self._text[self._starts[first] : self._starts[last]])

    def text(self, element: Any) -> str:
        """All text inside `element` without white space."""
        first, last = self.span(element)
        return self._text[self._starts[first] : self._starts[last]]

    def size(self, numbers: Iterable[int]) -> int:
        """Characters of the nodes with these numbers."""
        return sum(len(self._packed[n]) for n in numbers)

    def keep(self, numbers: set[int]) -> None:
        """Blank every other node in the tree."""
        for number, (element, is_tail) in enumerate(self.owners):
            if number in numbers or not self._packed[number]:
                continue
            text = element.tail if is_tail else element.text
            blank = "\n" * text.count("\n") or " "  # lines are counted by them
            if is_tail:
                element.tail = blank
            else:
                element.text = blank

    def locate(self, passages: Iterable[Iterator[str]]) -> set[int]:
        """Numbers of the nodes that hold the given text.

        Args:
            passages: in about document order; each gives the runs of one paragraph, heading or table.
        """
        found: set[int] = set()
        cursor = 0
        for passage in passages:
            runs = [packed for run in passage if (packed := _pack(run))]
            if runs:
                cursor = self._mark("".join(runs), cursor, found) or self._mark_runs(runs, cursor, found)
        return found

    def _mark_runs(self, runs: list[str], cursor: int, found: set[int]) -> int:
        """Something inside the paragraph was left out: its runs stand apart."""
        for run in runs:
            cursor = self._mark(run, cursor, found) or self._mark_ends(run, cursor, found)
        return cursor

    def _mark_ends(self, run: str, cursor: int, found: set[int]) -> int:
        """Characters inside the run were changed: find its first and its last ones."""
        if len(run) < 2 * _ANCHOR_CHARS:
            return cursor
        first = self._text.find(run[:_ANCHOR_CHARS], cursor)
        last = self._text.find(run[-_ANCHOR_CHARS:], first, first + 2 * len(run)) if first >= 0 else -1
        return self._cover(first, last + _ANCHOR_CHARS, found) if last >= 0 else cursor

    def _mark(self, text: str, cursor: int, found: set[int]) -> int:
        """Mark the nodes of the next occurrence; the place after it, or 0 when there is none."""
        for start in (cursor, 0) if cursor else (0,):
            at = self._text.find(text, start)
            while at >= 0 and len(text) < _SURE_CHARS and not self._is_whole(at, len(text)):
                at = self._text.find(text, at + 1)
            if at >= 0:
                return max(cursor, self._cover(at, at + len(text), found))
        return 0

    def _is_whole(self, at: int, length: int) -> bool:
        first = bisect_left(self._starts, at)
        last = bisect_left(self._starts, at + length)
        return self._starts[first] == at and self._starts[last] == at + length

    def _cover(self, start: int, end: int, found: set[int]) -> int:
        nodes = range(bisect_right(self._starts, start) - 1, bisect_left(self._starts, end))
        found.update(n for n in nodes if self._packed[n])
        return end


def _pack(text: str) -> str:
    return "".join(text.split())


def _leads_away(anchor: Any) -> bool:
    """Whether it is a link at all, and not a heading that links to itself."""
    target = anchor.get("href")
    if target is None:
        return False
    return not (target.startswith("#") and anchor.getparent().tag in HEADING_TAGS)
