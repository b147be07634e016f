"""The dense route over all tiers of one generation: hits merged by exact cosine, whatever tier has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.types import Scope, Tier
from retrieval.exact import check_vectors
from retrieval.files import DamagedIndex
from retrieval.gathered import Gathered
from retrieval.merge import pairs, settled
from retrieval.vector_tier import Batch, Candidates, Found, Ids, TierSnapshot, Vector

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
    _gathered: Gathered = field(default_factory=Gathered)

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

        Threads that ask at once without `passage_ids` are answered together; see `retrieval/gathered.py`.

        Returns:
            `(passage id, cosine)`, best first, ties by id; a passage once.

        Raises:
            DamagedIndex: every tier is refused, or all that hold anything.
            TransientError, ConfigError: the vector cannot be compared; see `TierSnapshot.search`.
        """
        if passage_ids is not None:
            return pairs(self.search_many(vector[None], k, scope, passage_ids=passage_ids))[0]
        check_vectors(vector[None])  # one without a direction is not to be an outage of others
        key = (k, scope.tenant_id, scope.collection_ids, vector.shape)
        return pairs(self._gathered.search(key, vector, lambda many: self.search_many(many, k, scope)))[0]

    def search_many(
        self, vectors: Vector, k: int, scope: Scope, *, passage_ids: Sequence[int] | Ids | None = None
    ) -> Batch:
        """`search` for [n, d] vectors of one scope at once, which costs less for each. Errors as there."""
        named: dict[Tier, Sequence[Candidates]] = {}
        for tier, one in self.tiers.items():
            if one.refused:
                continue
            if not one.live_count:  # most installations use one tier
                named[tier] = ()
                continue
            try:
                named[tier] = one.candidates(vectors, k, scope, passage_ids=passage_ids)
            except DamagedIndex as error:
                self._meet(tier.value, error.detail)
        found = self._settled(named, len(vectors), k)
        served = sum(self.tiers[tier].live_count for tier in named)
        if not served and (refused := self.refused):
            reasons = "; ".join(f"{name}: {why}" for name, why in refused.items())
            raise DamagedIndex(f"No tier serves until it is rebuilt ({reasons}).")
        return found

    def _settled(self, named: dict[Tier, Sequence[Candidates]], queries: int, k: int) -> Batch:
        """The best of all tiers; one whose originals prove damaged is dropped from `named`."""
        while True:
            try:
                return settled(
                    [_watched(tier, part) for tier, parts in named.items() for part in parts], queries, k
                )
            except _DamagedTier as error:
                self._meet(error.tier.value, error.detail)
                del named[error.tier]

    def _meet(self, tier: str, reason: str) -> None:
        """A page is checked when it is first read, so damage may show long after the tier was loaded."""
        if tier not in self._met:
            self._met[tier] = reason
            if self.on_damage is not None:
                self.on_damage(tier, reason)


class _DamagedTier(DamagedIndex):
    """Says which tier."""

    def __init__(self, tier: Tier, detail: str) -> None:
        super().__init__(detail)
        self.tier = tier


def _watched(tier: Tier, part: Candidates) -> Candidates:
    if (exact := part.exact) is None:
        return part

    def look(queries: Ids, columns: Ids) -> Vector:
        try:
            return exact(queries, columns)
        except DamagedIndex as error:
            raise _DamagedTier(tier, error.detail) from error

    return replace(part, exact=look)
