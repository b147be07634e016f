"""Runs of inline text → fragments, one for each line of the source."""

from __future__ import annotations

from typing import Any

import regex

from ingest.parse.model import Fragment

_WIDE = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\u3000-\u303f\uff01-\uff5e]")
_BREAK = "\u2028"  # becomes a space when the text is cleaned
# libxml2 counts the lines of elements in 16 bits; above it only our own count goes on.
_LAST_COUNTED_LINE = 65_534


class Lines:
    """Collects the text of one block while a walk moves through the source.

    Attributes:
        line: where the walk is, from 1.
    """

    def __init__(self, line: int = 1) -> None:
        self.line = line
        self._parts: list[tuple[int, str]] = []

    def reach(self, element: Any) -> None:
        """The walk comes to the start of `element`."""
        line = element.sourceline
        if line is not None and self.line < line <= _LAST_COUNTED_LINE:
            self.line = line

    def add(self, text: str | None) -> None:
        """The walk passes over text."""
        if not text:
            return
        if not self._parts and text.isspace():  # before the first word of a block
            self.line += text.count("\n")
            return
        if "\n" not in text:
            self._parts.append((self.line, text))
            return
        for number, part in enumerate(text.split("\n")):
            if number:
                self.line += 1
                part = "\n" + part
            self._parts.append((self.line, part))

    def part(self) -> None:
        """The walk passes over something that parts the text before it from the text after it."""
        self._parts.append((self.line, _BREAK))

    def take(self) -> list[Fragment]:
        """The fragments collected since the last time, without white space at their ends."""
        parts = self._parts
        if not parts:
            return []
        self._parts = []
        if len(parts) == 1:
            line, whole = parts[0]
            text = whole.strip()
            return [Fragment(text, "", line=line)] if text else []
        fragments: list[Fragment] = []
        gap = ""
        at = 0
        while at < len(parts):
            line = parts[at][0]
            end = at + 1
            while end < len(parts) and parts[end][0] == line:
                end += 1
            whole = parts[at][1] if end == at + 1 else "".join(text for _, text in parts[at:end])
            at = end
            text = whole.strip()
            if not text:
                gap += whole
                continue
            gap += whole[: len(whole) - len(whole.lstrip())]
            before = fragments[-1].text if fragments else ""
            fragments.append(Fragment(text, _glue(before, gap, text) if before else "", line=line))
            gap = whole[len(whole.rstrip()) :]
        return fragments


def _glue(before: str, gap: str, after: str) -> str:
    """Nothing between Chinese characters that only a line end of the source parts, else a space."""
    if not gap:
        return ""
    if _BREAK not in gap and "\n" in gap and _WIDE.match(before[-1]) and _WIDE.match(after[0]):
        return ""
    return " "
