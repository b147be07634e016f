"""The language of a question, from its script alone, and how far words carry across languages. Pure."""

from __future__ import annotations

import regex

from core.types import Lang

_HAN = regex.compile(r"\p{Han}")
_KANA_HANGUL = regex.compile(r"[\p{Hiragana}\p{Katakana}\p{Hangul}]")
_LATIN_WORD = regex.compile(r"\p{Latin}[\p{Latin}\p{M}'’]*")
# Codes, model numbers, acronyms: written the same in every language.
_IDENTIFIER = regex.compile(
    r"[A-Za-z0-9]*(?:[A-Za-z][-_./]?\d|\d[-_./]?[A-Za-z])[A-Za-z0-9._/-]*|\b[A-Z]{2,}\b"
)
_TERM = regex.compile(r"\p{Han}|[\p{L}\p{M}\p{N}._/-]+")


def question_language(text: str) -> Lang:
    """`zh` when Han characters make up at least a quarter of its words, else `en`; `und` without letters.

    A Chinese question about an English product is still Chinese, so two Han characters (about one word)
    weigh as much as one Latin word. Kana or Hangul make it `und`: neither of our two languages.
    """
    if _KANA_HANGUL.search(text):
        return Lang.UND
    han_words = len(_HAN.findall(text)) / 2
    latin_words = len(_LATIN_WORD.findall(text))
    if not han_words and not latin_words:
        return Lang.UND
    return Lang.ZH if han_words / (han_words + latin_words) >= 0.25 else Lang.EN


def identifier_share(text: str) -> float:
    """Share of the question's terms, in [0, 1], that are codes or acronyms.

    Only these match across languages: what is left of the lexical route when question and passage differ.
    """
    terms = _TERM.findall(text)
    identifiers = sum(1 for term in terms if _IDENTIFIER.fullmatch(term))
    return identifiers / len(terms) if terms else 0.0


def across(question: Lang, passage: Lang) -> bool:
    """Whether the two are known to differ; an unknown language on either side says nothing."""
    return Lang.UND not in (question, passage) and question is not passage
