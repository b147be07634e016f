"""Does a claim say something else than its source? Numbers, months, names, polarity, roles, order. Pure.

The first difference is the reason. Words that are missing are no contradiction; `verify.py` weighs those.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from generation.attachment import misattached
from generation.exchange import exchanged, name_mixed
from generation.facts import Fact, facts_of
from generation.number_places import displaced_number
from generation.polarity import agreement
from generation.prepositions import objects_exchanged
from generation.relations import (
    bound_changed,
    cause_reversed,
    content_overlap,
    exception_dropped,
    quantity_changed,
    roles_swapped,
    voice_changed,
)
from generation.roles import role_exchanged
from generation.run_together import run_together
from generation.superlatives import rank_raised
from generation.wording import (
    content_terms,
    direction_of,
    name_stands,
    names_of,
    negated,
    opposed,
    sides_exchanged,
)
from ingest.sentences import sentences

_MOSTLY_THE_SAME = 0.6  # overlap from which the order of what a claim and its source share is compared
_NEARLY_THE_SAME = 0.8  # overlap from which a claim is its source with a word changed, if at all
_OPPOSED = -0.25  # agreement of directions from which two sentences say opposite things


def contradiction(claim: str, window: str, passage: str, above: str = "") -> str:
    """The first thing in which the claim differs from its source, as a reason; empty when there is none.

    Args:
        claim: one sentence.
        window: the sentences that should carry it.
        passage: all of the passage; months and names may stand anywhere in it.
        above: names above the passage.
    """
    near, anywhere = facts_of(window), facts_of(passage)
    # A month may stand in the sentence before; one that the window names itself leaves no room for another.
    elsewhere = () if any(f.kind == "month" for f in near) else ("month",)
    for fact in facts_of(claim):
        if not carried(fact, near) and not (fact.kind in elsewhere and carried(fact, anywhere)):
            return f"{fact.kind}:{fact}"
    context = f"{above}\n{passage}"
    missing = [name for name in names_of(claim) if not name_stands(name, context)]
    if missing:
        return f"name:{missing[0]}"
    closest = closest_sentence(claim, window)
    if negated(claim) != negated(closest):
        return "negation"
    if pair := opposed(direction_of(claim), direction_of(window)):
        return f"direction:{pair}"
    return _relation(claim, closest, window, passage)


def _relation(claim: str, closest: str, window: str, passage: str) -> str:
    if piece := run_together(claim, window):
        return f"run_together:{piece}"
    parts = [passage[s.start : s.end] for s in sentences(passage)]
    if agreement(claim, closest, _shares(term_weights(content_terms(claim), parts))) < _OPPOSED:
        return "direction"
    if number := bound_changed(claim, window):
        return f"bound:{number}"
    if ranks := quantity_changed(claim, closest):
        return f"quantity:{ranks}"
    if highest := rank_raised(claim, window):
        return f"rank:{highest}"
    if cause_reversed(claim, closest):
        return "cause"
    if fact := misattached(claim, window) or displaced_number(claim, window):
        return f"attached:{fact}"
    if names := roles_swapped(claim, closest) or voice_changed(claim, window):
        return f"roles:{names}"
    if things := objects_exchanged(claim, closest, window):
        return f"roles:{things}"
    if role := role_exchanged(claim, closest):
        return f"role:{role}"
    if left_out := exception_dropped(claim, closest):
        return f"exception:{left_out}"
    overlap = content_overlap(claim, closest)
    if overlap >= _MOSTLY_THE_SAME and (sides := exchanged(claim, closest)):
        return f"roles:{sides}"
    if overlap >= _MOSTLY_THE_SAME and (mixed := name_mixed(claim, closest)):
        return f"name:{mixed}"
    if overlap < _NEARLY_THE_SAME:
        return ""
    if pair := sides_exchanged(claim, closest):
        return f"direction:{pair}"
    return ""


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights that sum to the number of terms, so that a threshold means the same for any passage."""
    mean = sum(weights.values()) / max(1, len(weights)) or 1.0
    return {term: weight / mean for term, weight in weights.items()}


def carried(fact: Fact, known: Sequence[Fact]) -> bool:
    """Whether one of the known numbers and months is this one."""
    return any(fact.agrees_with(other) for other in known)


def closest_sentence(claim: str, window: str) -> str:
    """The sentence of the window that shares most with the claim; polarity belongs to a sentence."""
    terms = content_terms(claim)
    parts = [window[s.start : s.end] for s in sentences(window)] or [window]
    return max(parts, key=lambda s: len(terms & content_terms(s)))


def term_weights(
    terms: frozenset[str],
    texts: Sequence[str],
    terms_of: Callable[[str], frozenset[str]] = content_terms,
) -> dict[str, float]:
    """Inverse document frequency of a claim's terms over these sentences; rare and absent ones weigh most."""
    seen = Counter(t for text in texts for t in terms_of(text) & terms)
    return {t: math.log(1 + (len(texts) + 1) / (seen[t] + 0.5)) for t in terms}
