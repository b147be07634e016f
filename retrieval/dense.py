"""The dense route over all tiers of one generation: hits merged by exact cosine, whatever tier has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from core.types import Scope, Tier
from retrieval.files import DamagedIndex
from retrieval.vector_tier import Found, Ids, TierSnapshot, Vector

OnDamage = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class DenseRoute:
    """The vectors of one generation.

    Every tier returns exact cosines, so the best passage of a huge cold tier stands before the weak ones of a
    small hot one. A tier that is refused, or whose pages prove damaged in a search, is left out; `refused`
    says so, and the caller tells it on.

    Args:
        tiers: of one generation.
        on_damage: called as `on_damage(tier, reason)` for a tier that a search found damaged.
    """

    tiers: Mapping[Tier, TierSnapshot]
    on_damage: OnDamage | None = None
    _met: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def live_count(self) -> int:
        """Vectors that a search can return."""
        return sum(tier.live_count for tier in self.tiers.values() if not tier.refused)

    @property
    def refused(self) -> dict[str, str]:
        """Tiers that serve nothing until they are rebuilt, with the reason."""
        known = {name.value: tier.refused for name, tier in self.tiers.items() if tier.refused}
        return {**known, **self._met}

    def search(
        self, vector: Vector, k: int, scope: Scope, *, passage_ids: Sequence[int] | Ids | None = None
    ) -> Found:
        """The k nearest passages of the scope over all tiers that serve.

        Returns:
            `(passage id, cosine)`, best first, ties by id; a passage once.

        Raises:
            DamagedIndex: every tier is refused, or all that hold anything.
            TransientError, ConfigError: the vector cannot be compared; see `TierSnapshot.search`.
        """
        best: dict[int, float] = {}
        served = 0
        for name, tier in self.tiers.items():
            if tier.refused:
                continue
            try:
                found = tier.search(vector, k, scope, passage_ids=passage_ids)
            except DamagedIndex as error:
                self._meet(name.value, error.detail)
                continue
            served += tier.live_count
            for passage_id, score in found:
                best[passage_id] = max(score, best.get(passage_id, score))
        if not served and (refused := self.refused):
            reasons = "; ".join(f"{name}: {why}" for name, why in refused.items())
            raise DamagedIndex(f"No tier serves until it is rebuilt ({reasons}).")
        return sorted(best.items(), key=lambda hit: (-hit[1], hit[0]))[:k]

    def _meet(self, tier: str, reason: str) -> None:
        """A page is checked when it is first read, so damage may show long after the tier was loaded."""
        if tier not in self._met:
            self._met[tier] = reason
            if self.on_damage is not None:
                self.on_damage(tier, reason)
