"""The dense route over all tiers of one generation: hits merged by exact cosine, whatever tier has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.types import Scope, Tier
from retrieval.files import DamagedIndex
from retrieval.vector_tier import Found, Ids, TierSnapshot, Vector


@dataclass(frozen=True, slots=True)
class DenseRoute:
    """The vectors of one generation.

    Every tier returns exact cosines, so the best passage of a huge cold tier stands before the weak ones of a
    small hot one. A tier that is refused is left out; `refused` says so, and the caller tells it on.
    """

    tiers: Mapping[Tier, TierSnapshot]

    @property
    def live_count(self) -> int:
        """Vectors that a search can return."""
        return sum(tier.live_count for tier in self.tiers.values() if not tier.refused)

    @property
    def refused(self) -> dict[str, str]:
        """Tiers that serve nothing until they are rebuilt, with the reason."""
        return {name.value: tier.refused for name, tier in self.tiers.items() if tier.refused}

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
        serving = [tier for tier in self.tiers.values() if not tier.refused]
        if self.refused and not any(tier.live_count for tier in serving):
            reasons = "; ".join(f"{name}: {why}" for name, why in self.refused.items())
            raise DamagedIndex(f"No tier serves until it is rebuilt ({reasons}).")
        best: dict[int, float] = {}
        for tier in serving:
            for passage_id, score in tier.search(vector, k, scope, passage_ids=passage_ids):
                best[passage_id] = max(score, best.get(passage_id, score))
        return sorted(best.items(), key=lambda hit: (-hit[1], hit[0]))[:k]
