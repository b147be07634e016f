"""Whether a number or date of a claim was taken from another thing of the same sentences. Pure.

`published the New Testament in 1523, and the whole Bible in 1530` has two years, and each belongs to the
clause that it stands in. A claim that says `the French Bible of 1523` has the year of the one and the words
of the other. Chinese and English.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from generation.facts import Fact, facts_of
from generation.subject import has_verb, subject_of
from generation.wording import HAN_CHAR, content_terms

_CUT = re.compile(
    r",(?!\d)|[;:()，；：、（）]|\s[—–-]\s|[。！？]|[.!?](?=\s|$)"
    r"|\b(?:and|but|while|whereas|then|followed by|who|which)\b|而(?!且)|并且|随后|然后|其中",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?。！？]")
_PARTICIPLE = re.compile(r"\s*(?:(?!during)\w+(?:ed|ing)|born|built|made|written)\b", re.IGNORECASE)
_HAN = re.compile(f"[{HAN_CHAR}]")
_LEAST_HAN = 2  # two-character terms that say something; one may join the ends of two words
_ANOTHERS = 2  # words of another number's clause, its verb among them, that make its statement
YEARS = range(1000, 2101)


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause with the numbers and months in it.

    Attributes:
        verb: whether it has one of its own.
        opens: it opens its sentence without a subject, as in `Founded in 1901, the club won …`.
    """

    text: str
    terms: frozenset[str]
    facts: tuple[Fact, ...]
    verb: bool
    opens: bool


def misattached(claim: str, source: str) -> str:
    """The first number or month of a claim that its source says of something else; else the empty string.

    Args:
        claim: one sentence.
        source: the sentences that should carry it.

    Returns:
        The fact as the claim writes it. A claim that has both of two facts is not looked at: which one
        belongs where shows in the order of its words (`exchange.py`).
    """
    ours, theirs = clauses(claim), clauses(source)
    stated, subject = facts_of(claim), content_terms(subject_of(claim))
    for fact in stated:
        own = [c for c in theirs if _has(c, fact)]
        rivals = _rivals(fact, stated, theirs) if own else []
        said = [c.terms for c in ours if _has(c, fact)]
        if any(_taken(terms, subject, own, rival, theirs) for rival in rivals for terms in said):
            return str(fact)
    return ""


def _taken(
    said: frozenset[str],
    subject: frozenset[str],
    own: Sequence[_Clause],
    rival: _Clause,
    clauses: Sequence[_Clause],
) -> bool:
    """Whether the words beside a fact are those of another fact's clause and none of its own."""
    mine = frozenset[str]().union(*(c.terms for c in own))
    elsewhere = frozenset[str]().union(*(c.terms for c in clauses if c is not rival))
    foreign = (said & rival.terms) - elsewhere
    if any(c.opens for c in own):
        foreign -= content_terms(subject_of(rival.text))  # `Founded in 1901, the club won …`
    verb = any(c.verb for c in own)
    if not verb:
        foreign -= _verbs(rival)
    kept = (said & mine) - rival.terms
    if verb:
        kept -= subject  # a subject may stand in front of both
    if not rival.verb:
        kept -= frozenset[str]().union(*map(_verbs, own))
    done = frozenset[str]().union(*map(_verbs, own))
    if verb and len(foreign) >= _ANOTHERS and foreign & _verbs(rival) and not said & done:
        return True  # `the treaty ended the war`, with the year in which it began
    return not kept and _telling(foreign)


def _telling(terms: frozenset[str]) -> bool:
    han = sum(bool(_HAN.search(t)) for t in terms)
    return len(terms) > han or han >= _LEAST_HAN


def _verbs(clause: _Clause) -> frozenset[str]:
    """Terms of a clause that may be its verb: another clause can leave it out and mean it."""
    return frozenset(t for w in re.findall(r"[a-z]+", clause.text) if has_verb(w) for t in content_terms(w))


def _rivals(fact: Fact, stated: Sequence[Fact], clauses: Sequence[_Clause]) -> list[_Clause]:
    found: list[_Clause] = []
    for clause in clauses:
        others = [f for f in clause.facts if same_kind(fact, f) and not fact.agrees_with(f)]
        if others and not _has(clause, fact) and not any(s.agrees_with(f) for f in others for s in stated):
            found.append(clause)
    return found


def same_kind(one: Fact, other: Fact) -> bool:
    """Whether one fact may be told for the other: both years, amounts of one dimension, or months."""
    if one.kind != other.kind or one.dimension != other.dimension:
        return False
    return (one.value in YEARS) == (other.value in YEARS)


def _has(clause: _Clause, fact: Fact) -> bool:
    return any(fact.agrees_with(f) for f in clause.facts)


@lru_cache(maxsize=4096)
def clauses(text: str) -> tuple[_Clause, ...]:
    """Clauses of a text; a piece that is only a date belongs to the pieces on both its sides."""
    pieces: list[tuple[str, bool]] = []  # with whether it opens a sentence
    start, opening = 0, True
    for cut in [*_CUT.finditer(text), None]:
        piece = text[start : cut.start() if cut else None]
        if any(c.isalnum() for c in piece):
            pieces.append((piece, opening))
            opening = False
        if cut:
            opening = opening or _SENTENCE_END.search(cut[0]) is not None
            start = cut.end()
    found: list[_Clause] = []
    for i, (piece, _) in enumerate(pieces):
        if not (terms := content_terms(piece)):
            continue
        first, last = i, i
        while first and not content_terms(pieces[first - 1][0]):
            first -= 1
        while last + 1 < len(pieces) and not content_terms(pieces[last + 1][0]):
            last += 1
        parts = [p for p, _ in pieces[first : last + 1]]
        verb = _HAN.search(piece) is not None or has_verb(piece)
        opens = pieces[i][1] and _PARTICIPLE.match(piece) is not None
        found.append(_Clause(piece, terms, tuple(f for p in parts for f in facts_of(p)), verb, opens))
    return tuple(found)
