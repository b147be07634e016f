"""Choose the evidence from a ranking: diverse, capped per document, within the token budget. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from retrieval.dedupe import Seen, fingerprint


@dataclass(frozen=True, slots=True)
class Candidate:
    """One ranked passage; `key` is the caller's handle, its passage id."""

    key: int
    document_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """A recalled passage that was left out.

    Attributes:
        why: `duplicate` (of `of`), `document_cap`, `budget`, `irrelevant`, `another_entity` or `too_old`.
    """

    key: int
    why: str
    of: int | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """The kept keys in ranking order, how many duplicates stand behind each, and what was left out."""

    kept: tuple[int, ...]
    collapsed: dict[int, int] = field(default_factory=dict[int, int])
    dropped: tuple[Dropped, ...] = ()


def diversify(ranked: Sequence[Candidate], *, per_document_cap: int, limit: int) -> Selection:
    """Walk the ranking once: collapse near-duplicates, hold back what exceeds its document's cap, refill.

    The first of two near-duplicates in the ranking stays and counts the other. When fewer than `limit`
    passages are left, held-back ones fill the rest in ranking order: a cap makes room for other documents and
    must not leave room empty.

    Args:
        ranked: best first.
        per_document_cap: passages of one document that go in before others had their turn, ≥ 1.
        limit: passages wanted, ≥ 1.

    Returns:
        At most `limit` keys in ranking order. Passages beyond the limit are neither kept nor dropped.
    """
    kept: list[int] = []
    held: list[int] = []
    seen, numbers = Seen(), list[int]()
    waiting: set[int] = set()
    per_document: Counter[str] = Counter()
    collapsed: Counter[int] = Counter()
    dropped: list[Dropped] = []
    position = {candidate.key: i for i, candidate in enumerate(ranked)}
    for candidate in ranked:
        mark = fingerprint(candidate.text)
        twins = [numbers[n] for n in seen.twins(mark)]
        if twins:
            twin = next((key for key in twins if key not in waiting), twins[0])
            collapsed[twin] += 1
            dropped.append(Dropped(candidate.key, "duplicate", twin))
        elif len(kept) >= limit:
            continue  # full; duplicates further down are still counted
        elif per_document[candidate.document_id] >= per_document_cap:
            held.append(candidate.key)
            waiting.add(candidate.key)
            seen.add(mark)
            numbers.append(candidate.key)
        else:
            per_document[candidate.document_id] += 1
            kept.append(candidate.key)
            seen.add(mark)
            numbers.append(candidate.key)
    refill, over = held[: limit - len(kept)], held[limit - len(kept) :]
    dropped.extend(Dropped(key, "document_cap") for key in over)
    keys = sorted((*kept, *refill), key=position.__getitem__)
    return Selection(tuple(keys), {k: collapsed[k] for k in keys if collapsed[k]}, tuple(dropped))


def fit(
    ranked: Sequence[Candidate], *, budget: int, count_tokens: Callable[[str], int]
) -> tuple[tuple[int, ...], tuple[Dropped, ...]]:
    """Whole passages by rank until the budget is used; one that does not fit gives way to smaller ones.

    Args:
        ranked: best first; `text` is what the prompt will show of each, marker and heading included.
        budget: tokens of the generator.
        count_tokens: the generator's own count.

    Returns:
        Kept keys in ranking order, and what was dropped for lack of room.
    """
    left, kept, dropped = budget, list[int](), list[Dropped]()
    for candidate in ranked:
        need = count_tokens(candidate.text)
        if need <= left:
            left -= need
            kept.append(candidate.key)
        else:
            dropped.append(Dropped(candidate.key, "budget"))
    return tuple(kept), tuple(dropped)
