"""One analyser for the lexical index and for questions: folded words, CJK bigrams, whole codes.

Chinese gives jieba words and, beside them, every pair of adjacent characters, so that a word the segmenter
cut otherwise is still found. Codes and file names (`xy-2080`, `nightly-sync.sh`) are kept whole and given
in parts as well. A number comes with the character after it, too; English words become their stems.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import regex

from ingest.fold import search_fold
from retrieval.question_words import is_asking, without_asking

VERSION = 2
"""Of the tokens. It grows whenever the same text gives other ones: an index is asked in the version that it
was written in, and written anew by the first change after (`retrieval/lexical_store.py`). 1 took the plural
alone."""

_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}々〇"
_CJK_CHARACTER = regex.compile(f"[{_CJK}]")
_CODE_JOINTS = "-_./:@+#&"
# A run of one kind: CJK, a code such as `xy-2080`, or a word.
_RUN = regex.compile(
    rf"[{_CJK}]+"
    rf"|[^\W_{_CJK}]+(?:[{_CODE_JOINTS}][^\W_{_CJK}]+)+"
    rf"|[^\W_{_CJK}]+(?:'[^\W_{_CJK}]+)?"
)
_ASCII_RUN = re.compile(
    rf"[a-z0-9]+(?:(?:[{_CODE_JOINTS}][a-z0-9]+)+|'[a-z0-9]+)?"
)  # the same, six times faster
# A number with the character after it (`3月`, `120米`): by itself it says little.
_COUNTED = re.compile(rf"(?<![a-z0-9,{_CODE_JOINTS[1:]}-])[0-9]{{1,20}}[\u4e00-\u9fff]")
_PARTS = re.compile(rf"[{_CODE_JOINTS}]+")
_MAX_TOKEN_CHARS = 80  # longer runs are noise (base64, long URLs); tantivy's own limit is far above


def tokens(text: str, *, version: int = VERSION) -> list[str]:
    """Search tokens of `text` in reading order; a token may repeat.

    Tokens contain no white space and are at most 80 characters. Text without letters or digits has none.

    Args:
        text: of a passage, a heading or a name.
        version: 1 or 2; an index holds tokens of one.
    """
    folded = search_fold(text)
    run_tokens = _run_tokens if version == VERSION else _run_tokens_1
    found: list[str] = []
    if folded.isascii():
        for run in _ASCII_RUN.findall(folded):
            found += run_tokens(run)
        return found
    cut = _cut()
    for run in _RUN.findall(folded):
        if _is_cjk(run[0]):
            found += _cjk_tokens(run, cut(run))
        else:
            found += run_tokens(run)
    return found if version == 1 else found + _COUNTED.findall(folded)


def question_tokens(text: str, *, version: int = VERSION) -> list[str]:
    """Search tokens of a question without the words that ask; all of them where nothing else is left.

    nDCG@10 of the lexical route alone, without and with them, is in docs/benchmarks.md.
    """
    folded = search_fold(text)
    run_tokens = _run_tokens if version == VERSION else _run_tokens_1
    found: list[str] = []
    runs: list[str] = (_ASCII_RUN if folded.isascii() else _RUN).findall(folded)
    for run in runs:
        if _is_cjk(run[0]):
            for words in without_asking(_cut()(run)):
                found += _cjk_tokens("".join(words), words)
        elif not is_asking(run, text):
            found += run_tokens(run)
    if not found:
        return tokens(text, version=version)
    return found if version == 1 else found + _COUNTED.findall(folded)


def _is_cjk(character: str) -> bool:
    # Most of what is written: no need to ask the tables.
    return "\u4e00" <= character <= "\u9fff" or (
        character > "\u2e7f" and _CJK_CHARACTER.match(character) is not None
    )


def _cjk_tokens(run: str, words: Sequence[str]) -> list[str]:
    """The words of a run, and every pair of adjacent characters; of a single character that one."""
    if len(run) == 1:
        return [run]
    return [word for word in words if len(word) > 1] + [run[i : i + 2] for i in range(len(run) - 1)]


def word_token(word: str) -> str:
    """The token of one folded word, as `tokens` gives it."""
    return _stem(word)[:_MAX_TOKEN_CHARS]


@lru_cache(maxsize=50_000)  # words repeat: nine of ten come from here, about 8 MB when full
def _run_tokens(run: str) -> tuple[str, ...]:
    """Tokens of a word or a code."""
    return _parts(run, _stem)


@lru_cache(maxsize=5_000)  # questions alone, until an index is written anew
def _run_tokens_1(run: str) -> tuple[str, ...]:
    return _parts(run, _singular)


def _parts(run: str, ending: Callable[[str], str]) -> tuple[str, ...]:
    if run.isascii() and run.isalnum():
        return (ending(run)[:_MAX_TOKEN_CHARS],)
    parts = _PARTS.split(run)
    found = [run] if len(parts) > 1 else []
    for part in parts:
        plain = _without_marks(part.removesuffix("'s"))
        if plain:  # a run of marks alone leaves nothing
            found.append(ending(plain))
    return tuple(token[:_MAX_TOKEN_CHARS] for token in found)


def _without_marks(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def _stem(word: str) -> str:
    """The stem of an English word; a word with a digit or of another script stays.

    Source: Porter, Snowball, the English stemmer (Porter 2), as tantivy has it.
    """
    if len(word) < 3 or not word.isascii() or not word.isalpha():
        return word
    return _stemmer()(word)[0]


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
def _stemmer() -> Callable[[str], list[str]]:
    """In Rust, from the library that holds the index: half a microsecond a word."""
    import tantivy

    stemmer = tantivy.Filter.stemmer("english")
    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw()).filter(stemmer).build().analyze


@lru_cache(maxsize=1)
def _cut() -> Any:
    """Jieba's own cut of a run, in Rust: the same words, fifteen times faster, no dictionary in Python."""
    import rjieba

    return rjieba.cut
