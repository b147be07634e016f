"""Plain text: blank lines part paragraphs, hard-wrapped lines are joined, every piece knows its offset.

Structure is taken from what people type: numbered and underlined headings, lists, tables drawn with bars or
spaces, indented code. Where the signs are weak a line stays a paragraph.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

from ingest.clean import visible
from ingest.parse.charset import decode
from ingest.parse.lines import Line, fragment_of, glue_between, line_starts, lines_of
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.sniff import TEXT
from ingest.parse.text_headings import LIST_ITEM, heading_level, underline_level
from ingest.parse.text_tables import tables_in
from ingest.parse.within import check_length

__all__ = ["Line", "fragment_of", "glue_between", "line_starts", "lines_of", "parse_text"]

_ENDS = regex.compile(r"[.!?:;。！？：；…][\"'”’」』）)】]*$")
# A log line, a mail header or a record begins anew, however wide the line before it was.
_BEGINS_ANEW = regex.compile(
    r"\s*(?:\[|<\d|\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}|\d{1,2}:\d{2}|[A-Z][\w-]{1,20}:\s|[\p{Han}]{1,8}：|第[\d一二三四五六七八九十百零〇]{1,6}条)"
)
_CODE = regex.compile(
    r"[;{}]\s*$|^\s*(?:\$|>>>|#!|#include|def |class |import |from \S+ import|return\b|@\w+|//|/\*|</?\w)"
    r"|^\s*(?:if|for|while|else|try|with)\b.*:$"
    r"|\w\(.*\)\s*[;{:]?\s*$|\w\s*(?:[-+*/|&:]?=|->|=>|:=)\s*\S|^\s*(?:sudo|cd|git|docker|pip|curl|export|SELECT|INSERT)\s"
)
_FENCE = regex.compile(r"\s{0,3}(`{3,}|~{3,})[\w+-]*\s*$")
_CODE_INDENT = 4
_WRAP_WIDTHS = range(40, 132)  # columns at which editors and mail programs wrap
_TITLE_MAX_WIDTH = 80


def parse_text(content: bytes, options: ParseOptions, media_type: str = TEXT) -> ParsedDocument:
    """Read plain text of any encoding."""
    decoded = decode(content)
    check_length(len(decoded.text), options.limits)
    reader = _Reader(list(lines_of(decoded.text)), titled=media_type == TEXT)
    blocks = tuple(reader.blocks())
    return ParsedDocument(
        media_type=media_type,
        blocks=blocks,
        title=reader.title,
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        warnings=decoded.warnings,
    )


class _Reader:
    """Groups of lines between blank ones → blocks."""

    def __init__(self, lines: list[Line], *, titled: bool) -> None:
        self._groups = list(_groups(lines))
        self._titled = titled
        self._tables = 0
        self.title = ""

    def blocks(self) -> Iterator[Block]:
        following = [*(group for group, _ in self._groups[1:]), None][: len(self._groups)]
        for n, ((group, is_code), after) in enumerate(zip(self._groups, following, strict=True)):
            if is_code:
                yield from (_code(line) for line in group)
            elif n == 0 and self._titled and after is not None and _is_title(group):
                self.title = group[0].text.strip()
                yield Block(BlockKind.HEADING, (fragment_of(group[0]),), level=1)
            else:
                yield from self._group(group, after)

    def _group(self, group: list[Line], after: list[Line] | None) -> Iterator[Block]:
        tables = {table.start: table for table in tables_in(group)}
        prose: list[Line] = []
        at = 0
        while at < len(group):
            level = underline_level(group, at)
            table = tables.get(at)
            if not level and table is None:
                prose.append(group[at])
                at += 1
                continue
            yield from _prose(prose)
            prose = []
            if table is not None:
                self._tables += 1
                yield from table.blocks(self._tables)
                at = table.end
            else:
                yield Block(BlockKind.HEADING, (fragment_of(group[at]),), level=level)
                at += 2
        yield from _prose(prose, after if len(prose) == len(group) else None)


def _groups(lines: list[Line]) -> Iterator[tuple[list[Line], bool]]:
    """Lines between blank ones, and whether they are code; a fenced block is one group without its fences."""
    group: list[Line] = []
    fence = ""
    for line in lines:
        mark = _FENCE.match(line.text)
        if mark and (not fence or mark.group(1).startswith(fence)):
            if group:
                yield group, bool(fence) or _is_code(group)
            group, fence = [], "" if fence else mark.group(1)
        elif not line.blank:
            group.append(line)
        elif group and not fence:
            yield group, _is_code(group)
            group = []
    if group:
        yield group, bool(fence) or _is_code(group)


def _is_code(group: list[Line]) -> bool:
    """Lines that are indented or nested, and mostly look like a program."""
    if len(group) < 2 and group[0].indent < _CODE_INDENT:
        return False
    if not any(line.indent >= _CODE_INDENT or line.text.startswith("  ") for line in group):
        return False
    looks = sum(1 for line in group if _CODE.search(line.text[:400]))
    return 2 * looks >= len(group)


def _code(line: Line) -> Block:
    text = line.text.rstrip()
    return Block(BlockKind.CODE, (Fragment(text, start=line.start, line=line.number),))


def _prose(lines: list[Line], after: list[Line] | None = None) -> Iterator[Block]:
    """Headings, list items and paragraphs; `after` is the next group, where `lines` stand alone."""
    if not lines:
        return
    width = max(line.width for line in lines)
    following = [*lines[1:], after[0] if after else None]
    paragraph: list[Line] = []
    for line, next_line in zip(lines, following, strict=True):
        alone = len(lines) == 1
        level = heading_level(line, next_line, touching=not alone) if next_line is not None else 0
        if paragraph and (level or not _goes_on(paragraph[-1], line, width)):
            yield _block(paragraph)
            paragraph = []
        if level:
            yield Block(BlockKind.HEADING, (fragment_of(line),), level=level)
        else:
            paragraph.append(line)
    if paragraph:
        yield _block(paragraph)


def _goes_on(last: Line, line: Line, width: int) -> bool:
    """Whether `line` continues the paragraph of `last`: a wrapped line is nearly as wide as the widest."""
    if width not in _WRAP_WIDTHS or last.width < 0.72 * width:
        return False
    if LIST_ITEM.match(line.text) or _BEGINS_ANEW.match(line.text):
        return False
    if line.text[:1] in " \t\u3000" and last.text[:1] not in " \t\u3000" and not LIST_ITEM.match(last.text):
        return False  # an indented first line
    return not _ENDS.search(last.text[-80:].rstrip())


def _block(paragraph: list[Line]) -> Block:
    fragments: list[Fragment] = []
    for line in paragraph:
        piece = fragment_of(line)
        glue = glue_between(fragments[-1].text, piece.text) if fragments else ""
        fragments.append(Fragment(piece.text, glue, piece.start, piece.line))
    if not LIST_ITEM.match(paragraph[0].text):
        return Block(BlockKind.PARAGRAPH, tuple(fragments))
    return Block(BlockKind.LIST_ITEM, tuple(fragments), level=min(paragraph[0].indent // 2, 8))


def _is_title(group: list[Line]) -> bool:
    """A first line that stands alone: short, without a full stop."""
    line = group[0]
    text = line.text.strip()
    return len(group) == 1 and line.width <= _TITLE_MAX_WIDTH and not _ENDS.search(text) and visible(text)
