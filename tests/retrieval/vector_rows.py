"""Made-up vectors for tests of tiers, and the exact answer by numpy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from core.types import Scope
from retrieval.vector_tier import VectorRow

OWNERS = (("t1", "c1"), ("t1", "c2"), ("t2", "c3"))


def clustered(count: int, dimension: int, seed: int = 3, clusters: int = 20) -> np.ndarray:
    """Unit vectors [count, dimension] float16 around some centres, the same for every seed."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((clusters, dimension))
    made = centres[random.integers(0, clusters, count)] + 0.7 * random.standard_normal((count, dimension))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float16)


def row(passage_id: int, vector: np.ndarray, owner: tuple[str, str] = OWNERS[0]) -> VectorRow:
    return VectorRow(*owner, passage_id, vector.astype(np.float16).tobytes())


def rows(
    vectors: np.ndarray, first_id: int = 1, owners: Sequence[tuple[str, str]] = OWNERS
) -> list[VectorRow]:
    """One passage per vector; every owner gets every third."""
    made = [row(first_id + n, v, owners[n % len(owners)]) for n, v in enumerate(vectors)]
    return sorted(made, key=lambda one: one.order)


def exact(
    live: Iterable[VectorRow],
    query: np.ndarray,
    k: int,
    scope: Scope,
    passage_ids: Iterable[int] | None = None,
) -> list[tuple[int, float]]:
    """The k nearest of the scope, by numpy."""
    wanted = None if passage_ids is None else set(passage_ids)
    allowed = [
        one
        for one in live
        if one.tenant_id == scope.tenant_id
        and scope.allows_collection(one.collection_id)
        and (wanted is None or one.passage_id in wanted)
    ]
    unit = query / np.linalg.norm(query)
    scored: list[tuple[int, float]] = []
    for one in allowed:
        vector = np.frombuffer(one.vector, np.float16).astype(np.float32)
        scored.append((one.passage_id, float(vector @ unit / max(1.0, np.linalg.norm(vector)))))
    return sorted(scored, key=lambda hit: (-hit[1], hit[0]))[:k]


def agree(
    found: Sequence[tuple[int, float]], wanted: Sequence[tuple[int, float]], tolerance: float = 2e-3
) -> bool:
    """Whether two rankings have the same scores; equally good passages may stand for one another."""
    return len(found) == len(wanted) and all(
        abs(a[1] - b[1]) < tolerance for a, b in zip(found, wanted, strict=True)
    )


def state(live: Iterable[VectorRow]) -> Mapping[int, VectorRow]:
    return {one.passage_id: one for one in live}
