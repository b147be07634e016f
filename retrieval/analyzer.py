"""One analyser for the lexical index and for questions: folded words, CJK bigrams, whole codes.

Chinese gives jieba words and, beside them, every pair of adjacent characters, so that a word the segmenter
cut otherwise is still found. Codes and file names (`xy-2080`, `nightly-sync.sh`) are kept whole and given
in parts as well. English plurals lose their `s`.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import regex

from ingest.fold import search_fold

_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}々〇"
_RUN = regex.compile(
    rf"(?P<cjk>[{_CJK}]+)"
    rf"|(?P<code>[^\W_{_CJK}]+(?:[-_./:@+#&][^\W_{_CJK}]+)+)"
    rf"|(?P<word>[^\W_{_CJK}]+(?:'[^\W_{_CJK}]+)?)"
)
_PARTS = regex.compile(r"[-_./:@+#&]+")
_MAX_TOKEN_CHARS = 80  # longer runs are noise (base64, long URLs); tantivy's own limit is far above


def tokens(text: str) -> list[str]:
    """Search tokens of `text` in reading order; a token may repeat.

    Tokens contain no white space and are at most 80 characters. Text without letters or digits has none.
    """
    return [token[:_MAX_TOKEN_CHARS] for token in _tokens(search_fold(text))]


def _tokens(folded: str) -> Iterator[str]:
    for match in _RUN.finditer(folded):
        run = match.group()
        if match.lastgroup == "cjk":
            yield from _cjk_tokens(run)
        elif match.lastgroup == "code":
            yield run
            for part in _PARTS.split(run):
                yield from _mixed(part)
        else:
            yield from _mixed(run)


def _mixed(run: str) -> Iterator[str]:
    plain = _without_marks(run.removesuffix("'s"))
    if plain:  # a run of marks alone leaves nothing
        yield _singular(plain)


def _cjk_tokens(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
        return
    for word in _segmenter().cut(run):
        if len(word) > 1:
            yield word
    for i in range(len(run) - 1):
        yield run[i : i + 2]


def _without_marks(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def _singular(word: str) -> str:
    """Plural to singular by the S-stemmer's three rules.

    Source: Harman, JASIS 42(1), 1991, doi:10.1002/(SICI)1097-4571(199101)42:1<7::AID-ASI2>3.0.CO;2-P.
    """
    if len(word) < 4 or not word.endswith("s") or not word.isascii():
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    if not word.endswith(("us", "ss")):
        return word[:-1]
    return word


@lru_cache(maxsize=1)
def _segmenter() -> Any:
    import jieba

    jieba.setLogLevel(logging.WARNING)
    segmenter = jieba.Tokenizer()
    segmenter.initialize()
    return segmenter
