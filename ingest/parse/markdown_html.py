"""HTML inside Markdown: its text and table rows, without what people cannot see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import regex
from markdown_it.token import Token

from ingest.parse.markdown_inline import SourceLines
from ingest.parse.model import Block, BlockKind, Fragment

_UNSEEN = frozenset({"script", "style", "template", "noscript", "head", "title"})
_VOID_NAMES = "area base br col embed hr img input link meta param source track wbr"
_VOID = frozenset(_VOID_NAMES.split())
_INLINE_NAMES = (
    "a abbr b bdi bdo big cite code em font i ins kbd mark q s samp small span strong sub sup u wbr img"
)
_INLINE = frozenset(_INLINE_NAMES.split())
_HIDING = regex.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?:font-size|opacity)\s*:\s*0(?:\.0*)?(?:px|pt|em|rem|%)?\s*(?:;|$)",
    regex.IGNORECASE,
)
_TABLES_FROM = 1_000_000  # far above the numbers of the document's own tables


class HtmlPieces:
    """Reads `html_block` tokens one after the other; an element may stay open from one to the next."""

    def __init__(self, lines: SourceLines, *, keep_hidden: bool) -> None:
        self._reader = _Reader(lines, keep_hidden=keep_hidden)

    @property
    def hidden_chars(self) -> int:
        """Characters left out because people cannot see them."""
        return self._reader.hidden_chars

    def hides(self, chars: int) -> bool:
        """Whether text of `chars` characters that stands here is inside a hidden element; counts it."""
        return self._reader.hides(chars)

    def blocks(self, token: Token) -> Iterator[Block]:
        """Blocks of one piece of HTML."""
        return self._reader.read(token.content, token.map[0] if token.map else 0)


class _Reader(HTMLParser):
    def __init__(self, lines: SourceLines, *, keep_hidden: bool) -> None:
        super().__init__(convert_charrefs=False)
        self._lines = lines
        self._keep_hidden = keep_hidden
        self._hidden: list[str] = []  # open elements from the outermost hidden one on
        self.hidden_chars = 0
        self._first_line = 0
        self._cursor = 0
        self._done: list[Block] = []
        self._open: list[Fragment] = []
        self._cells = 0
        self._table = _TABLES_FROM
        self._head = False
        self._in_row = False

    def hides(self, chars: int) -> bool:
        if self._hidden:
            self.hidden_chars += chars
        return bool(self._hidden)

    def read(self, html: str, first_line: int) -> Iterator[Block]:
        self.reset()
        self._first_line = first_line
        self._cursor = self._lines.start_of(first_line)
        self.feed(html)
        self.close()
        self._end_block()
        done, self._done = self._done, []
        yield from done

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden or tag in _UNSEEN or (not self._keep_hidden and _hides(attrs)):
            if tag not in _VOID:
                self._hidden.append(tag)
            return
        if tag == "table":
            self._end_block()
            self._table += 1
        elif tag == "tr":
            self._end_block()
            self._in_row, self._head, self._cells = True, True, 0
        elif tag in ("td", "th"):
            self._head = self._head and tag == "th"
            self._cells += 1
            self._open.append(Fragment("", " | "))
        elif tag not in _INLINE and not self._in_row:
            self._end_block()

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            if tag in self._hidden:
                del self._hidden[len(self._hidden) - 1 - self._hidden[::-1].index(tag) :]
            return
        if tag in ("tr", "table") or (tag not in _INLINE and not self._in_row):
            self._end_block()

    def handle_data(self, data: str) -> None:
        line = self._first_line + self.getpos()[0] - 1
        for number, text in enumerate(data.split("\n"), line):
            if not text.strip():
                continue
            if self._hidden:
                self.hidden_chars += 0 if self._hidden[0] in _UNSEEN else len(text.strip())
                continue
            start = self._lines.text.find(
                text, max(self._cursor, self._lines.start_of(number)), self._lines.start_of(number + 1)
            )
            self._add(
                Fragment(text, "" if number == line else " ", start if start >= 0 else None, number + 1)
            )
            self._cursor = max(self._cursor, start + len(text))

    def handle_entityref(self, name: str) -> None:
        self._character(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._character(f"&#{name};")

    def _character(self, written: str) -> None:
        if self._hidden:
            return
        line = self._first_line + self.getpos()[0]
        start = self._lines.text.find(written, self._cursor, self._lines.start_of(line))
        if start < 0:
            self._add(Fragment(unescape(written), "", None, line))
            return
        self._add(Fragment(unescape(written), "", start, line, written=len(written)))
        self._cursor = start + len(written)

    def _add(self, fragment: Fragment) -> None:
        last = self._open[-1] if self._open else None
        if last is not None and last.glue == " | " and not last.text:
            self._open[-1] = replace(fragment, glue=" | ")
        else:
            self._open.append(fragment)

    def _end_block(self) -> None:
        fragments, self._open = tuple(self._open), []
        in_row, self._in_row = self._in_row, False
        if not any(f.text.strip() for f in fragments):
            return
        if in_row:
            row = Block(
                BlockKind.TABLE_ROW,
                fragments,
                table=self._table,
                is_table_header=self._head and self._cells > 1,
            )
            self._done.append(row)
        else:
            self._done.append(Block(BlockKind.PARAGRAPH, fragments))


def _hides(attributes: list[tuple[str, str | None]]) -> bool:
    return any(
        name == "hidden" or (name == "style" and value is not None and _HIDING.search(value) is not None)
        for name, value in attributes
    )
