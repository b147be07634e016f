"""What can be measured between a claim and the sentences given for it, as numbers. Pure.

The verdicts of `verify.py` are rules that name a reason; these are the same comparisons without thresholds,
over a whole list of passages, for evaluation (`measure_citations.py`) and for ordering.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from generation.contradiction import term_weights
from generation.facts import facts_of
from generation.polarity import agreement, direction_parity, direction_sum, no_effect
from generation.relations import hedge_dropped, quantity_changed, sole_added
from generation.wording import content_terms, names_of, negated

_TOGETHER = 3  # sentences that may carry a claim together
_LOOKED_AT = 3  # best sentences whose direction is compared

NAMES: tuple[str, ...] = (
    "cover_best", "cover_together", "cover_all", "cover_mean", "missing_words", "claim_words",
    "facts", "facts_not_near", "facts_missing", "names_not_near", "names_missing",
    "negation", "negation_added", "negation_dropped", "direction_near", "direction_all", "direction_sum",
    "direction_parity", "no_effect_added", "no_effect_dropped", "no_effect_both", "quantity", "sole", "hedge",
)  # fmt: skip


def signals(claim: str, sentences: Sequence[str]) -> dict[str, float]:
    """Compare a claim with a list of sentences.

    Args:
        claim: one sentence.
        sentences: of all passages that were given for it, in order.

    Returns:
        A value for each of `NAMES`. `cover_*` are shares of the claim's terms, weighted by their rarity in
        the list: in the best sentence, in the three that together hold most, in all of them, and the mean of
        the best five. `direction_*` are positive where claim and sentences point the same way.
    """
    terms = content_terms(claim)
    weights = term_weights(terms, sentences)
    total = sum(weights.values()) or 1.0
    found = [content_terms(s) & terms for s in sentences]
    covers = [sum(weights[t] for t in own) / total for own in found]
    order = sorted(range(len(sentences)), key=lambda i: (-covers[i], i))
    chosen, together = _together(found, weights)
    everything = frozenset[str]().union(*found)
    best = " ".join(sentences[i] for i in order[:1])
    near = " ".join(sentences[i] for i in chosen)
    values: dict[str, float] = {
        "cover_best": covers[order[0]] if order else 0.0,
        "cover_together": sum(weights[t] for t in together) / total,
        "cover_all": sum(weights[t] for t in everything) / total,
        "cover_mean": sum(covers[i] for i in order[:5]) / max(1, len(order[:5])),
        "missing_words": float(len(terms - everything)),
        "claim_words": math.log1p(len(terms)),
        "quantity": float(bool(quantity_changed(claim, best))),
        "sole": float(sole_added(claim, near)),
        "hedge": float(bool(hedge_dropped(claim, best))),
    }
    values |= _facts(claim, near, " ".join(sentences))
    values |= _directions(claim, sentences, covers, order, weights)
    return values


def _together(found: Sequence[frozenset[str]], weights: dict[str, float]) -> tuple[list[int], frozenset[str]]:
    chosen: list[int] = []
    held: frozenset[str] = frozenset()
    for _ in range(min(_TOGETHER, len(found))):
        gains = [sum(weights[t] for t in own - held) for own in found]
        best = max(range(len(found)), key=lambda i: (gains[i], -i))
        if gains[best] <= 0:
            break
        chosen.append(best)
        held |= found[best]
    return sorted(chosen), held


def _facts(claim: str, near: str, everything: str) -> dict[str, float]:
    stated, beside, anywhere = facts_of(claim), facts_of(near), facts_of(everything)
    names = [name.casefold() for name in names_of(claim)]
    near, everything = near.casefold(), everything.casefold()
    return {
        "facts": float(len(stated)),
        "facts_not_near": float(sum(not any(f.agrees_with(o) for o in beside) for f in stated)),
        "facts_missing": float(sum(not any(f.agrees_with(o) for o in anywhere) for f in stated)),
        "names_not_near": float(sum(name not in near for name in names)),
        "names_missing": float(sum(name not in everything for name in names)),
    }


def _directions(
    claim: str,
    sentences: Sequence[str],
    covers: Sequence[float],
    order: Sequence[int],
    weights: dict[str, float],
) -> dict[str, float]:
    first, end = NAMES.index("negation"), NAMES.index("quantity")
    values: dict[str, float] = dict.fromkeys(NAMES[first:end], 0.0)
    ours, silent = negated(claim), no_effect(claim)
    for i in order[:_LOOKED_AT]:
        weight, sentence = covers[i], sentences[i]
        theirs, no = negated(sentence), no_effect(sentence)
        values["negation"] += weight * (ours != theirs)
        values["negation_added"] += weight * (ours and not theirs)
        values["negation_dropped"] += weight * (theirs and not ours)
        values["no_effect_added"] += weight * (silent and not no)
        values["no_effect_dropped"] += weight * (no and not silent)
        values["no_effect_both"] += weight * (silent and no)
        values["direction_near"] += weight * agreement(claim, sentence, weights)
        values["direction_sum"] += weight * direction_sum(claim) * direction_sum(sentence)
        values["direction_parity"] += weight * direction_parity(claim) * direction_parity(sentence)
    for i, sentence in enumerate(sentences):
        if covers[i]:
            values["direction_all"] += covers[i] * agreement(claim, sentence, weights)
    return values
