"""Headings and list items of plain text, from their own words and from what stands around them."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from ingest.parse.lines import Line

LIST_ITEM = regex.compile(
    r"\s*(?:[-*+•·‣▪●○◦–]\s+|\(?\d{1,3}[.)、）]\s*\D|[（(]?[一二三四五六七八九十]{1,3}[、)）]|[a-zA-Z][.)]\s)"
)
_MAX_WIDTH = 64
_SENTENCE = regex.compile(r"[.!?:;,。！？：；，、…][\"'”’」』）)】]*$|[。！？；]")
_NUMERAL = r"(?:\d{1,3}|[一二三四五六七八九十百零〇两]{1,5})"
_CHAPTER = regex.compile(rf"\s*第\s*{_NUMERAL}\s*(?P<unit>[编篇部卷章回节])(?=$|[\s\u3000：:、.．]|\S)")
_ENGLISH_CHAPTER = regex.compile(
    r"\s*(?P<unit>PART|Part|CHAPTER|Chapter|SECTION|Section|APPENDIX|Appendix)\s+(?:\d{1,3}|[IVXLC]{1,6}|[A-Z])\b(?!\s+(?:of|and|to|in)\b)"
)
_DECIMAL = regex.compile(r"\s*(?P<number>\d{1,2}(?:[.．]\d{1,2}){1,4})[.．、]?\s*(?=[\p{L}（(《“])")
_SINGLE = regex.compile(r"\s*\d{1,2}(?:[.．、]\s*|\s{1,3})(?=[\p{Lu}\p{Han}])")
_CHINESE = regex.compile(r"\s*(?P<open>[（(])?[一二三四五六七八九十]{1,3}(?(open)[)）]|[、.．])")
_BRACKETED = regex.compile(r"\s*(?:【[^【】]{1,30}】|〖[^〖〗]{1,30}〗|#{1,6}\s+\S.*)\s*$")
_MARKDOWN = regex.compile(r"\s*(#{1,6})\s+\S")
_UNDERLINES = {"=": 1, "*": 1, "-": 2, "~": 3, "^": 3, "+": 3}
_UNITS = {
    "编": 1,
    "篇": 1,
    "部": 1,
    "卷": 1,
    "章": 2,
    "回": 2,
    "节": 3,
    "part": 1,
    "chapter": 2,
    "appendix": 2,
    "section": 3,
}


def underline_level(lines: Sequence[Line], at: int) -> int:
    """Level of the heading at `lines[at]` that the next line underlines, else 0."""
    if at + 1 >= len(lines):
        return 0
    line, rule = lines[at], lines[at + 1].text.strip()
    if len(rule) < 3 or rule[0] not in _UNDERLINES or rule.strip(rule[0]):
        return 0
    text = line.text.strip()
    if not any(c.isalnum() for c in text) or "|" in text or "  " in text or "\t" in text:
        return 0  # a rule above it, or the head of a table
    return _UNDERLINES[rule[0]] if 0.5 * line.width <= len(rule) <= 2 * line.width + 4 else 0


def heading_level(line: Line, following: Line, *, touching: bool = False) -> int:
    """Level of the heading that `line` is, else 0.

    Args:
        line: a line with a blank one before it.
        following: the next line with text.
        touching: no blank line parts the two; then only signs that prose does not have count.
    """
    text = line.text.strip()
    if line.width > _MAX_WIDTH or not any(c.isalpha() for c in text):
        return 0
    if mark := _MARKDOWN.match(text):
        return len(mark.group(1))
    ends = _SENTENCE.search(text) is not None
    if not ends and (chapter := _chapter(text)):
        next_one = _chapter(following.text)
        # Chapters one after the other are a table of contents.
        return 0 if next_one and next_one == chapter else _UNITS[chapter]
    if ends or _same_kind(text, following.text):
        return 0
    if decimal := _DECIMAL.match(text):
        return 1 + decimal.group("number").replace("．", ".").count(".") + 1
    if touching:
        return 0
    if chinese := _CHINESE.match(text):
        return 3 if chinese.group("open") else 2
    if _SINGLE.match(text) or _BRACKETED.match(text) or _capitals(text):
        return 2
    return 0


def _chapter(text: str) -> str:
    """The unit that a line names (`章`, `section`), empty when it is no such line."""
    found = _CHAPTER.match(text) or _ENGLISH_CHAPTER.match(text)
    return found.group("unit").lower() if found else ""


def _same_kind(text: str, following: str) -> bool:
    """Whether the next line is numbered in the same way: then both are items of a list."""
    return any(
        kind.match(text) and kind.match(following) for kind in (_SINGLE, _CHINESE, _DECIMAL)
    ) and not _deeper(text, following)


def _deeper(text: str, following: str) -> bool:
    first, second = _DECIMAL.match(text), _DECIMAL.match(following)
    return bool(second) and (
        not first or second.group("number").count(".") > first.group("number").count(".")
    )


def _capitals(text: str) -> bool:
    letters = [c for c in text if c.isalpha()]
    return len(letters) >= 4 and all(c.isupper() for c in letters) and any(c in "AEIOUY" for c in letters)
