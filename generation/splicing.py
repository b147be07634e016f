"""What a claim puts together from sentences that speak of different things. Pure; Chinese and English.

A name of the neighbour, or of what comes later, in the sentence that carries the rest makes another
statement, though each word of it stands in the passage.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

from core.types import Span
from generation.relations import content_overlap
from generation.slots import PREPOSITIONS, before_name
from generation.subject import subject_head, subject_of
from generation.wording import STOP_WORDS, content_terms, name_stands, names_of, stem, words_of
from ingest.sentences import sentences

_REPEATED = 2  # words that a claim says twice and its source once, from which it is another statement
_MOSTLY = 0.6  # overlap from which a claim is mostly one sentence
_HELD = 0.75  # share of the words beside a foreign name that one sentence has
_HELD_FROM_HEAD = 0.85  # share of the words beside a subject up to the sentence that has most of them
_LEAST_REST = 3  # such words
_PREDICATE_NAME = re.compile(
    r"\b(?:is|are|was|were)\s+(?:called\s+|named\s+)?(?:the\s+)?[\"“]?"
    r"([A-Z][\w’'-]*(?:\s+(?:(?:of|de|von|van|the)\s+)*[A-Z][\w’'-]*)*)"
)


def spliced_from(claim: str, sentence: str, window: str) -> str:
    """What a claim that is mostly one sentence puts in from elsewhere, or says twice; else the empty string.

    A name that is not the claim's subject must stand in the sentence that carries the claim: its neighbour's
    name makes another statement, a heading's too. So does a word that the sentence has once and the claim
    twice. A claim that takes more than the name from the neighbour joins the two.

    Args:
        claim: one sentence.
        sentence: of the window, the one that shares most with it.
        window: the sentences that carry it.
    """
    ours, theirs = Counter(words_of(claim)), Counter(words_of(sentence))
    terms = content_terms(claim)
    twice = [w for w, n in ours.items() if n > max(1, theirs[w]) and stem(w) in terms]
    subject = subject_of(claim)
    foreign = [
        n
        for n in names_of(claim)
        if n not in subject and not name_stands(n, sentence) and not _in_its_place(n, claim, window)
    ]
    rest, has = terms - content_terms(" ".join(foreign)), content_terms(sentence)
    mostly = content_overlap(claim, sentence) >= _MOSTLY
    alone = len(rest) >= _LEAST_REST and len(rest & has) >= _HELD * len(rest)
    if foreign and mostly:
        return foreign[0]
    if alone and not (rest - has) & content_terms(window):
        placed = [n for n in foreign if before_name(n, claim) in PREPOSITIONS]
        if placed:
            return placed[0]
    return twice[0] if len(twice) >= (1 if mostly else _REPEATED) else ""


def name_elsewhere(claim: str, carrying: str, above: str) -> str:
    """A name of the claim, not in its subject, that its sentences lack though the passage has it; else empty.

    A source has other words for `CO2` and such codes. A claim of several sentences has no one place.

    Args:
        claim: one sentence.
        carrying: the sentences that carry it, with the one before a pronoun.
        above: names above the passage.
    """
    if len(sentences(claim)) > 1:
        return ""
    subject, known = subject_of(claim), f"{above}\n{carrying}"
    named = [n for n in names_of(claim) if n not in subject and n.isalpha() and not n.isupper()]
    return next((n for n in named if not name_stands(n, known)), "")


def subject_from_later(claim: str, passage: str, carried: Span, above: str = "") -> str:
    """A subject of the claim that stands only after the sentence which says the rest; else the empty string.

    What a sentence says may be said of a name before it (`She was elected`), hardly of one that comes later.
    A subject is the name or noun that opens the claim, and the name that it is said to be (`The leader was
    …`).

    Args:
        claim: one sentence.
        passage: that bears it out.
        carried: the sentences that do, as offsets into the passage.
        above: names above the passage.
    """
    subject, predicate = subject_of(claim), _PREDICATE_NAME.search(claim)
    named = f"{subject} {predicate[1] if predicate else ''}"
    for name in names_of(claim):
        if name not in named:
            continue
        so_far, later = _around(content_terms(claim) - content_terms(name), passage, carried)
        known = name_stands(name, f"{above} {so_far}") or _in_its_place(name, claim, passage)
        if name_stands(name, later) and not known:
            return name
    head = subject_head(claim)
    rest = content_terms(claim) - head
    so_far, later = _around(rest, passage, carried)
    if len(rest & content_terms(so_far)) < _HELD_FROM_HEAD * len(rest):
        return ""  # not a sentence with another subject, but other words
    if head and head <= content_terms(later) and not head & content_terms(f"{above} {so_far}"):
        return min(head)
    return ""


def _in_its_place(name: str, claim: str, text: str) -> bool:
    """Whether the word before or after a name of the claim stands there in the text too."""
    ours, theirs = _telling_words(claim), _telling_words(text)
    names = {word for known in names_of(claim) for word in words_of(known)}
    beside = set(pairwise(theirs))
    return any(
        one != other and pair in beside
        for pair in pairwise(ours)
        for one, other in [(pair[0] in names, pair[1] in names)]
        if name.casefold() in (pair[0] if one else "", pair[1] if other else "")
    )


@lru_cache(maxsize=4096)
def _telling_words(text: str) -> list[str]:
    return [w for w in words_of(text) if w not in STOP_WORDS]


def _around(rest: frozenset[str], passage: str, carried: Span) -> tuple[str, str]:
    """The passage up to the end of the carrying sentence with most of these terms, and what follows it."""
    spans = [s for s in sentences(passage) if carried.start <= s.start and s.end <= carried.end]
    shared = [(len(rest & content_terms(passage[s.start : s.end])), s.end) for s in spans]
    end = max(shared, default=(0, carried.end))[1]
    return passage[:end], passage[end:]
