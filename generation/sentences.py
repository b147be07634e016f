"""Sentences of Chinese and English text, with offsets. Small on purpose: passages were split before."""

from __future__ import annotations

import re

from core.types import Lang, Span

_END = re.compile(r"[。！？!?…]+[”’」』）)\"']*|\.+[”’\"')]*(?=\s|$)|\n+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'“])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|No|vs|etc|approx|e\.g|i\.e|Fig|Jr|Sr|Inc|Ltd|Co|U\.S|U\.K)\.$"
)
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")


def sentence_spans(text: str) -> list[Span]:
    """Spans of the sentences of `text`, without the white space around them, in order."""
    spans: list[Span] = []
    start = 0
    for match in _END.finditer(text):
        if match[0].startswith(".") and _ABBREVIATION.search(text, start, match.end()):
            continue
        _add(spans, text, start, match.end())
        start = match.end()
    _add(spans, text, start, len(text))
    return spans


def _add(spans: list[Span], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if any(c.isalnum() for c in text[start:end]):
        spans.append(Span(start, end))


def language_of(text: str) -> Lang:
    """Chinese when Han characters carry the text, English when Latin ones do, else undetermined.

    One Han character says about as much as four letters.
    """
    han, latin = len(_HAN.findall(text)), len(_LATIN.findall(text))
    if not han and not latin:
        return Lang.UND
    return Lang.ZH if han * 4 >= latin else Lang.EN


def is_han(char: str) -> bool:
    """Whether the character is a Chinese ideograph."""
    return bool(_HAN.match(char))
