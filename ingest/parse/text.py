"""Plain text: blank lines part paragraphs, hard-wrapped lines are joined, every piece knows its offset."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import regex

from ingest.parse.charset import decode
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.sniff import TEXT
from ingest.parse.within import check_length

_LINE = regex.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_LIST_ITEM = regex.compile(
    r"\s*(?:[-*•·‣▪●○]\s+|\(?\d{1,3}[.)、）]\s*\D|[（(]?[一二三四五六七八九十]{1,3}[、)）]|[a-zA-Z][.)]\s)"
)
_ENDS = regex.compile(r"[.!?:;。！？：；…][\"'”’」』）)】]*$")
_CJK = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\u3000-\u303f\uff01-\uff5e]")
_TITLE_MAX_WIDTH = 80
_WRAP_WIDTHS = range(40, 132)  # columns at which editors and mail programs wrap


@dataclass(frozen=True, slots=True)
class Line:
    """One source line without its end; `number` from 1, `start` an offset into the decoded text."""

    text: str
    start: int
    number: int

    @property
    def width(self) -> int:
        """Columns on a terminal: wide characters count two."""
        return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in self.text.rstrip())


def parse_text(content: bytes, options: ParseOptions, media_type: str = TEXT) -> ParsedDocument:
    """Read plain text of any encoding."""
    decoded = decode(content)
    check_length(len(decoded.text), options.limits)
    lines = list(lines_of(decoded.text))
    blocks = [block for group in _groups(lines) for block in _blocks(group)]
    title = _title(lines)
    if title is not None and blocks and media_type == TEXT:
        blocks[0] = Block(BlockKind.HEADING, blocks[0].fragments, level=1)
    return ParsedDocument(
        media_type=media_type,
        blocks=tuple(blocks),
        title=title or "",
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        warnings=decoded.warnings,
    )


def lines_of(text: str) -> Iterator[Line]:
    """Lines of `text`; CR, LF and CRLF end one."""
    number = 1
    for match in _LINE.finditer(text):
        body = match.group().rstrip("\r\n")
        yield Line(body, match.start(), number)
        number += 1


def glue_between(left: str, right: str) -> str:
    """What joins two pieces of one paragraph: nothing between CJK characters, else a space."""
    if left and right and _CJK.match(left[-1]) and _CJK.match(right[0]):
        return ""
    return " "


def fragment_of(line: Line) -> Fragment:
    """The line as a fragment without outer white space."""
    lead = len(line.text) - len(line.text.lstrip())
    return Fragment(line.text.strip(), start=line.start + lead, line=line.number)


def _groups(lines: list[Line]) -> Iterator[list[Line]]:
    group: list[Line] = []
    for line in lines:
        if line.text.strip():
            group.append(line)
        elif group:
            yield group
            group = []
    if group:
        yield group


def _blocks(group: list[Line]) -> Iterator[Block]:
    width = max(line.width for line in group)
    paragraph: list[Line] = []
    for line in group:
        if paragraph and not _goes_on(paragraph[-1], line, width):
            yield _block(paragraph)
            paragraph = []
        paragraph.append(line)
    yield _block(paragraph)


def _goes_on(last: Line, line: Line, width: int) -> bool:
    """Whether `line` continues the paragraph of `last`: a wrapped line is nearly as wide as the widest."""
    if _LIST_ITEM.match(line.text) or width not in _WRAP_WIDTHS:
        return False
    if last.width < 0.72 * width:
        return False
    if line.text[:1] in " \t\u3000" and last.text[:1] not in " \t\u3000":
        return False  # an indented first line
    return not _ENDS.search(last.text.rstrip())


def _block(paragraph: list[Line]) -> Block:
    fragments: list[Fragment] = []
    for line in paragraph:
        piece = fragment_of(line)
        glue = glue_between(fragments[-1].text, piece.text) if fragments else ""
        fragments.append(Fragment(piece.text, glue, piece.start, piece.line))
    kind = BlockKind.LIST_ITEM if _LIST_ITEM.match(paragraph[0].text) else BlockKind.PARAGRAPH
    return Block(kind, tuple(fragments))


def _title(lines: list[Line]) -> str | None:
    """The first line, when it stands alone: short, without a full stop, a blank line after it."""
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        text = line.text.strip()
        if not text:
            continue
        alone = following is not None and not following.text.strip()
        more = any(other.text.strip() for other in lines[line.number :])
        if alone and more and line.width <= _TITLE_MAX_WIDTH and not _ENDS.search(text):
            return text
        return None
    return None
