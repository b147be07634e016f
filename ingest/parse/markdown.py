"""CommonMark with tables and footnotes; markup is dropped, text keeps its place in the source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin

from ingest.parse.charset import decode
from ingest.parse.front_matter import read_front_matter
from ingest.parse.markdown_html import HtmlPieces
from ingest.parse.markdown_inline import InlineText, SourceLines
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions, ParseWarning
from ingest.parse.sniff import MARKDOWN
from ingest.parse.within import check_length


def parse_markdown(content: bytes, options: ParseOptions, media_type: str = MARKDOWN) -> ParsedDocument:
    """Read Markdown of any encoding."""
    decoded = decode(content)
    check_length(len(decoded.text), options.limits)
    front = read_front_matter(decoded.text)
    walk = _Walk(front.body, keep_hidden=options.keep_hidden)
    blocks = tuple(walk.blocks(_parser().parse(front.body)))
    warnings = decoded.warnings
    if walk.hidden_chars:
        detail = f"{walk.hidden_chars} characters that people cannot see were left out."
        warnings = (*warnings, ParseWarning("hidden_text", detail))
    return ParsedDocument(
        media_type=media_type,
        blocks=blocks,
        title=front.title,
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        warnings=warnings,
        properties=front.properties,
    )


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    parser.use(footnote_plugin, inline=False)
    # Escapes and entities stay tokens of their own, so that each piece of text stands verbatim in the source;
    # notes stay where they are written.
    return parser.disable(["text_join", "footnote_tail"])


class _Walk:
    """Turns markdown-it's token stream into blocks."""

    def __init__(self, source: str, *, keep_hidden: bool) -> None:
        self._lines = SourceLines(source)
        self._inline = InlineText(self._lines)
        self._html = HtmlPieces(self._lines, keep_hidden=keep_hidden)
        self._tables = 0
        self._row: list[Fragment] | None = None
        self._in_head = False
        self._heading = 0
        self._items: list[tuple[int, str] | None] = []  # open list items: line and number, None once shown
        self._depth = 0

    @property
    def hidden_chars(self) -> int:
        """Characters left out because people cannot see them."""
        return self._html.hidden_chars

    def blocks(self, tokens: list[Token]) -> Iterator[Block]:
        for token in tokens:
            self._structure(token)
            if token.type == "tr_close" and self._row is not None:
                row, self._row = tuple(self._row), None
                yield Block(BlockKind.TABLE_ROW, row, table=self._tables, is_table_header=self._in_head)
            elif token.type == "inline":
                yield from self._text(token)
            elif token.type in ("fence", "code_block"):
                yield from self._code(token)
            elif token.type == "html_block":
                yield from self._html.blocks(token)

    def _structure(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self._depth += 1
            case "bullet_list_close" | "ordered_list_close":
                self._depth -= 1
            case "list_item_open":
                label = f"{token.info}{token.markup}" if token.info else ""
                self._items.append((token.map[0] if token.map else 0, label))
            case "list_item_close":
                self._items.pop()
            case "heading_open":
                self._heading = int(token.tag[1:])
            case "heading_close":
                self._heading = 0
            case "table_open":
                self._tables += 1
            case "tr_open":
                self._row = []
            case "thead_open" | "thead_close":
                self._in_head = token.type == "thead_open"
            case _:
                pass

    def _text(self, token: Token) -> Iterator[Block]:
        fragments = self._inline.fragments(token)
        if self._html.hides(sum(len(f.text) for f in fragments)):
            return
        if self._row is not None:
            self._row.extend(_cell(fragments))
        elif self._heading:
            yield Block(BlockKind.HEADING, fragments, level=self._heading)
        elif self._items and self._items[-1] is not None:
            line, label = self._items[-1]
            self._items[-1] = None  # what follows in the same item is a paragraph of its own
            if label and fragments:
                first = replace(fragments[0], glue=" ")
                fragments = (self._inline.label(line, label), first, *fragments[1:])
            yield Block(BlockKind.LIST_ITEM, fragments, level=self._depth - 1)
        else:
            yield Block(BlockKind.PARAGRAPH, fragments)

    def _code(self, token: Token) -> Iterator[Block]:
        first = (token.map[0] if token.map else 0) + (1 if token.type == "fence" else 0)
        if self._html.hides(len(token.content)):
            return
        for number, line in enumerate(token.content.split("\n"), first):
            if line.strip():
                start = self._lines.find_in_line(line, number)
                yield Block(BlockKind.CODE, (Fragment(line, "", start, number + 1),))


def _cell(fragments: tuple[Fragment, ...]) -> Iterator[Fragment]:
    """The fragments of one cell; the first carries the bar that parts it from the cell before."""
    if not fragments:
        yield Fragment("", " | ")
    for n, fragment in enumerate(fragments):
        yield fragment if n else replace(fragment, glue=" | ")
