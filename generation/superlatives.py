"""One of the largest is not the largest, and neither is the second largest. Pure; Chinese and English."""

from __future__ import annotations

import re

from generation.wording import HAN_CHAR

_ORDINAL = r"(?:second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|\d+(?:st|nd|rd|th))"
_HIGHEST = re.compile(
    rf"(?P<one>\b(?:one of|among|some of)\s+(?:[\w'’]+\s+){{1,3}}?)?(?P<rank>\b{_ORDINAL}[\s-]+)?"
    r"(?P<word>\b(?:most|least)\s+\w+|\b\w{3,}est)\b",
    re.IGNORECASE,
)
_HIGHEST_HAN = re.compile(f"最(?P<word>[{HAN_CHAR}])(?P<rest>[^，。；！？]*)")
_ONE_HAN = re.compile("之一|其中一")


def rank_raised(claim: str, source: str) -> str:
    """A superlative that the source has only as one of several or behind others; else the empty string.

    Args:
        claim: one sentence.
        source: the sentences that should carry it.
    """
    theirs: dict[str, bool] = {}
    for word, lowered in _superlatives(source):
        theirs[word] = theirs.get(word, True) and lowered
    return next((w for w, lowered in _superlatives(claim) if not lowered and theirs.get(w, False)), "")


def _superlatives(text: str) -> list[tuple[str, bool]]:
    """Superlatives of a text, each with whether it is one of several or has a rank below the first."""
    found = [
        (re.sub(r"\s+", " ", m["word"].lower()), bool(m["one"] or m["rank"])) for m in _HIGHEST.finditer(text)
    ]
    found += [(f"最{m['word']}", _ONE_HAN.search(m["rest"]) is not None) for m in _HIGHEST_HAN.finditer(text)]
    return found
