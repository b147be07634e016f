"""Sentence boundaries in Chinese and English text.

A sentence owns its closing marks: terminators, then any closing quotes and brackets. Half-width stops end a
sentence only where they are not part of a number, an abbreviation, an initial, a file name or a URL.
"""

from __future__ import annotations

import regex

from core.types import Span

_CLOSERS = "\"'”’」』）)】》〉]｝}"
_ABBREVIATED = (
    "mr mrs ms dr prof sr jr st no nos vs etc eq eqs fig figs sec ch vol pp ed eds al approx dept est inc "
    "ltd co corp gen col lt sgt capt rev hon gov sen rep pres univ assn bros mt ft jan feb mar apr jun jul "
    "aug sep sept oct nov dec mon tue wed thu fri sat sun ave blvd rd min max temp ref tel ext cf viz "
    "e.g i.e a.m p.m u.s u.k u.n ph.d"
)
_ABBREVIATIONS = frozenset(_ABBREVIATED.split())
# These may well end a sentence; they do so when a capital letter or a CJK character follows.
_ENDERS = "etc inc ltd co corp jr sr a.m p.m u.s u.k u.n ph.d al"
_SOMETIMES_LAST = frozenset(_ENDERS.split())
_BOUNDARY = regex.compile(
    rf"""
      [。！？；｡]+ [。！？!?…]* [{regex.escape(_CLOSERS)}]*        # full-width ends
    | (?:……|…)+ [{regex.escape(_CLOSERS)}]*                        # ellipsis
    | [.!?]+ [{regex.escape(_CLOSERS)}]*                           # half-width, judged below
    | \n [ \t\u3000]* \n \s*                                       # blank line
    | \n                                                           # line end, judged below
    """,
    regex.VERBOSE,
)
_CJK = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\u3000-\u303f\uff00-\uffef]")
_WORD_BEFORE = regex.compile(r"[\p{L}\p{M}.]+$")
_LIST_LABEL = regex.compile(r"(?:^|[\n。！？；])\s*(?:\(?\d{1,3}|\(?[A-Za-z]|[IVXivx]{1,5})$")
_INITIALS = regex.compile(r"(?:[A-Z]\.)+[A-Z]$")
# A bracket that closes after a mark closes an aside, 真的（！）吗, unless it opened the sentence.
_ASIDES = {")": "(", "）": "（", "]": "[", "】": "【", "》": "《", "〉": "〈"}
_TITLE_CLOSERS = "》〉"


def sentences(text: str) -> list[Span]:
    """Cut `text` into sentences.

    Every character that is not blank belongs to exactly one span; spans ascend, do not overlap and neither
    begin nor end with white space. A line end closes a sentence, because normalized text keeps one block
    (paragraph, list item, table row) per line.

    Returns:
        Spans into `text`; empty for blank text.
    """
    spans: list[Span] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        if match.start() < start or not _ends_sentence(text, match) or _in_aside(text, start, match):
            continue
        end = _without_opening_quote(text, match)
        _add(spans, text, start, end)
        start = end
    _add(spans, text, start, len(text))
    return spans


def _in_aside(text: str, start: int, match: regex.Match[str]) -> bool:
    """Whether the mark stands in brackets inside the sentence that begins at `start`."""
    last = text[match.end() - 1]
    if last not in _ASIDES or match.end() >= len(text.rstrip()):
        return False
    opened = text.rfind(_ASIDES[last], start, match.start())
    return opened >= 0 and (last in _TITLE_CLOSERS or bool(text[start:opened].strip()))


def _without_opening_quote(text: str, match: regex.Match[str]) -> int:
    """End of the boundary, less a straight quote that opens what follows (an even number stands before)."""
    at = text.find('"', match.start(), match.end())
    if at < 0:
        return match.end()
    line = text.rfind("\n", 0, at) + 1
    return at if text.count('"', line, at) % 2 == 0 and at > match.start() else match.end()


def _add(spans: list[Span], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    lead = len(piece) - len(piece.lstrip())
    body = piece.strip()
    if body:
        spans.append(Span(start + lead, start + lead + len(body)))


def _ends_sentence(text: str, match: regex.Match[str]) -> bool:
    mark = match.group()
    if mark.isspace():
        return True
    after = text[match.end() : match.end() + 2]
    first = mark[0]
    if first == "…":
        # Mid-sentence trailing-off in English ("well… maybe") goes on in lower case.
        return not after.lstrip(" ")[:1].islower()
    if first not in ".!?":
        return True
    if after and not after[0].isspace() and not _CJK.match(after[0]):
        return False  # 3.14, nightly-sync.sh, example.com, a!b
    if first != "." or len(mark.rstrip(_CLOSERS)) > 1:
        return not after.lstrip(" ")[:1].islower() or first == "."
    return _stop_ends_sentence(text, match.start(), after)


def _stop_ends_sentence(text: str, at: int, after: str) -> bool:
    """Whether the single half-width stop at `at` ends a sentence."""
    follows = text[at + 1 : at + 12].lstrip(_CLOSERS + " \t\n\u3000")[:1]
    before = text[max(0, at - 24) : at]
    label = _LIST_LABEL.search(before)
    if label and (at < 24 or label.start() > 0 or before[:1] in "\n。！？；"):
        return False  # "1. Unpack", "a. Loosen": a list label
    found = _WORD_BEFORE.search(before)
    word = found.group().lower().strip(".") if found else ""
    if len(word) == 1 and word.isascii() and (before[-1:].isupper() or (word in "pnv" and follows.isdigit())):
        return not follows or _CJK.match(follows) is not None  # an initial or a page: "J. Smith", "p. 5"
    if found and word not in _ABBREVIATIONS and _INITIALS.search(found.group()):
        return not follows or _CJK.match(follows) is not None
    if word in _ABBREVIATIONS:
        if word in _SOMETIMES_LAST:
            return not follows or follows.isupper() or _CJK.match(follows) is not None
        # "No. 5" is a number label, "No." at the end of the text is an answer.
        return not follows or (word == "no" and not follows.isdigit() and follows.isupper())
    return not follows.islower()
