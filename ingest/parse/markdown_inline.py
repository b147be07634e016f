"""Inline Markdown → fragments that know their offset and line in the source."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

import regex
from markdown_it.token import Token

from ingest.parse.lines import glue_between, line_starts
from ingest.parse.model import Fragment

# The rest of a link after its text: `](target "title")`, `][reference]` or `]`.
_LINK_TAIL = regex.compile(r"\](?:\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*+\))*+\)|\[[^\]\\]*+\])?", regex.DOTALL)
_REACH = 65_536  # a piece of text stands near the one before it, or nowhere


class SourceLines:
    """The source with the offsets at which its lines begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = line_starts(text)

    def start_of(self, line: int) -> int:
        """Offset of the 0-based `line`; the end of the text past the last one."""
        return self._starts[line] if line < len(self._starts) else len(self.text)

    def line_at(self, offset: int) -> int:
        """1-based line of the character at `offset`."""
        return bisect_right(self._starts, offset)

    def find_in_line(self, text: str, line: int) -> int | None:
        """Offset of `text` inside the 0-based `line`."""
        at = self.text.find(text, self.start_of(line), self.start_of(line + 1))
        return at if at >= 0 else None


class InlineText:
    """Follows the tokens through the source: each piece is looked for after the one before it."""

    def __init__(self, lines: SourceLines) -> None:
        self._lines = lines
        self._cursor = 0
        self._end = 0

    def fragments(self, token: Token) -> tuple[Fragment, ...]:
        """The text of an `inline` token, markup dropped."""
        if token.map:
            self._cursor = max(self._cursor, self._lines.start_of(token.map[0]))
            self._end = self._lines.start_of(token.map[1])
        else:
            self._end = len(self._lines.text)
        found: list[Fragment] = []
        broken = False
        for piece in self._pieces(token.children or [], (token.map[0] + 1) if token.map else None):
            if piece is None:
                broken = True
                continue
            glue = glue_between(found[-1].text, piece.text) if broken and found else piece.glue
            found.append(replace(piece, glue=glue))
            broken = False
        return tuple(found)

    def label(self, line: int, label: str) -> Fragment:
        """The number of a list item on the 0-based `line`, as written."""
        return Fragment(label, "", self._lines.find_in_line(label, line), line + 1)

    def _pieces(self, tokens: list[Token], line: int | None) -> Iterator[Fragment | None]:
        """Fragments in order, None where a line or a `<br>` ends."""
        for token in tokens:
            match token.type:
                case "softbreak" | "hardbreak":
                    line = line + 1 if line is not None else None
                    yield None
                case "text" | "text_special" | "code_inline":
                    if token.content:
                        yield from self._placed(token, line)
                case "image":
                    yield from self._pieces(token.children or [], line)
                    self._skip_link_tail()
                case "link_close" if token.markup not in ("autolink", "linkify"):
                    self._skip_link_tail()
                case "html_inline":
                    self._find(token.content)
                    if token.content.lower().startswith(("<br", "<p", "</p", "<td", "<li")):
                        yield None
                case _:
                    pass

    def _placed(self, token: Token, line: int | None) -> Iterator[Fragment]:
        text = token.content
        written = token.markup if token.type == "text_special" else text
        start = self._find(written)
        if start is None and "|" in written:  # a bar inside a cell is escaped before anything else is read
            written = written.replace("|", "\\|")
            start = self._find(written)
        if start is None and token.type == "code_inline" and " " in text:
            # A line end inside it was made a space.
            for n, word in enumerate(text.split()):
                at = self._find(word)
                place = line if at is None else self._lines.line_at(at)
                yield Fragment(word, " " if n else "", at, place)
            return
        place = None if start is None else self._lines.line_at(start)
        yield Fragment(text, "", start, place or line, written=None if written == text else len(written))

    def _find(self, text: str) -> int | None:
        at = self._lines.text.find(text, self._cursor, min(self._end, self._cursor + _REACH + len(text)))
        if at < 0:
            return None
        self._cursor = at + len(text)
        return at

    def _skip_link_tail(self) -> None:
        tail = _LINK_TAIL.search(self._lines.text, self._cursor, self._end)
        if tail:
            self._cursor = tail.end()
