"""What else the things are called that a question names: acronym and full name, Chinese and English. Pure.

A passage may call the `世界卫生组织` WHO only. The catalogue knows both names, so the lexical route looks for
the other ones as well, with less weight: the user's own words stay what was asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingest.catalogue import Catalogue, alias_key
from retrieval.analyzer import tokens

WEIGHT = 0.5  # of all tokens of another name together, against 1 for each token as asked
_SURE = 0.8  # share of the likeliest reading; a name of several things would bring the wrong ones along
_NAMES = 3  # other names taken of each thing: most catalogues list the usual ones first
_TERMS = 24  # tokens added in all, so that a question of many names stays as fast as others


def other_names(question: str, catalogue: Catalogue) -> list[str]:
    """Other names of what the question names, in the order of the question; none that it holds already."""
    asked = set(tokens(question))
    found: dict[str, str] = {}
    for match in catalogue.find(question):
        readings = catalogue.readings(question[match.start : match.end])
        entity_id, share = max(
            readings.items(), key=lambda reading: (reading[1], reading[0]), default=("", 0)
        )
        if share < _SURE:
            continue
        others = {alias_key(name): name for name in catalogue.spellings(entity_id)}
        missing = [folded for folded, name in others.items() if not asked.issuperset(tokens(name))]
        for folded in missing[:_NAMES]:
            found.setdefault(folded, others[folded])
    return list(found.values())


def terms_beside(asked: Sequence[str], names: Sequence[str]) -> dict[str, float]:
    """Tokens of other names with their weights, without those that are asked for anyway.

    A name's tokens share one weight, so that a long name does not outweigh the short one it stands for.
    """
    known, weights = set(asked), dict[str, float]()
    for name in names:
        own = list(dict.fromkeys(tokens(name)))
        for token in own:
            if token not in known and (token in weights or len(weights) < _TERMS):
                weights[token] = max(weights.get(token, 0.0), WEIGHT / len(own) ** 0.5)
    return weights
