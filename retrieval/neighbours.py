"""Passages beside the evidence, from the same section, while the prompt has room for them.

A neighbour is evidence of its own: it has its own marker, and what is cited of it points at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from core.models import PassageRow
from core.types import Passage, Scope
from retrieval.filters import Filters
from retrieval.live import StoredPassage, live_passages


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A passage beside evidence; `anchor` is the passage that it stands beside."""

    stored: StoredPassage
    anchor: int


def neighbours_of(
    session: Session, scope: Scope, anchors: Sequence[Passage], filters: Filters, *, reach: int
) -> list[Neighbour]:
    """Live passages at most `reach` places before or after an anchor, under the same headings.

    Anchors themselves are left out. The nearest stand first, those of better anchors before others; a
    passage between two anchors belongs to the better one.

    Args:
        session: open for reading.
        scope: who reads.
        anchors: best first.
        filters: of the question; a neighbour passes them like everything else.
        reach: places in the document version, at least 1.
    """
    if not anchors or reach < 1:
        return []
    beside = [
        and_(
            PassageRow.document_id == a.document_id,
            PassageRow.version == a.version,
            PassageRow.ordinal.between(a.ordinal - reach, a.ordinal + reach),
        )
        for a in anchors
    ]
    ids = session.scalars(select(PassageRow.id).where(or_(*beside)))
    known = live_passages(session, scope, set(ids) - {a.id for a in anchors}, filters)
    found: dict[int, tuple[int, int, Neighbour]] = {}
    for rank, anchor in enumerate(anchors):
        for passage_id in known:
            stored = known[passage_id]
            apart = abs(stored.passage.ordinal - anchor.ordinal)
            if _same_section(stored.passage, anchor) and 0 < apart <= reach:
                place = (apart, rank, Neighbour(stored, anchor.id))
                found[passage_id] = min(found.get(passage_id, place), place, key=lambda p: p[:2])
    return [n for *_, n in sorted(found.values(), key=lambda p: (p[0], p[1], p[2].stored.passage.ordinal))]


def _same_section(a: Passage, b: Passage) -> bool:
    return (a.document_id, a.version, a.heading_path) == (b.document_id, b.version, b.heading_path)


def that_fit(
    found: Iterable[Neighbour], *, room: int, most: int, count: Callable[[StoredPassage], int]
) -> list[Neighbour]:
    """Neighbours in the order given, each whole, while tokens and places are left.

    Args:
        found: nearest first.
        room: tokens left.
        most: places left.
        count: tokens that the prompt shows of a passage.
    """
    kept: list[Neighbour] = []
    for neighbour in found:
        need = count(neighbour.stored)
        if len(kept) < most and need <= room:
            room -= need
            kept.append(neighbour)
    return kept
