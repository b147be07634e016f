"""Which text of a page is its content.

Two opinions are joined. The library (trafilatura) says which text it would keep; that text is found again in
our own tree, so it keeps its place. The region that holds it is then read by our rules, which add what the
library leaves out of reference pages: captions, bare text, tables, definitions, code, sections it passed by.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import accumulate
from typing import Any

from ingest.parse.html_blocks import blocks_of
from ingest.parse.html_furniture import Sign, is_furniture, is_surely_furniture, sign_of
from ingest.parse.html_page import HEADING_TAGS, INLINE_TAGS, MIN_PROSE, PageText, weight_of
from ingest.parse.model import Block

_TEXT_TAGS = "p li dd dt td th pre blockquote figcaption caption summary"
_TEXT_BLOCKS = frozenset(_TEXT_TAGS.split()) | HEADING_TAGS
_WHOLE = frozenset({"pre", "figcaption", "caption", "table"})
_NOT_A_REGION = _TEXT_BLOCKS | INLINE_TAGS | {"table", "tbody", "thead", "tr", "ul", "ol", "dl"}
# The library's work grows faster than the page; beyond this our rules decide alone.
_LIBRARY_MAX_ELEMENTS = 30_000
_LIBRARY_MAX_DEPTH = 256
# With less text than this a loss is worse than some noise: all goes in that is not furniture.
_SMALL_PAGE = 1_000
_REGION_HOLDS = 0.9
_PROSE_HOLDS = 0.8
# The library missed the content when it kept less than a fifth of the text around the page's prose (the share
# at which it doubts itself) and its region lacks much of that prose.
_MIN_KEPT = 0.2
_MIN_REGION = 0.6


def main_nodes(tree: Any, page: PageText) -> set[int]:
    """Numbers of the text nodes that are content.

    Args:
        tree: the whole document, scripts and hidden text removed; not changed.
        page: its body.
    """
    kept = _library_choice(tree, page)
    is_small = page.weight(page.root) < _SMALL_PAGE
    kept -= _furniture_in(kept, 0.5 if is_small else 0.2, page)
    if is_small:
        return kept | _content_of(page.root, kept, page, min_prose=1)
    region = _region_of_prose(page)
    if kept:
        region = _better(_region_of(kept, page), region, page.size(kept), page)
    chosen = kept | _content_of(region, kept, page, min_prose=MIN_PROSE)
    chosen |= _headings_over(chosen, region, page)
    return chosen - (_orphan_headings(chosen, page) - kept)


def _library_choice(tree: Any, page: PageText) -> set[int]:
    if page.elements > _LIBRARY_MAX_ELEMENTS or page.depth > _LIBRARY_MAX_DEPTH:
        return set()
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

    try:
        document = _extractor()(tree)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, etree.LxmlError):
        return set()  # it catches what it expects; what it does not shall not lose the page
    if document is None:
        return set()
    return page.locate(part.itertext() for part in document.body)


@cache
def _extractor() -> Callable[..., Any]:
    from trafilatura import bare_extraction
    from trafilatura.settings import Extractor

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it logs each page that it finds nothing in
    # Without its second opinions (readability, justext): ours is the second, and knows Chinese.
    return partial(bare_extraction, options=Extractor(fast=True, comments=False))


def _region_of(kept: set[int], page: PageText) -> Any:
    """The smallest element that holds nearly all of the kept text."""
    sums = [0, *accumulate(len(page.packed(n)) if n in kept else 0 for n in range(len(page)))]

    def holds(element: Any) -> int:
        first, last = page.span(element)
        return sums[last] - sums[first]

    return _descend(page, holds, _REGION_HOLDS)


def _region_of_prose(page: PageText) -> Any:
    """The smallest element that holds most of the page's running text."""
    return _descend(page, page.prose, _PROSE_HOLDS)


def _descend(page: PageText, holds: Callable[[Any], int], share: float) -> Any:
    at = page.root
    enough = share * holds(at)
    while enough:
        inner = next((c for c in at if c in page and holds(c) >= enough), None)
        if inner is None or inner.tag in _NOT_A_REGION:
            break
        at = inner
    return at


def _better(of_library: Any, of_prose: Any, kept_chars: int, page: PageText) -> Any:
    missed = kept_chars < _MIN_KEPT * page.chars(of_prose)
    if missed and page.prose(of_library) < _MIN_REGION * page.prose(of_prose):
        return of_prose
    return of_library


def _furniture_in(kept: set[int], most: float, page: PageText) -> set[int]:
    """Of the library's choice, the parts up to a share of `most` that their names give away.

    Of a short page the library takes all.
    """
    found: set[int] = set()
    seen: set[Any] = set()
    most *= page.size(kept)
    for number in kept:
        element, is_tail = page.owners[number]
        at = element.getparent() if is_tail else element
        while at is not page.root and at not in seen:
            seen.add(at)
            if page.chars(at) > most:
                break
            if at.tag not in INLINE_TAGS and is_surely_furniture(at, page):
                found.update(range(*page.span(at)))
            at = at.getparent()
    return found & kept


def _content_of(region: Any, kept: set[int], page: PageText, *, min_prose: int) -> set[int]:
    """Text under `region` that is not furniture; where the library kept something, only what surrounds it."""
    counts = [0, *accumulate(n in kept for n in range(len(page)))]
    found: set[int] = set()
    open_elements = [region]
    while open_elements:
        at = open_elements.pop()
        first, last = page.span(at)
        held = counts[last] - counts[first]
        if held == last - first:
            continue
        if not held and at is not region:
            verdict = _verdict(at, page, min_prose)
            if verdict is not None:
                if verdict:
                    found.update(n for n in range(first, last) if page.packed(n))
                continue
        children = [child for child in at if child in page]
        found.update(n for n in _own_text(at, children, page, min_prose) if n not in kept)
        open_elements.extend(children)
    return found


def _own_text(element: Any, children: list[Any], page: PageText, min_prose: int) -> Iterator[int]:
    """Nodes that stand directly in `element` and read as prose, or as a cell or an item."""
    at, end = page.span(element)
    for child in [*children, None]:
        first, last = (end, end) if child is None else page.span(child)
        for number in range(at, first):
            least = 1 if element.tag in _TEXT_BLOCKS else min_prose
            if weight_of(page.packed(number)) >= least:
                yield number
        at = last


def _verdict(element: Any, page: PageText, min_prose: int) -> bool | None:
    """Whether an element without any kept text is content; None: some of it may be, look inside."""
    tag = element.tag
    if (
        tag in _WHOLE
        and sign_of(element) is not Sign.STRONG
        and page.link_chars(element) <= page.chars(element) / 2
    ):
        return True
    if is_furniture(element, page):
        return False
    if page.has_blocks(element):
        return None
    return tag in _TEXT_BLOCKS or page.weight(element) >= min_prose


def _headings_over(chosen: set[int], region: Any, page: PageText) -> set[int]:
    """Headings that are links, over text that is content: entries of a list, not a menu."""
    found: set[int] = set()
    for heading in region.iter(*HEADING_TAGS):
        if heading not in page:
            continue
        first, last = page.span(heading)
        if first < last and last in chosen and first not in chosen and sign_of(heading) is not Sign.STRONG:
            found.update(range(first, last))
    return found


def _orphan_headings(chosen: set[int], page: PageText) -> set[int]:
    """Headings whose text was left out."""
    orphans: set[int] = set()
    following = True  # whether the node after the current one is in
    for number in range(len(page) - 1, -1, -1):
        is_in = number in chosen
        if is_in and not following and _is_heading(number, page):
            orphans.add(number)
            is_in = False
        following = is_in
    return orphans


def _is_heading(number: int, page: PageText) -> bool:
    element, is_tail = page.owners[number]
    holder = element.getparent() if is_tail else element
    while holder is not None and holder.tag in INLINE_TAGS:
        holder = holder.getparent()
    return holder is not None and holder.tag in HEADING_TAGS


def headline_of(root: Any, title: str) -> Block | None:
    """The page's only top heading; of several, the only one that its title repeats."""
    found = [blocks[0] for h1 in root.iter("h1") if (blocks := blocks_of(h1))]
    if len(found) > 1:
        found = [block for block in found if block.text and block.text in title]
    return found[0] if len(found) == 1 else None
