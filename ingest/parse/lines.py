"""Lines of decoded text with their place in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import regex

from ingest.parse.model import Fragment

_LINE_END = regex.compile(r"\r\n?|\n")
_WIDE = regex.compile(r"[\p{East_Asian_Width=Wide}\p{East_Asian_Width=Fullwidth}]")
_CJK = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\u3000-\u303f\uff01-\uff5e]")


@dataclass(frozen=True, slots=True)
class Line:
    """One source line without its end; `number` from 1, `start` an offset into the decoded text.

    Attributes:
        width: columns on a terminal without trailing white space; wide characters count two.
    """

    text: str
    start: int
    number: int
    width: int

    @property
    def blank(self) -> bool:
        """Whether it holds white space alone."""
        return self.width == 0

    @property
    def indent(self) -> int:
        """Columns of white space before the text; a tab counts four."""
        lead = self.text[: len(self.text) - len(self.text.lstrip())]
        return width_of(lead.expandtabs(4))


def width_of(text: str) -> int:
    """Columns that `text` takes on a terminal."""
    return len(text) if text.isascii() else len(text) + len(_WIDE.findall(text))


def lines_of(text: str) -> Iterator[Line]:
    """Lines of `text`; CR, LF and CRLF end one."""
    at = 0
    number = 1
    for match in _LINE_END.finditer(text):
        body = text[at : match.start()]
        yield Line(body, at, number, width_of(body.rstrip()))
        at = match.end()
        number += 1
    body = text[at:]
    yield Line(body, at, number, width_of(body.rstrip()))


def line_starts(text: str) -> list[int]:
    """Offset of the first character of each line; CR, LF and CRLF end one."""
    if "\r" not in text:
        return [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1])]
    return [0, *(match.end() for match in _LINE_END.finditer(text))]


def glue_between(left: str, right: str) -> str:
    """What joins two pieces of one paragraph: nothing between CJK characters, else a space."""
    if left and right and _CJK.match(left[-1]) and _CJK.match(right[0]):
        return ""
    return " "


def fragment_of(line: Line) -> Fragment:
    """The line as a fragment without outer white space."""
    lead = len(line.text) - len(line.text.lstrip())
    return Fragment(line.text.strip(), start=line.start + lead, line=line.number)
