"""How far a surface and a name can mean the same thing: tokens, forms and the strength of a match. Pure.

Both languages go one way: names are folded for search, marks of accent and punctuation fall away, legal forms
and titles are set apart, and what is left is compared token by token. A Han run is one token.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import regex

from ingest.fold import search_fold

_TOKEN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]+|[\p{L}\p{N}]+")
_HAN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_POSSESSIVE = regex.compile(r"'s?(?!\w)")
_DOTTED = regex.compile(r"\b(?:\p{L}\.){2,}\p{L}?\b\.?|\b(?:\p{L}\.){2,}")
_TAIL = regex.compile(
    r"(?<=.)(?:,|\(|（|\s(?:of|de|von|van|di|at|in|for)\s).*", regex.DOTALL | regex.IGNORECASE
)
_ELISION = regex.compile(r"\b(?:d|l|o)'(?=\p{L})")

FUNCTION_WORDS = frozenset((
    "a", "an", "and", "at", "by", "de", "del", "della", "der", "des", "di", "do", "du", "el", "et", "for",
    "from", "in", "la", "las", "le", "les", "los", "of", "on", "or", "the", "to", "und", "van", "von", "y",
    "with",
))  # fmt: skip
LEGAL_FORMS = frozenset((
    "inc", "incorporated", "corp", "corporation", "co", "company", "ltd", "limited", "llc", "llp", "plc",
    "lp", "gmbh", "ag", "sa", "nv", "bv", "oy", "ab", "kk", "spa", "srl", "pty", "pte", "holdings",
    "holding", "group",
))  # fmt: skip
TITLES = frozenset((
    "mr", "mrs", "ms", "miss", "dr", "prof", "professor", "sir", "dame", "lord", "lady", "president",
    "senator", "sen", "rep", "representative", "governor", "gov", "mayor", "king", "queen", "prince",
    "princess", "pope", "saint", "st", "captain", "capt", "colonel", "col", "general", "gen", "major",
    "maj", "lieutenant", "lt", "sergeant", "sgt", "admiral", "judge", "justice", "minister", "chancellor",
    "secretary", "chairman", "chairwoman", "ceo", "rev", "reverend", "bishop", "archbishop", "cardinal",
    "coach",
))  # fmt: skip
ZH_LEGAL_FORMS = (
    "股份有限公司", "有限责任公司", "有限公司", "集团公司", "股份公司", "集团", "公司", "控股", "股份",
)  # fmt: skip
ZH_TITLES = (
    "先生", "女士", "教授", "博士", "主任", "经理", "总经理", "董事长", "院长", "校长", "局长", "部长",
    "书记", "主席", "总统", "总理", "工程师", "老师", "医生",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NameForm:
    """A name ready to be compared.

    Attributes:
        tokens: content tokens in order, folded, without accents, function words, titles and legal forms.
        key: all tokens joined; equal keys are the same spelling.
        core: content tokens joined.
        initials: first letters of the tokens with and without function words.
        head: content tokens before the first `of`, comma or bracket: what the name is shortened to.
        capitalised: whether the spelling has a capital letter (or no case at all).
    """

    tokens: tuple[str, ...]
    key: str
    core: str
    initials: frozenset[str]
    head: frozenset[str]
    capitalised: bool


@lru_cache(maxsize=1 << 16)
def name_form(name: str) -> NameForm:
    """Take a name apart. Never empty for a name with a letter or digit."""
    words = tokens_of(name)
    content = [w for w in words if w not in FUNCTION_WORDS]
    addressed = _address(name, words)
    kept = [w for w in content if w not in LEGAL_FORMS and w not in addressed]
    core = [_bare_han(w) for w in kept or content or words]
    return NameForm(
        tokens=tuple(core),
        key=" ".join(words),
        core=" ".join(core),
        initials=_initials(words, content, core),
        head=frozenset(_bare_han(w) for w in tokens_of(_TAIL.sub("", name))) or frozenset(core),
        capitalised=name == name.upper() == name.lower() or any(c.isupper() for c in name),
    )


def tokens_of(text: str) -> list[str]:
    """Folded tokens without accents; `U.S.` is `us`, `O'Neill` is `oneill`, a Han run is one token."""
    folded = without_accents(search_fold(text))
    if "'" in folded:
        folded = _POSSESSIVE.sub("", _ELISION.sub(lambda m: m.group()[0], folded))
    if "." in folded:
        folded = _DOTTED.sub(lambda m: m.group().replace(".", ""), folded)
    return _TOKEN.findall(folded)


def without_accents(text: str) -> str:
    """Latin letters without their marks; other scripts as they are."""
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFD", text)
    bare = "".join(c for c in parts if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", bare).translate(_LETTERS)


_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th", "ð": "d"}
)


def _address(name: str, words: list[str]) -> frozenset[str]:
    """Titles in front of a name: `President` of `President Kim`, not of `President of the Senate`."""
    count = 0
    while count < len(words) and words[count] in TITLES:
        count += 1
    if count == 0 or count == len(words) or words[count] in FUNCTION_WORDS or "," in name:
        return frozenset()
    return frozenset(words[:count])


def _bare_han(word: str) -> str:
    """A Han name without its legal form or title, as long as two characters stay."""
    if not _HAN.match(word):
        return word
    for suffix in (*ZH_LEGAL_FORMS, *ZH_TITLES):
        if word.endswith(suffix) and len(word) - len(suffix) >= 2:
            return word[: -len(suffix)]
    return word


def _initials(words: list[str], content: list[str], core: list[str]) -> frozenset[str]:
    found: set[str] = set()
    for chosen in (words, content, core):
        letters = "".join(w[0] for w in chosen if w[0].isalpha())
        if len(letters) >= 2 and letters.isascii():
            found.add(letters)
    return frozenset(found)
