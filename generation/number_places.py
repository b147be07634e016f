"""Whether a number of a claim stands in another number's place, or comes from a neighbour. Pure; zh and en.

`attachment.py` looks at clauses; inside one clause (`rose from 1961 to 2012`) only the words right beside a
number tell which one it is. And a number that the sentence of the claim does not have belongs to what its
own sentence says: `It was left as it was. In 1954 the hall was sold` gives no `left as it was in 1954`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from generation.attachment import YEARS, clauses, same_kind
from generation.exchange import tokens_of
from generation.facts import Fact, facts_of
from generation.wording import HAN_CHAR, STOP_WORDS, content_terms
from ingest.sentences import sentences

_NUMERAL = re.compile(r"\d[\d.,]*")
_HAN = re.compile(f"[{HAN_CHAR}]")
_SILENT_HAN = frozenset("年月日号的了是在和与及或从到至由于为以而并其也")
_CLEARLY = 3  # words beside it that the claim's number shares with another number's place
_MORE = 2  # by so many more than with its own
_BESIDE = 6  # words to each side in which a number's own words stand
_SAME_TIME = re.compile(
    r"\b(?:that|this|(?:the )?(?:same|following|next|previous)) "
    r"(?:year|month|day|summer|winter|spring|autumn)\b|\b(?:then|meanwhile|at the time|in turn)\b"
    r"|当年|同年|该年|次年|翌年|前一年|当月|同月|当时|此时|其中|分别",
    re.IGNORECASE,
)


def displaced_number(claim: str, source: str) -> str:
    """The first number of a claim that stands where its source has another one; else the empty string.

    Args:
        claim: one sentence.
        source: the sentences that should carry it. Numbers in digits are looked at.
    """
    ours, theirs = _tokens(claim), _tokens(source)
    numerals = [(j, t) for j, t in enumerate(theirs) if _is_number(t)]
    for i, token in enumerate(ours):
        if not _is_number(token):
            continue
        own = [j for j, t in numerals if t == token]
        others = [j for j, t in numerals if t != token]
        if not own or not others:
            continue
        rival = max(others, key=lambda j: _agreement(ours, i, theirs, j))
        shared = _agreement(ours, i, theirs, rival)
        if shared < max(_CLEARLY, _MORE + max(_agreement(ours, i, theirs, j) for j in own)):
            continue
        its = frozenset[str]().union(*(_beside(theirs, j) for j in own)) - _beside(theirs, rival)
        if not its & _beside(ours, i):
            return token
    return ""


def borrowed_number(claim: str, sentence: str, window: str) -> str:
    """The first number or month that a claim takes from a neighbour of its sentence and nothing else with it.

    A claim that takes further words from the clause of the number joins the two sentences, and a sentence
    that says `that year` means its neighbour's.

    Args:
        claim: one sentence.
        sentence: of the window, the one that shares most with it.
        window: the sentences that carry it.
    """
    if sentence == window or _SAME_TIME.search(window):
        return ""
    here, taken = facts_of(sentence), content_terms(claim) - content_terms(sentence)
    for fact in facts_of(claim):
        if _among(fact, here):
            continue
        own = [c for c in clauses(window) if _among(fact, c.facts)]
        said = [c.terms - content_terms(sentence) for c in own]
        if own and all(said) and not any(terms & taken for terms in said):
            return str(fact)
    return ""


def rivalled_year(claim: str, window: str) -> str:
    """The first year of a claim for which the sentences that carry it have another; else the empty string.

    `The second was filmed in 1985` leaves no room for 1984, though another sentence has that year. A claim of
    several sentences may have one from each.
    """
    if len(sentences(claim)) > 1:
        return ""
    stated, here = facts_of(claim), facts_of(window)
    for fact in stated:
        rivals = [f for f in here if same_kind(fact, f) and not _among(f, stated)]
        if fact.value in YEARS and rivals and not _among(fact, here):
            return str(fact)
    return ""


def _among(fact: Fact, known: Sequence[Fact]) -> bool:
    return any(fact.agrees_with(other) for other in known)


@lru_cache(maxsize=4096)
def _tokens(text: str) -> tuple[str, ...]:
    """Tokens in order, without marks; `1997-1998` is two numbers, 1,000 is 1000."""
    found: list[str] = []
    for token in tokens_of(text):
        parts = token.split("-") if re.fullmatch(r"[\d.,]+(?:-[\d.,]+)+", token) else [token]
        found += [p.replace(",", "") if _NUMERAL.fullmatch(p) else p for p in parts if p[0].isalnum()]
    return tuple(found)


def _is_number(token: str) -> bool:
    return _NUMERAL.fullmatch(token) is not None


def _agreement(ours: Sequence[str], i: int, theirs: Sequence[str], j: int) -> float:
    """Words that two places share without a gap, before and after; the ends of both texts count as one.

    Two Chinese characters are one word.
    """
    shared = 0.0
    for step, ends in ((-1, (-1, -1)), (1, (len(ours), len(theirs)))):
        a, b = i + step, j + step
        while 0 <= a < len(ours) and 0 <= b < len(theirs) and ours[a] == theirs[b]:
            shared += 0.5 if _HAN.match(ours[a]) else 1.0
            a, b = a + step, b + step
        shared += (a, b) == ends
    return shared


def _beside(tokens: Sequence[str], place: int) -> frozenset[str]:
    """Telling tokens beside a number, up to the next number on each side."""
    found: set[str] = set()
    for step in (-1, 1):
        for at in range(place + step, place + step * (_BESIDE + 1), step):
            if not 0 <= at < len(tokens) or _is_number(tokens[at]):
                break
            if tokens[at] not in STOP_WORDS and tokens[at] not in _SILENT_HAN:
                found.add(tokens[at])
    return frozenset(found)
