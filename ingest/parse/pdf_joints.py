"""How the end of one line of a PDF meets the beginning of the next: hyphens, spaces, sentence ends."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ingest.parse.pdf_chars import LINE_HYPHEN

SOFT = chr(LINE_HYPHEN)
HYPHENS = ("-", SOFT, "\u2010")

_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_CLOSERS = "\"'”’」』）)】]》〉"
_ENDS = frozenset(".!?:;。！？：；…")
# First parts that usually keep their hyphen when a line ends after it.
_HEADS = (
    "well self non cross high low long short half full real built hard soft one two three four five six "
    "first second third ever all co ex so"
)
_COMPOUND_HEADS = frozenset(_HEADS.split())


class Words:
    """The words of a document that stand whole inside a line: evidence for what a line-end hyphen means."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = texts
        self._words: frozenset[str] | None = None

    def __contains__(self, word: str) -> bool:
        if self._words is None:  # few documents have line-end hyphens at all
            self._words = frozenset(self._read())
        return word in self._words

    def _read(self) -> Iterable[str]:
        for text in self._texts:
            found = _WORD.findall(text.casefold())
            yield from found[:-1] if text.endswith(HYPHENS) else found


def ends_sentence(text: str) -> bool:
    """Whether a line ends with the end of a sentence or clause, closing quotes and brackets aside."""
    return text.rstrip(_CLOSERS)[-1:] in _ENDS and bool(text)


def goes_on(text: str) -> bool:
    """Whether a line reads like the middle of a sentence."""
    return text[:1].islower() or text[:1] in ",;)，；、）。"


def is_cjk(character: str) -> bool:
    """Whether a character is of a script that writes no spaces: kana, ideographs and their punctuation."""
    return "\u3000" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff" or character >= "\uff00"


def joint(text: str, following: str, words: Words) -> tuple[str, str]:
    """The line without a hyphen that only marks its end, and what stands between it and the next line."""
    if not text.endswith(HYPHENS):
        return text, "" if is_cjk(text[-1:] or "x") and is_cjk(following[:1] or "x") else " "
    stem = text[:-1]
    head = _WORD.findall(stem[-60:])
    tail = _WORD.match(following)
    if not head or not stem[-1:].isalpha() or tail is None or not following[:1].islower():
        return stem + "-", "" if stem[-1:].isalnum() else " "
    left, right = head[-1].casefold(), tail.group().casefold()
    if f"{left}-{right}" in words or (left in _COMPOUND_HEADS and left + right not in words):
        return stem + "-", ""
    return stem, ""
