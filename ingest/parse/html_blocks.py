"""An element of an HTML tree → blocks."""

from __future__ import annotations

from typing import Any

from ingest.parse.html_lines import Lines
from ingest.parse.html_page import HEADING_TAGS, INLINE_TAGS
from ingest.parse.html_table import is_layout, table_blocks
from ingest.parse.model import Block, BlockKind, Fragment

_LISTS = frozenset({"ul", "ol", "menu", "dir", "dl"})
_SKIPPED = frozenset({"head", "title"})
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_INDENTS = ("\u3000", "\xa0\xa0")


def blocks_of(root: Any) -> list[Block]:
    """Blocks under `root` in document order; `paragraph` counts them from 0.

    Args:
        root: without scripts and without what should not be read; formulas written out.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

    walk = _Walk()
    context = etree.iterwalk(root, events=("start", "end"))
    for event, element in context:
        if event == "start":
            if walk.enter(element):
                context.skip_subtree()
        else:
            walk.leave(element, is_root=element is root)
    walk.flush()
    return walk.blocks


class _Counter:
    """Numbers of the items of one list."""

    def __init__(self, element: Any) -> None:
        self.is_ordered = element.tag == "ol"
        self.style = element.get("type") or "1"
        self.step = -1 if element.get("reversed") is not None else 1
        first = sum(1 for c in element if c.tag == "li") if self.step < 0 else 1
        self.next = _integer(element.get("start"), first)

    def mark(self, item: Any) -> str:
        """The number as shown before `item`; empty in a list without numbers."""
        if not self.is_ordered or item.tag != "li":
            return ""
        number = _integer(item.get("value"), self.next)
        self.next = number + self.step
        return f"{_numeral(number, self.style)}."


class _Walk:
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._lines = Lines()
        self._lists: list[_Counter] = []
        self._heading = 0
        self._item: tuple[int, str] | None = None  # level and number of the item whose text is to come
        self._tables = 0
        self._after_break = False

    def enter(self, element: Any) -> bool:
        """Take the start of an element; True when the walk shall not go inside."""
        tag = element.tag
        self._lines.reach(element)
        if tag in INLINE_TAGS:
            self._enter_inline(element)
            return False
        self.flush()
        if tag in _SKIPPED or tag == "pre" or (tag == "table" and not is_layout(element)):
            if tag == "pre":
                self._code(element)
            elif tag == "table":
                self._table(element)
            return True
        if tag in HEADING_TAGS:
            self._heading = int(tag[1])
        elif tag in _LISTS:
            self._lists.append(_Counter(element))
        elif tag in ("li", "dt", "dd"):
            self._begin_item(element)
        self._add(element.text)
        return False

    def leave(self, element: Any, *, is_root: bool) -> None:
        """Take the end of an element and the text after it."""
        tag = element.tag
        if tag == "q":
            self._add("”")
        if tag not in INLINE_TAGS:
            self.flush()
            if tag in HEADING_TAGS:
                self._heading = 0
            elif tag in _LISTS and self._lists:
                self._lists.pop()
            elif tag in ("li", "dt", "dd"):
                self._item = None
        if not is_root:
            self._add(element.tail)

    def flush(self) -> None:
        """End the current block."""
        self._after_break = False
        fragments = self._lines.take()
        if not fragments:
            return
        kind, level = BlockKind.PARAGRAPH, 0
        if self._heading:
            kind, level = BlockKind.HEADING, self._heading
        elif self._item is not None:
            kind = BlockKind.LIST_ITEM
            level, mark = self._item
            self._item = None
            if mark:
                fragments = [
                    Fragment(mark, "", line=fragments[0].line),
                    _spaced(fragments[0]),
                    *fragments[1:],
                ]
        self._put(kind, fragments, level)

    def _put(self, kind: BlockKind, fragments: list[Fragment], level: int = 0) -> None:
        self.blocks.append(Block(kind, tuple(fragments), level, paragraph=len(self.blocks)))

    def _enter_inline(self, element: Any) -> None:
        if element.tag == "br":
            self._break()
        elif element.tag == "q":
            self._add("“")
        self._add(element.text)

    def _begin_item(self, element: Any) -> None:
        level = max(0, len(self._lists) - 1) + (element.tag == "dd")
        self._item = (level, self._lists[-1].mark(element) if self._lists else "")

    def _add(self, text: str | None) -> None:
        if not text:
            return
        if not text.isspace():
            if self._after_break and text.lstrip(" \t\r\n").startswith(_INDENTS):
                self.flush()  # a paragraph made of a line break and an indent
            self._after_break = False
        self._lines.add(text)

    def _break(self) -> None:
        """One `<br>` is a space, two end the paragraph."""
        if self._after_break:
            self.flush()
        else:
            self._lines.part()
            self._after_break = True

    def _code(self, element: Any) -> None:
        first = self._lines.line
        lines = "".join(_code_texts(element)).expandtabs(4).split("\n")
        self._lines.line += len(lines) - 1
        for number, line in enumerate(lines):
            if line.strip():
                self._put(BlockKind.CODE, [Fragment(line.rstrip(), "", line=first + number)])

    def _table(self, element: Any) -> None:
        blocks, self._tables, line = table_blocks(element, self._tables, self._lines.line)
        self._lines.line = max(self._lines.line, line)
        for block in blocks:
            self.blocks.append(
                Block(
                    block.kind,
                    block.fragments,
                    block.level,
                    len(self.blocks),
                    block.table,
                    block.is_table_header,
                )
            )


def _code_texts(element: Any) -> list[str]:
    if next(element.iter("br"), None) is None:
        return list(element.itertext())
    texts = [element.text or ""]
    for inner in element.iterdescendants():
        texts.append(("\n" if inner.tag == "br" else "") + (inner.text or ""))
        texts.append(inner.tail or "")
    return texts


def _spaced(fragment: Fragment) -> Fragment:
    return Fragment(fragment.text, " ", line=fragment.line)


def _integer(text: str | None, otherwise: int) -> int:
    try:
        return int(text) if text and len(text) < 10 else otherwise
    except ValueError:
        return otherwise


def _numeral(number: int, style: str) -> str:
    if style in ("a", "A") and 0 < number <= 26:
        letter = chr(ord("a") + number - 1)
        return letter if style == "a" else letter.upper()
    if style in ("i", "I") and 0 < number < 4000:
        text = ""
        for value, sign in _ROMAN:
            while number >= value:
                text += sign
                number -= value
        return text if style == "i" else text.upper()
    return str(number)
