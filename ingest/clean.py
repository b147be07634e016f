"""Cleaning of decoded text, done once at the door; says where each kept character came from.

Kept as written: letters, width, case, punctuation. Changed: NFC composition, presentation ligatures, runs of
white space. Removed: NUL and other controls, zero-width marks that carry no meaning, bidi controls,
non-characters. Lone surrogates become U+FFFD.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import regex

# White space that becomes one plain space; the ideographic space counts, it is used as padding.
_SPACE = r"[\s\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\x0b\x0c\x85]"
_REMOVED = (
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"  # C0 and C1 controls but tab, line ends
    r"\u00ad\u200b\u200e\u200f\u2060\ufeff"  # soft hyphen, zero-width space, marks, joiner, BOM
    r"\u202a-\u202e\u2066-\u2069"  # bidi embeddings, overrides and isolates
    r"\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"  # tags: text that no reader sees
    r"\ufdd0-\ufdef\ufffe\uffff]"  # non-characters
)
# Zero-width joiners hold emoji together and matter in Indic and Persian spelling; elsewhere they hide text.
_STRAY_JOINER = (
    r"(?<![\p{Extended_Pictographic}\p{M}\p{Arabic}])[\u200c\u200d]"
    r"|[\u200c\u200d](?![\p{Extended_Pictographic}\p{L}])"
)
# A selector picks the form of the character before it; alone, or in a row, it only hides text.
_STRAY_SELECTOR = r"(?<![^\s\p{M}\p{Cf}])[\ufe00-\ufe0f]|(?<!\p{Han})[\U000e0100-\U000e01ef]"
# The tags of a flag such as that of Scotland follow a black flag and end with a cancel tag.
_FLAG = r"(?P<flag>\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f)"
_SURROGATE = r"[\ud800-\udfff]"
_EXPANDED = ("ff", "fi", "fl", "ffi", "ffl", "st", "st")
_LIGATURE = dict(zip("\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06", _EXPANDED, strict=True))
_MARKS = (
    rf"{_FLAG}|(?P<gone>(?:{_REMOVED})+|{_STRAY_JOINER}|{_STRAY_SELECTOR})"
    rf"|(?P<surrogate>{_SURROGATE})|(?P<ligature>[\ufb00-\ufb06])"
)
_ODD = regex.compile(rf"(?P<space>{_SPACE}{{2,}}|(?! ){_SPACE})|{_MARKS}")
_ODD_IN_CODE = regex.compile(rf"(?P<tab>\t)|(?P<space>(?! ){_SPACE})|{_MARKS}")
_HAS_ODD = regex.compile(
    rf"  |(?! ){_SPACE}|{_REMOVED}|{_SURROGATE}"
    r"|[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef\ufb00-\ufb06]"
)
_PRINTABLE_ODD = re.compile("[\ufb00-\ufb06\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_TAB = " " * 4
_INVISIBLE = rf"(?:{_REMOVED}|[\u200c\u200d])*"
_SPACE_AHEAD = regex.compile(rf"{_INVISIBLE}{_SPACE}")
_SPACE_BEHIND = regex.compile(rf"{_SPACE}{_INVISIBLE}\Z")
_EDGE = 32  # characters; more invisible ones in a row are no way to write a space
_VISIBLE = regex.compile(r"[\p{L}\p{N}\p{Emoji_Presentation}]")
_PRIVATE_USE = regex.compile(r"\p{Co}")
_CLUSTER = regex.compile(r"\X")


@dataclass(frozen=True, slots=True)
class Run:
    """`length` cleaned characters that came from `source_length` characters at `source_start`."""

    length: int
    source_start: int
    source_length: int


def clean(text: str) -> str:
    """Return the cleaned form of `text` on one line, without leading or trailing white space."""
    return clean_with_runs(text)[0]


def clean_with_runs(text: str) -> tuple[str, list[Run]]:
    """Clean `text` and say where each part came from.

    Returns:
        The cleaned text, stripped, and its runs in order; the lengths of the runs add up to its length. A
        run of equal lengths maps character by character, any other as a whole.
    """
    if not has_odd(text) and unicodedata.is_normalized("NFC", text):
        return _stripped(text, [Run(len(text), 0, len(text))] if text else [])
    joined, runs = _replaced(text, _ODD)
    if "  " in joined:  # a mark removed between two spaces left them side by side
        joined, runs = _single_spaces(joined, runs)
    return _stripped(*_composed(joined, runs))


def has_odd(text: str) -> bool:
    """Whether anything in `text` is changed by cleaning, composition and white space at its ends apart."""
    if not text.isprintable():
        return _HAS_ODD.search(text) is not None
    # Of what `_HAS_ODD` finds, only these are printable; telling so is ten times as fast as that search.
    return "  " in text or (not text.isascii() and _PRINTABLE_ODD.search(text) is not None)


def clean_code_with_runs(text: str) -> tuple[str, list[Run]]:
    """Clean a line of code: as `clean_with_runs`, but its spaces stay, and a tab becomes four.

    Returns:
        The cleaned line without trailing white space, and its runs.
    """
    joined, runs = _replaced(text, _ODD_IN_CODE)
    while joined.endswith(" "):
        joined, runs = joined[:-1], _cut(runs, head=False)
    return _composed(joined, runs)


def _replaced(text: str, odd: regex.Pattern[str]) -> tuple[str, list[Run]]:
    out: list[str] = []
    runs: list[Run] = []
    last = 0
    for match in odd.finditer(text):
        if match.lastgroup == "flag":
            continue
        _plain(text, last, match.start(), out, runs)
        last = match.end()
        if match.lastgroup != "gone":
            new = _replacement(match)
            out.append(new)
            runs.append(Run(len(new), match.start(), match.end() - match.start()))
    _plain(text, last, len(text), out, runs)
    return "".join(out), runs


def _replacement(match: regex.Match[str]) -> str:
    match match.lastgroup:
        case "space":
            return " "
        case "tab":
            return _TAB
        case "surrogate":
            return "\ufffd"
        case _:
            return _LIGATURE[match.group()]


def _plain(text: str, start: int, end: int, out: list[str], runs: list[Run]) -> None:
    """Append `text[start:end]` composed to NFC."""
    if start >= end:
        return
    piece = text[start:end]
    if unicodedata.is_normalized("NFC", piece):
        out.append(piece)
        runs.append(Run(end - start, start, end - start))
        return
    for cluster in _CLUSTER.finditer(piece):
        new = unicodedata.normalize("NFC", cluster.group())
        out.append(new)
        runs.append(Run(len(new), start + cluster.start(), cluster.end() - cluster.start()))


def _composed(text: str, runs: list[Run]) -> tuple[str, list[Run]]:
    """Compose what stood apart in the source: a mark after a ligature, or after something removed."""
    if unicodedata.is_normalized("NFC", text):
        return text, runs
    places = [place for run in runs for place in _places(run)]
    out: list[str] = []
    new_runs: list[Run] = []
    for cluster in _CLUSTER.finditer(text):
        composed = unicodedata.normalize("NFC", cluster.group())
        start, end = places[cluster.start()][0], places[cluster.end() - 1][1]
        out.append(composed)
        last = new_runs[-1] if new_runs else None
        if last is not None and start < last.source_start + last.source_length:  # parts of one character
            low = last.source_start
            new_runs[-1] = Run(last.length + len(composed), low, max(end - low, last.source_length))
        else:
            new_runs.append(Run(len(composed), start, end - start))
    return "".join(out), new_runs


def _places(run: Run) -> Iterator[tuple[int, int]]:
    """Source range of each of the run's characters."""
    for n in range(run.length):
        at = run.source_start + n
        whole = (run.source_start, run.source_start + run.source_length)
        yield (at, at + 1) if run.length == run.source_length else whole


def _single_spaces(text: str, runs: list[Run]) -> tuple[str, list[Run]]:
    kept: list[str] = []
    new_runs: list[Run] = []
    at = 0
    for run in runs:
        piece = text[at : at + run.length]
        at += run.length
        if piece.startswith(" ") and kept and kept[-1].endswith(" "):
            piece = piece[1:]
            linear = run.length == run.source_length
            run = (
                Run(run.length - 1, run.source_start + 1, run.source_length - 1)
                if linear
                else Run(run.length - 1, run.source_start, run.source_length)
            )
        if piece:
            kept.append(piece)
            new_runs.append(run)
    return "".join(kept), new_runs


def _stripped(text: str, runs: list[Run]) -> tuple[str, list[Run]]:
    """Drop one leading and one trailing space (runs of white space are single by now)."""
    if text.startswith(" "):
        text, runs = text[1:], _cut(runs, head=True)
    if text.endswith(" "):
        text, runs = text[:-1], _cut(runs, head=False)
    return text, runs


def _cut(runs: list[Run], *, head: bool) -> list[Run]:
    run = runs[0 if head else -1]
    if run.length == 1:
        return runs[1:] if head else runs[:-1]
    shift = 1 if head else 0
    shorter = Run(run.length - 1, run.source_start + shift, run.source_length - 1)
    return [shorter, *runs[1:]] if head else [*runs[:-1], shorter]


def visible(text: str) -> bool:
    """Whether anything a reader could search for is left: a letter, a digit or an emoji."""
    return _VISIBLE.search(text) is not None


def spaced_edges(text: str) -> tuple[bool, bool]:
    """Whether white space, which cleaning strips, stands at the beginning and at the end of `text`."""
    if text.isascii() and text.isprintable():
        return text[:1] == " ", text[-1:] == " "
    return _SPACE_AHEAD.match(text) is not None, _SPACE_BEHIND.search(text[-_EDGE:]) is not None


def private_use(text: str) -> int:
    """Number of private-use characters: they are kept, but mean nothing without their font."""
    return 0 if text.isascii() else len(_PRIVATE_USE.findall(text))
