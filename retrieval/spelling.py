"""Other spellings of a word that an index does not have, out of its own vocabulary. Pure.

Width, case, script and plurals are folded in index and question alike (`ingest/fold.py`,
`retrieval/analyzer.py`), so what is left are slips of the hand: a letter too many, too few, wrong, or two
in the wrong order (Damerau, CACM 1964, doi:10.1145/363958.363994: four of five misspellings are one such).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rapidfuzz import process
from rapidfuzz.distance import OSA

SHORTEST = 4  # shorter words have neighbours that mean something else
LONG = 8  # from here on two slips are believed
BELIEVED = 2  # first letters that are taken as right; they name the part of the vocabulary that is looked at
MOST = 2  # spellings taken per word
WEIGHT = 0.5  # of a spelling, against 1 of a word as written

Vocabulary = Callable[[str], Sequence[tuple[str, int]]]


def may_be_misspelt(word: str) -> bool:
    """Whether a token is a plain Latin word. Codes and numbers mean what they say; Chinese has no letters."""
    return len(word) >= SHORTEST and word.isascii() and word.isalpha()


def spellings(word: str, vocabulary: Vocabulary) -> list[str]:
    """The nearest words, the more frequent first among equally near ones; at most `MOST`.

    Args:
        word: a token that the index does not have.
        vocabulary: gives the words that begin with a prefix, with their frequencies.
    """
    frequency = {
        other: count
        for other, count in vocabulary(word[:BELIEVED])
        if abs(len(other) - len(word)) <= 2 and may_be_misspelt(other)
    }
    near = process.extract(
        word, list(frequency), scorer=OSA.distance, score_cutoff=2 if len(word) >= LONG else 1, limit=50
    )
    ranked = sorted(near, key=lambda found: (found[1], -frequency[found[0]], found[0]))
    return [other for other, distance, _ in ranked[:MOST] if distance == ranked[0][1]]


def with_spellings(
    terms: Mapping[str, float], known: Callable[[str], bool], vocabulary: Vocabulary
) -> dict[str, float]:
    """The terms, and beside each word that is not known its nearest spellings with less weight.

    A question whose words are all known comes back as it was.
    """
    weighed = dict(terms)
    for word, weight in terms.items():
        if may_be_misspelt(word) and not known(word):
            for other in spellings(word, vocabulary):
                weighed[other] = max(weighed.get(other, 0.0), WEIGHT * weight)
    return weighed
