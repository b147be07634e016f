"""Which tier each document belongs in. Pure: documents, policies, budgets and a time in; moves out.

A document wants the hot tier while it is new or used, warm while it is not quite forgotten, cold after that.
Budgets then cut: who wants a full tier most stays, the others go one tier down.

Nothing flaps. A tier is left at half the use that entering it takes; whoever is in a tier is preferred to an
equal from outside; a document that was just moved is left alone unless space runs out. It follows that the
plan for a placement which a plan has made is empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from core.errors import InvalidInput
from core.types import Tier

_DAY = timedelta(days=1)
_KEEP = 0.5  # of the uses that enter a tier are enough to stay in it
_INCUMBENT = 1.25  # how much more wanted an outsider must be than who is in a full tier
_SETTLING = 4.0  # the same against one that was just moved in
_LOWER = {Tier.HOT: Tier.WARM, Tier.WARM: Tier.COLD}


class Reason(StrEnum):
    """Why a document moves."""

    PINNED = "pinned"  # an operator chose the tier
    NEW = "new"  # younger than `hot_days`
    USED = "used"  # found often enough
    IDLE = "idle"  # neither new nor used
    BUDGET = "budget"  # its tier is full of documents that are wanted more


class PlacementPolicy(BaseModel):
    """When documents of a collection change tiers. Unknown fields are refused.

    Attributes:
        pinned: keep every document in this tier, whatever its use; None lets use and age decide.
        hot_days: younger documents belong in the hot tier.
        hot_uses: so do those with as many uses, older ones counting less (`placement.half_life_days`).
        warm_days, warm_uses: the same of the warm tier, for those that are not hot.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    pinned: Tier | None = None
    hot_days: float = Field(default=30.0, ge=0, le=36_500)
    hot_uses: float = Field(default=2.0, gt=0, le=1_000_000)
    warm_days: float = Field(default=180.0, ge=0, le=36_500)
    warm_uses: float = Field(default=0.25, gt=0, le=1_000_000)

    @model_validator(mode="after")
    def _ordered(self) -> PlacementPolicy:
        if self.warm_days < self.hot_days or self.warm_uses > self.hot_uses:
            raise ValueError("warm_days must be at least hot_days, warm_uses at most hot_uses")
        return self


DEFAULT_POLICY = PlacementPolicy()


@dataclass(frozen=True, slots=True)
class Budgets:
    """Vectors that each tier may hold, and how long a moved document is left alone.

    Attributes:
        hot, warm: None means no limit; cold has none.
        roomy: idle documents stay hot while the hot tier holds no more than so many.
        min_stay: since its last move; only a pin or a full tier moves a document sooner.
    """

    hot: int | None = None
    warm: int | None = None
    roomy: int = 0
    min_stay: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class DocumentPlacement:
    """A live document as the planner sees it; `score` is its decayed uses at the time of the plan."""

    document_id: str
    collection_id: str
    tenant_id: str
    tier: Tier
    vectors: int
    score: float
    added_at: datetime
    moved_at: datetime | None = None
    pinned: Tier | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """One document from one tier to another; `facts` are the numbers behind the reason."""

    document: DocumentPlacement
    to: Tier
    reason: Reason
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(slots=True)
class _Seat:
    """Where a document stands in the plan."""

    document: DocumentPlacement
    wanted: Tier
    reason: Reason
    heat: float
    settling: bool

    def rank(self, tier: Tier) -> tuple[float, bool, str]:
        """Order in which a full tier is filled."""
        inside = self.document.tier == tier
        weight = (_SETTLING if self.settling else _INCUMBENT) if inside else 1.0
        return (-self.heat * weight, not inside, self.document.document_id)


def parse_placement_policy(body: Mapping[str, Any]) -> PlacementPolicy:
    """Read a policy from JSON.

    Raises:
        InvalidInput: an unknown field or a value out of bounds; the detail names each.
    """
    try:
        return PlacementPolicy.model_validate(dict(body))
    except ValidationError as error:
        lines = [
            f"{'.'.join(['placement', *map(str, e['loc'])])}: {e['msg'].removeprefix('Value error, ')}"
            for e in error.errors()
        ]
        raise InvalidInput("; ".join(lines)) from error


def decayed(score: float, at: datetime | None, now: datetime, half_life_days: float) -> float:
    """A score as of `now`, halved every `half_life_days` since `at`; a future `at` counts as now."""
    if at is None or score <= 0:
        return 0.0
    return score * 0.5 ** (max(0.0, (now - at) / _DAY) / half_life_days)


def plan_moves(
    documents: Iterable[DocumentPlacement],
    policies: Mapping[str, PlacementPolicy],
    budgets: Budgets,
    now: datetime,
) -> list[Move]:
    """The moves that bring every document into its tier; those that free space come first.

    Args:
        documents: every live document, in any order: the plan does not depend on it.
        policies: by collection; one without an entry has the default.
        budgets: of the whole engine.
        now: the time that ages are counted to.

    Returns:
        At most one move per document. Pinned documents may exceed a budget; nothing else does.
    """
    seats = [_seat(d, policies.get(d.collection_id, DEFAULT_POLICY), budgets, now) for d in documents]
    _fill_hot(seats, budgets)
    _fill(seats, Tier.WARM, budgets.warm)
    moves = [_move(seat, now) for seat in seats if seat.wanted != seat.document.tier]
    return sorted(moves, key=lambda m: (_depth(m.document.tier) - _depth(m.to), m.document.document_id))


def _seat(d: DocumentPlacement, policy: PlacementPolicy, budgets: Budgets, now: datetime) -> _Seat:
    age = max(0.0, (now - d.added_at) / _DAY)
    young = max(0.0, 1 - age / policy.hot_days) if policy.hot_days else 0.0
    heat = d.score / policy.hot_uses + young
    settling = d.moved_at is not None and now - d.moved_at < budgets.min_stay
    pin = d.pinned or policy.pinned
    if pin is not None:
        return _Seat(d, pin, Reason.PINNED, heat, settling)
    wanted, reason = _wanted(d, policy, age)
    return _Seat(d, d.tier if settling else wanted, reason, heat, settling)


def _wanted(d: DocumentPlacement, policy: PlacementPolicy, age: float) -> tuple[Tier, Reason]:
    if age < policy.hot_days:
        return Tier.HOT, Reason.NEW
    if d.score >= policy.hot_uses * (_KEEP if d.tier is Tier.HOT else 1):
        return Tier.HOT, Reason.USED
    if age < policy.warm_days or d.score >= policy.warm_uses * (1 if d.tier is Tier.COLD else _KEEP):
        return Tier.WARM, Reason.USED if d.tier is Tier.COLD else Reason.IDLE
    return Tier.COLD, Reason.IDLE


def _fill_hot(seats: Sequence[_Seat], budgets: Budgets) -> None:
    used = _fill(seats, Tier.HOT, budgets.hot)
    room = budgets.roomy if budgets.hot is None else min(budgets.roomy, budgets.hot)
    idle = [s for s in seats if s.document.tier is Tier.HOT and s.reason is Reason.IDLE and not _stays(s)]
    for seat in sorted(idle, key=lambda s: s.rank(Tier.HOT)):
        if used + seat.document.vectors <= room:
            seat.wanted = Tier.HOT
            used += seat.document.vectors


def _stays(seat: _Seat) -> bool:
    return seat.wanted is seat.document.tier


def _fill(seats: Sequence[_Seat], tier: Tier, budget: int | None) -> int:
    """Give a tier to those that want it most; the others go one tier down. Returns the vectors it holds."""
    wanting = [s for s in seats if s.wanted is tier]
    used = sum(s.document.vectors for s in wanting if s.reason is Reason.PINNED)
    for seat in sorted((s for s in wanting if s.reason is not Reason.PINNED), key=lambda s: s.rank(tier)):
        if budget is not None and used + seat.document.vectors > budget:
            seat.wanted = _LOWER[tier]
            if _depth(seat.document.tier) < _depth(seat.wanted):
                seat.reason = Reason.BUDGET
        else:
            used += seat.document.vectors
    return used


def _depth(tier: Tier) -> int:
    return list(Tier).index(tier)


def _move(seat: _Seat, now: datetime) -> Move:
    d = seat.document
    age = round(max(0.0, (now - d.added_at) / _DAY), 2)
    return Move(d, seat.wanted, seat.reason, {"uses": round(d.score, 3), "age_days": age})
