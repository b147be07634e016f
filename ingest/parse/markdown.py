"""CommonMark with tables; markup is dropped, text keeps its offset in the source."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ingest.parse.charset import decode
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.sniff import MARKDOWN
from ingest.parse.text import glue_between, lines_of
from ingest.parse.within import check_length

_FRONT_MATTER = regex.compile(r"\A---[ \t]*\r?\n(.*?\r?\n)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", regex.DOTALL)
_FRONT_TITLE = regex.compile(r"^title:[ \t]*[\"']?(.*?)[\"']?[ \t]*\r?$", regex.MULTILINE)
_NOT_LINE_END = regex.compile(r"[^\r\n]")
_TAG = regex.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>|<[^>]*>", regex.DOTALL | regex.IGNORECASE)


def parse_markdown(content: bytes, options: ParseOptions, media_type: str = MARKDOWN) -> ParsedDocument:
    """Read Markdown of any encoding."""
    decoded = decode(content)
    check_length(len(decoded.text), options.limits)
    body, title = _without_front_matter(decoded.text)
    blocks = tuple(_Walk(body).blocks(_parser().parse(body)))
    return ParsedDocument(
        media_type=media_type,
        blocks=blocks,
        title=title,
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        warnings=decoded.warnings,
    )


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def _without_front_matter(text: str) -> tuple[str, str]:
    """Blank the front matter out, so that offsets stay; its `title:` becomes the title."""
    found = _FRONT_MATTER.match(text)
    if not found:
        return text, ""
    title = _FRONT_TITLE.search(found.group(1))
    return _NOT_LINE_END.sub(" ", found.group()) + text[found.end() :], title.group(1) if title else ""


class _Walk:
    """Turns markdown-it's token stream into blocks."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._starts = [line.start for line in lines_of(source)]
        self._cursor = 0
        self._tables = 0

    def blocks(self, tokens: list[Token]) -> Iterator[Block]:
        depth = 0
        heading = 0
        in_item = False
        row: list[Fragment] = []
        for token in tokens:
            kind = token.type
            if kind in ("bullet_list_open", "ordered_list_open"):
                depth += 1
            elif kind in ("bullet_list_close", "ordered_list_close"):
                depth -= 1
            elif kind == "list_item_open":
                in_item = True
            elif kind == "heading_open":
                heading = int(token.tag[1:])
            elif kind == "heading_close":
                heading = 0
            elif kind == "table_open":
                self._tables += 1
            elif kind == "tr_open":
                row = []
            elif kind == "tr_close":
                is_header = self._in_head
                yield Block(BlockKind.TABLE_ROW, tuple(row), table=self._tables, is_table_header=is_header)
            elif kind in ("thead_open", "thead_close"):
                self._in_head = kind == "thead_open"
            elif kind in ("th_open", "td_open"):
                self._in_cell = True
            elif kind in ("th_close", "td_close"):
                self._in_cell = False
            elif kind == "inline" and self._in_cell:
                row.append(self._cell(token))
            elif kind == "inline":
                fragments = tuple(self._inline(token))
                if heading:
                    yield Block(BlockKind.HEADING, fragments, level=heading)
                elif depth and in_item:
                    yield Block(BlockKind.LIST_ITEM, fragments, level=depth - 1)
                    in_item = False
                else:
                    yield Block(BlockKind.PARAGRAPH, fragments)
            elif kind in ("fence", "code_block"):
                yield from self._code(token)
            elif kind == "html_block":
                yield from self._html(token)

    _in_head = False
    _in_cell = False

    def _cell(self, token: Token) -> Fragment:
        pieces = list(self._inline(token))
        text = "".join((p.glue if i else "") + p.text for i, p in enumerate(pieces))
        first = pieces[0] if pieces else Fragment("")
        verbatim = len(pieces) == 1
        return Fragment(text, " | ", first.start if verbatim else None, first.line or self._line(token))

    def _line(self, token: Token) -> int | None:
        return token.map[0] + 1 if token.map else None

    def _inline(self, token: Token) -> Iterator[Fragment]:
        line = self._line(token)
        if token.map:
            self._cursor = max(self._cursor, self._starts[token.map[0]])
        last = ""
        glue = ""
        for child in token.children or []:
            if child.type in ("softbreak", "hardbreak"):
                line = line + 1 if line is not None else None
                glue = "\n"
                continue
            text = child.content
            if child.type in ("text", "code_inline", "image") and text:
                if glue == "\n":
                    glue = glue_between(last, text)
                yield Fragment(text, glue, self._find(text), line)
                last, glue = text, ""

    def _find(self, text: str) -> int | None:
        """Offset of `text` in the source after what was found before; None when it was escaped there."""
        at = self._source.find(text, self._cursor)
        if at < 0 or at - self._cursor > 4000:  # a decoded entity must not drag the cursor far ahead
            return None
        self._cursor = at + len(text)
        return at

    def _code(self, token: Token) -> Iterator[Block]:
        first = (token.map[0] if token.map else 0) + (1 if token.type == "fence" else 0)
        for number, line in enumerate(token.content.split("\n")):
            if line.strip():
                fragment = Fragment(line, "", self._find(line), first + number + 1)
                yield Block(BlockKind.CODE, (fragment,))

    def _html(self, token: Token) -> Iterator[Block]:
        text = _TAG.sub(" ", token.content)
        for number, line in enumerate(text.split("\n")):
            if line.strip():
                start = (token.map[0] if token.map else 0) + number + 1
                yield Block(BlockKind.PARAGRAPH, (Fragment(line.strip(), "", None, start),))
