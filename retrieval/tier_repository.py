"""Rows ↔ values of what each tier serves; light, because the HTTP process reads it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import update
from sqlalchemy.orm import Session

from core.db import utcnow
from core.models import TierRow
from core.types import Tier

_ENOUGH_TO_TELL = 10_000  # vectors; fewer are kept in another form than many


@dataclass(frozen=True, slots=True)
class TierState:
    """What the database says that a tier serves."""

    generation: int = 0
    applied_seq: int = 0
    model: str = ""
    dimension: int = 0
    previous: tuple[int, ...] = ()
    refused: str | None = None


def tier_state(session: Session, tier: str) -> TierState:
    """The tier's row, or the state of a tier that was never written."""
    row = session.get(TierRow, tier)
    if row is None:
        return TierState()
    return TierState(
        row.generation, row.applied_seq, row.model, row.dimension, tuple(row.previous), row.refused
    )


def set_tier_state(session: Session, tier: str, state: TierState) -> None:
    """Store what the tier serves from now on."""
    row = session.get(TierRow, tier)
    if row is None:
        row = TierRow(tier=tier)
        session.add(row)
    row.generation, row.applied_seq = state.generation, state.applied_seq
    row.model, row.dimension = state.model, state.dimension
    row.previous, row.refused = list(state.previous), state.refused
    row.published_at = utcnow()


def set_published(
    session: Session, state: TierState, *, refused: Mapping[str, str], mended: Sequence[str] = ()
) -> None:
    """Store a published generation; it is one for all parts of the index.

    The hot tier's row speaks for the whole index. The rows of the other parts say why one is refused, and
    how it is searched.

    Args:
        session: a write session.
        state: what is published.
        refused: parts that hold less than they should, with the reason.
        mended: parts that are whole again. A reader's refusal of any other part stays.
    """
    before = tier_state(session, Tier.HOT.value)
    set_tier_state(session, Tier.HOT.value, replace(state, refused=before.refused))
    for part in (*mended, *refused):
        set_refused(session, part, refused.get(part))
    session.execute(
        update(TierRow)
        .where(TierRow.tier != Tier.HOT.value)
        .values(generation=state.generation, published_at=utcnow())
    )


def set_refused(session: Session, tier: str, reason: str | None) -> None:
    """Note that a reader found the tier damaged, or that it is whole again."""
    row = session.get(TierRow, tier)
    if row is None:
        if reason is None:
            return
        row = TierRow(tier=tier)
        session.add(row)
    row.refused = reason


def set_ram_bytes(session: Session, tier: str, size: int) -> None:
    """Note what a process that serves the tier holds of it in memory."""
    row = session.get(TierRow, tier)
    if row is None:
        row = TierRow(tier=tier)
        session.add(row)
    row.ram_bytes = size


def ram_untold(session: Session) -> bool:
    """Whether something is published and nobody has noted yet what it takes in memory."""
    row = session.get(TierRow, Tier.HOT.value)
    return row is not None and row.generation > 0 and row.ram_bytes is None


def bytes_per_vector(session: Session, tier: Tier, vectors: int) -> float | None:
    """What a vector of the tier takes in memory.

    As last noted where the tier holds enough to tell, else by its width: fp16 and links in the hot tier,
    eight bits a number in the warm one, one bit in the cold one. None while nothing was indexed.

    Args:
        session: to read.
        tier: which one.
        vectors: how many it holds now.
    """
    row = session.get(TierRow, tier.value)
    if row is not None and row.ram_bytes and vectors >= _ENOUGH_TO_TELL:
        return row.ram_bytes / vectors
    hot = session.get(TierRow, Tier.HOT.value)  # its row speaks for the whole index
    if hot is None or not hot.dimension:
        return None
    per_number, beside = {Tier.HOT: (2.0, 146), Tier.WARM: (1.0, 20), Tier.COLD: (0.125, 24)}[tier]
    return per_number * hot.dimension + beside
