"""One folding for search, used on the index side and the query side alike.

Width, case, compatibility forms, dash and quote variants and traditional characters fold to one spelling, so
that `ＸＹ－２０８０` finds `xy-2080` and `後臺` finds `后台`. What a person reads is never folded.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise

import regex

_VARIANTS = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        # Zero-width marks, soft hyphen, bidi controls: invisible, so nobody types them into a query.
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff", None),
        **dict.fromkeys("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", None),
        # Variation selectors choose a drawing of the character before them, not another character.
        **dict.fromkeys((*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)), None),
    }
)
_VARIANT_CHARACTERS = frozenset(map(chr, _VARIANTS))
_CLUSTER = regex.compile(r"\X")


_HAN_RANGES = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0x20000, 0x323B0))


@lru_cache(maxsize=1)
def _simplified() -> Mapping[int, str]:
    """Traditional → simplified by OpenCC's t2s, one code point for one.

    Each character by itself: OpenCC looks at the words around it (乾 in 乾坤 and in 乾燥), and a question
    has other words around it than the passage.
    """
    import opencc

    characters = [chr(point) for low, high in _HAN_RANGES for point in range(low, high)]
    simple = str(opencc.OpenCC("t2s").convert("\n".join(characters))).split("\n")
    pairs = zip(characters, simple, strict=True)
    return {ord(c): s for c, s in pairs if s != c and len(s) == 1} | {ord("妳"): "你"}


def _simplify(text: str) -> str:
    if text.isascii() or _traditional().isdisjoint(text):
        return text
    return text.translate(_simplified())


@lru_cache(maxsize=1)
def _traditional() -> frozenset[str]:
    return frozenset(map(chr, _simplified()))


def _fold_forms(text: str) -> str:
    if not _VARIANT_CHARACTERS.isdisjoint(text):  # a look costs less than a translation
        text = text.translate(_VARIANTS)
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return text if _VARIANT_CHARACTERS.isdisjoint(text) else text.translate(_VARIANTS)


def search_fold(text: str) -> str:
    """Fold `text` for the lexical route and for alias matching.

    NFKC, case folding, dash and quote variants, invisible marks removed, traditional → simplified. The
    length may change; `fold_with_offsets` gives the way back.
    """
    if text.isascii():
        return text.lower()
    return _simplify(_fold_forms(text))


def fold_with_offsets(text: str) -> tuple[str, list[int]]:
    """Fold `text` and say where each folded character came from.

    Folding is done per grapheme cluster, so a ligature or a full-width form maps to the start of the
    cluster it stood in.

    Returns:
        The folded text and `len(folded) + 1` ascending offsets into `text`; the last is `len(text)`.
    """
    if text.isascii():
        return text.lower(), list(range(len(text) + 1))
    pieces: list[str] = []
    offsets: list[int] = []
    cuts = [m.start() for m in _CLUSTER.finditer(text)] + [len(text)]
    for start, end in pairwise(cuts):
        piece = _fold_forms(text[start:end])
        pieces.append(piece)
        offsets.extend([start] * len(piece))
    offsets.append(len(text))
    return _simplify("".join(pieces)), offsets
