"""An element of an HTML tree → blocks."""

from __future__ import annotations

from typing import Any

import regex

from ingest.parse.model import Block, BlockKind, Fragment

_HEADINGS = {f"h{n}": n for n in range(1, 7)}
_BLOCK_TAGS = (
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure "
    "footer form header hr html legend li main nav ol p section "
    "summary table tbody td tfoot th thead tr ul pre menu"
)
_BLOCKS = frozenset(_BLOCK_TAGS.split()) | frozenset(_HEADINGS)
_SKIPPED = frozenset({"script", "style", "head", "template", "noscript", "svg", "iframe", "title"})
_WIDE = r"[\p{Han}\u3000-\u303f\uff01-\uff5e]"
_WRAP_BETWEEN_CJK = regex.compile(rf"(?<={_WIDE})\s*\n\s*(?={_WIDE})")


def blocks_of(root: Any) -> list[Block]:
    """Blocks under `root` in document order; `paragraph` counts them from 0."""
    walk = _Walk()
    walk.visit(root, 0)
    walk.flush()
    return walk.blocks


class _Walk:
    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._text: list[str] = []
        self._line: int | None = None
        self._kind = BlockKind.PARAGRAPH
        self._level = 0
        self._tables = 0
        self._after_break = False

    def visit(self, element: Any, list_depth: int) -> None:
        """Add the element's text and children; block-level elements stand alone."""
        tag = element.tag
        if not isinstance(tag, str) or tag in _SKIPPED:
            return
        if tag == "br":
            self._break()
            return
        if tag == "pre":
            self._code(element)
            return
        if tag == "table" and not _is_layout(element):
            self._table(element)
            return
        is_block = tag in _BLOCKS
        if is_block:
            self.flush()
            self._begin(tag, list_depth)
        inner_depth = list_depth + (tag in ("ul", "ol", "menu"))
        self._add(element.text, element.sourceline)
        for child in element:
            self.visit(child, inner_depth)
            self._add(child.tail, child.sourceline)
        if is_block:
            self.flush()

    def flush(self) -> None:
        """End the current block."""
        text = _WRAP_BETWEEN_CJK.sub("", "".join(self._text)).strip()
        if text:
            fragment = Fragment(text, "", line=self._line)
            self.blocks.append(Block(self._kind, (fragment,), self._level, paragraph=len(self.blocks)))
            if self._kind is BlockKind.LIST_ITEM:
                self._kind = BlockKind.PARAGRAPH
        self._text = []
        self._line = None
        self._after_break = False

    def _begin(self, tag: str, list_depth: int) -> None:
        if tag in _HEADINGS:
            self._kind, self._level = BlockKind.HEADING, _HEADINGS[tag]
        elif tag in ("li", "dt", "dd"):
            self._kind, self._level = BlockKind.LIST_ITEM, max(0, list_depth - 1)
        elif self._kind is not BlockKind.LIST_ITEM:
            self._kind, self._level = BlockKind.PARAGRAPH, 0  # a <p> inside an <li> is still the item
        if self._kind is BlockKind.HEADING and tag not in _HEADINGS:
            self._kind, self._level = BlockKind.PARAGRAPH, 0

    def _add(self, text: str | None, line: int | None) -> None:
        if not text:
            return
        if text.strip():
            self._after_break = False
            if self._line is None:
                self._line = line
        self._text.append(text)

    def _break(self) -> None:
        """One `<br>` is a space, two end the paragraph."""
        if self._after_break:
            self.flush()
            self._kind, self._level = BlockKind.PARAGRAPH, 0
            return
        self._text.append(" ")
        self._after_break = True

    def _code(self, element: Any) -> None:
        self.flush()
        first = element.sourceline
        for number, line in enumerate("".join(element.itertext()).split("\n")):
            if line.strip():
                fragment = Fragment(line.rstrip(), "", line=None if first is None else first + number)
                self.blocks.append(Block(BlockKind.CODE, (fragment,), paragraph=len(self.blocks)))

    def _table(self, table: Any) -> None:
        self.flush()
        self._tables += 1
        for caption in table.findall("caption"):
            self._kind, self._level = BlockKind.PARAGRAPH, 0
            self._add(_inline(caption), caption.sourceline)
            self.flush()
        rows = [r for r in table.iter("tr") if any(_inline(c).strip() for c in _cells(r))]
        for index, row in enumerate(rows):
            cells = _cells(row)
            heads = sum(c.tag == "th" for c in cells)
            parent = row.getparent()
            in_head = parent is not None and parent.tag == "thead"
            header = len(rows) > 1 and index < 2 and (in_head or (index == 0 and heads == len(cells) > 1))
            fragments = tuple(Fragment(_inline(c), " | ", line=c.sourceline) for c in cells)
            self.blocks.append(
                Block(
                    BlockKind.TABLE_ROW,
                    fragments,
                    paragraph=len(self.blocks),
                    table=self._tables,
                    is_table_header=header,
                )
            )


def _cells(row: Any) -> list[Any]:
    return [c for c in row if c.tag in ("td", "th")]


def _inline(element: Any) -> str:
    text = " ".join(t.strip() for t in element.itertext() if t.strip())
    return _WRAP_BETWEEN_CJK.sub("", text)


def _is_layout(table: Any) -> bool:
    """Whether the table places parts of a page, or holds other tables, rather than values."""
    if table.get("role") in ("presentation", "none"):
        return True
    if next(table.iter("h1", "h2", "h3", "h4"), None) is not None or sum(1 for _ in table.iter("table")) > 1:
        return True
    cells = list(table.iter("td", "th"))
    if len(cells) <= 1:
        return True
    return any(len("".join(c.itertext())) > 600 for c in cells)
