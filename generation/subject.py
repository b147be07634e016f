"""What a sentence speaks about: the words before its verb, without a leading phrase of time or place. Pure.

Rules of thumb in place of a tagger, for Chinese and English. They err to the short side: a subject that is
cut early loses a modifier, one that is cut late would take the object along.
"""

from __future__ import annotations

import re
from functools import lru_cache

from generation.facts import MONTHS
from generation.wording import HAN_CHAR, STOP_WORDS, stem

_TOKEN = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*|\d[\d.,]*|[,;:()—]")
_DETERMINER_WORDS = "the a an its his her their our my most more all no some many several each every"
_AUXILIARY_WORDS = """
is are was were be been has have had does do did can could will would may might must shall should became
become becomes remains cannot
"""
# A subject ends before these too; `of` and `for` belong to it.
_PREPOSITION_WORDS = """
in at on from to with by into as than during after before since over under against between through within
near around until without because while when where who which that whose and
"""
_IRREGULAR_PASTS = """
born built began bought brought came caught chose cost drew fell felt fought found gave got grew held kept
knew laid led left lost made met paid put ran read rose said sang sat saw sent set shot sold spent spoke
stood swam taught thought threw told took went won wore wrote begun chosen drawn driven fallen given grown
known run seen shown spoken sung taken thrown worn written
"""
_DETERMINERS = frozenset(_DETERMINER_WORDS.split())
_ARTICLES = frozenset(["", "the", "a", "an"])
_AUXILIARIES = frozenset(_AUXILIARY_WORDS.split())
_PREPOSITIONS = frozenset(_PREPOSITION_WORDS.split())
_IRREGULAR = frozenset(_IRREGULAR_PASTS.split())
_NO_PAST = frozenset(["need", "hundred", "indeed", "speed", "seed", "breed", "feed", "embed"])
_LEADING = re.compile(
    r"(?:in|at|on|by|from|during|after|before|since|under|with|among|within|against|as|for|despite|following|"
    r"throughout|through|between|until|around|according to|because of)\b",
    re.IGNORECASE,
)
_LEADING_TIME = re.compile(
    rf"(?:in|by|on|since|from|until|around)\s+(?:(?:{'|'.join(MONTHS)})\b\.?\s*)?(?:\d[\d,]*\s*)?,?\s*",
    re.IGNORECASE,
)
_HAN = re.compile(f"[{HAN_CHAR}]")
_LEADING_HAN = re.compile(
    "(?:在|于|当|自|从|据|根据|按照|关于|对于|由于|为了|截至|随着)[^，。；]*?(?:，|(?:中|里|上|时|后|前|期间|年间)(?!的))"
    r"|\d+年(?:\d+月)?(?:\d+日)?，?"
)
_END_HAN = re.compile(
    r"[，；：、（(。\d]|[一二三四五六七八九十〇零]+年|[^，。]{2}(?=了)|位于|成立|属于|来自|是|为|在|于|有|被|由|将|把|对|向|从|以|已|曾|正|会|能|可|应|必须|不|没|未|也|都|均|共|达|超过|击败|战胜"
)
_LEAST_HAN = 2  # characters of a Chinese subject
_OF = re.compile(r"\b(?:of|for)\b")


@lru_cache(maxsize=8192)
def subject_of(sentence: str) -> str:
    """The part of a sentence that names what it speaks about; empty where a phrase of place takes its room.

    `In 1990 the firm sold pumps` gives `the firm`, `The fees at state schools rose` gives `The fees`,
    在决赛中野马队击败了钢人队 gives 野马队.
    """
    if _HAN.search(sentence):
        return _chinese(sentence)
    text = _without_leading(sentence.strip(" \t\"'“‘(")).strip()
    end = _english_end(text)
    found = text[:end].strip()
    return text[: len(text) // 3] if found.lower() in _ARTICLES else found


@lru_cache(maxsize=8192)
def subject_head(sentence: str) -> frozenset[str]:
    """The noun of a subject, as a term: `The fees of the school` gives `fee`, 学校的学费 gives 学费."""
    subject = subject_of(sentence)
    if _HAN.search(subject):
        runs = re.findall(f"[{HAN_CHAR}]+", subject.rpartition("的")[2] or subject)
        return frozenset([runs[-1][-2:]]) if runs and len(runs[-1]) > 1 else frozenset()
    core = _OF.split(subject, maxsplit=1)[0]
    words = [w for w in _TOKEN.findall(core.lower()) if w[0].isalpha() and w not in STOP_WORDS]
    return frozenset([stem(words[-1])]) if words else frozenset()


def has_verb(text: str) -> bool:
    """Whether a text has a word that looks like its verb; `Folk metal band` and 丹佛野马队 have none."""
    if _HAN.search(text):
        return _END_HAN.search(text, _LEAST_HAN) is not None
    words = _TOKEN.findall(text)
    return any(
        w.lower() in _AUXILIARIES or _past(words, i) or _present(words, i) for i, w in enumerate(words)
    )


def _english_end(text: str) -> int:
    matches = list(_TOKEN.finditer(text))
    words = [m[0] for m in matches]
    for i in range(1, len(words)):
        if ends_noun(words, i):
            return matches[i].start()
    return len(text) // 3


def ends_noun(words: list[str], i: int) -> bool:
    """Whether what a noun names ends before this word: a verb, a preposition or a mark."""
    word = words[i]
    ends = not word[0].isalnum() or word.lower() in _AUXILIARIES or word.lower() in _PREPOSITIONS
    return ends or _past(words, i) or _present(words, i)


def _past(words: list[str], i: int) -> bool:
    """Whether a word is a past form and no adjective (`the isolated subdivision`)."""
    word = words[i]
    if not word[0].islower() or (i > 0 and words[i - 1].lower() in _DETERMINERS):
        return False
    return word in _IRREGULAR or (word.endswith("ed") and len(word) > 3 and word not in _NO_PAST)


def _present(words: list[str], i: int) -> bool:
    """Whether a word before an article is a verb, as in `pumps drive the fans`."""
    word = words[i]
    return (
        0 < i < len(words) - 1
        and word[0].islower()
        and word not in STOP_WORDS
        and words[i + 1].lower() in _DETERMINERS
    )


def _without_leading(text: str) -> str:
    if not _LEADING.match(text):
        return text
    time = _LEADING_TIME.match(text)
    if (
        time
        and re.search(rf"\d|\b(?:{'|'.join(MONTHS)})\b", time[0], re.IGNORECASE)
        and time.end() < len(text)
    ):
        return text[time.end() :]
    comma = re.search(r",(?!\d)", text)
    return text[comma.end() :] if comma and len(text) - comma.end() > 2 else ""


def _chinese(sentence: str) -> str:
    text = sentence.strip(" “「『\"'（(")
    leading = _LEADING_HAN.match(text)
    if leading and leading.end() < len(text):
        text = text[leading.end() :].lstrip("，")
    end = _END_HAN.search(text, min(_LEAST_HAN, len(text)))
    return text[: end.start()] if end else text[: max(_LEAST_HAN, len(text) // 3)]
