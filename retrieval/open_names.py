"""Whether an answer has to be given for each of several entities of a name. Pure.

A name that the question's words about its owner leave open (`readings.py`) may still be decided by what the
question asks: `What hymn did Luther write after the martyrdom of Esch?` has its answer in one passage, and
whoever else is called so has none. Documents bring people of one name on slight grounds (two organisations
beside it), so that such a list would hide the answer more often than it kept two people apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingest.disambiguate import context_terms
from retrieval.entity_names import COMMON, Named

_COMPARABLE = 0.5  # of the best relevance: what is less likely to answer by half is no rival answer
_TELLING = (
    2.0  # words beside the name from which a question says what it wants to know: `when did he join` has one
)
_BIGRAM = 0.5  # word: two characters of Chinese begin or end half a word each


def words_beside(question: str, name: Named) -> float:
    """How many words a question has beside a name, without those that every question has.

    Two overlapping characters of Chinese count as half a word.
    """
    terms = context_terms(f"{question[: name.start]} {question[name.end :]}") - COMMON
    return sum(1.0 if term.isascii() else _BIGRAM for term in terms)


def answered_for_each(
    groups: Sequence[frozenset[int]], relevance: Mapping[int, float], said: float
) -> Sequence[frozenset[int]]:
    """The readings of a name that the answer lists; none where the ordinary answer is due.

    Args:
        groups: passages of every reading.
        relevance: of the ranked passages, in [0, 1], by passage id; passages about somebody else left out.
        said: of `words_beside`.

    Returns:
        All groups where the question says too little to decide by what it asks; else those that answer it
        about as well as the best passage. Empty when fewer than two are left, or when the best passage is
        of none and none comes near it.
    """
    floor = _COMPARABLE * max(relevance.values(), default=0.0)
    rivals = [group for group in groups if max((relevance.get(i, 0.0) for i in group), default=0.0) >= floor]
    if not rivals:
        return ()
    if said < _TELLING:
        return groups
    return rivals if len(rivals) > 1 else ()
