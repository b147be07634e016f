"""Several tiers choose together: the answer is that of one exact search over all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.types import Tier
from retrieval.dense import DenseRoute
from retrieval.exact import recall
from retrieval.files import DamagedIndex
from retrieval.manifest import TierFolder
from retrieval.merge import merged
from retrieval.tier_snapshot import SegmentedSnapshot, load_tier
from retrieval.tier_writer import Layout, open_tier
from retrieval.vector_tier import TierRef, VectorRow
from tests.retrieval.test_vector_tier import C2, FLOOR, T1, D
from tests.retrieval.vector_rows import agree, clustered, exact, rows

SHARES = {Tier.HOT: (0, 400), Tier.WARM: (400, 1200), Tier.COLD: (1200, 3000)}


def filled(place: Path) -> tuple[dict[Tier, SegmentedSnapshot], list[VectorRow]]:
    vectors = clustered(3000, D)
    tiers: dict[Tier, SegmentedSnapshot] = {}
    live: list[VectorRow] = []
    for tier, (start, end) in SHARES.items():
        own = rows(vectors[start:end], first_id=start + 1)
        live += own
        folder = TierFolder(place / tier.value)
        folder.segments.mkdir(parents=True)
        folder.dead.mkdir()
        layout = Layout(lists_from=200, scanned_rows=16)
        made = open_tier(folder, tier, TierRef(), dimension=D, layout=layout)
        made.add(own)
        tiers[tier] = load_tier(folder, tier, made.commit(), dimension=D)
    return tiers, live


def test_all_tiers_together_find_what_an_exact_search_over_all_finds(tmp_path: Path) -> None:
    tiers, live = filled(tmp_path)
    assert [one.ref.segments[0].kind for one in tiers.values()] == ["quick16", "quick8", "quick"]
    route = DenseRoute(tiers)
    queries = clustered(60, D, seed=5).astype(np.float32)
    for scope in (T1, C2):
        scores, ids = route.search_many(queries, 10, scope)
        wanted = [[i for i, _ in exact(live, q, 10, scope)] for q in queries]
        assert recall(ids.tolist(), wanted) >= FLOOR
        for query, own, some in zip(queries, ids, scores, strict=True):
            assert (np.diff(some) <= 0).all()
            for passage_id, score in zip(own[:3].tolist(), some[:3].tolist(), strict=True):
                assert score == pytest.approx(exact(live, query, 1, scope, [passage_id])[0][1], abs=2e-3)
            together = list(zip(own.tolist(), some.tolist(), strict=True))
            assert agree(together, route.search(query, 10, scope), tolerance=1e-5)


def test_fewer_originals_are_read_together_than_tier_by_tier(tmp_path: Path) -> None:
    tiers, _ = filled(tmp_path)
    queries = clustered(60, D, seed=5).astype(np.float32)

    def touched() -> int:
        return sum(one.stats().page_hits + one.stats().page_misses for one in tiers.values())

    for one in tiers.values():
        one.search_many(queries, 10, T1)
    apart = touched()
    DenseRoute(tiers).search_many(queries, 10, T1)
    assert touched() - apart < 0.8 * apart


def test_a_tier_whose_originals_are_cut_is_left_out_and_told_of(tmp_path: Path) -> None:
    tiers, live = filled(tmp_path)
    met: list[str] = []
    route = DenseRoute(tiers, on_damage=lambda tier, _: met.append(tier))
    for path in (tmp_path / "cold").rglob("vectors.f16"):
        path.write_bytes(b"")
    left = [one for one in live if one.passage_id <= SHARES[Tier.COLD][0]]
    queries = clustered(5, D, seed=5).astype(np.float32)
    for query in queries:
        found = route.search(query, 10, T1)
        assert recall([[i for i, _ in found]], [[i for i, _ in exact(left, query, 10, T1)]]) >= 0.8
    assert met == ["cold"]
    assert set(route.refused) == {"cold"}


def test_no_tier_left_is_an_error(tmp_path: Path) -> None:
    tiers, _ = filled(tmp_path)
    for path in (tmp_path / "cold").rglob("vectors.f16"):
        path.write_bytes(b"")
    with pytest.raises(DamagedIndex, match="cold"):
        DenseRoute({Tier.COLD: tiers[Tier.COLD]}).search(clustered(1, D)[0].astype(np.float32), 10, T1)


def test_a_passage_in_two_tiers_is_found_once_with_its_best_score() -> None:
    first = np.asarray([[0.9, 0.5]], np.float32), np.asarray([[7, 3]])
    second = np.asarray([[0.8, 0.7, -np.inf]], np.float32), np.asarray([[7, 5, -1]])
    scores, ids = merged([first, second], 1, 3)
    assert ids.tolist() == [[7, 5, 3]]
    assert scores[0].tolist() == pytest.approx([0.9, 0.7, 0.5])


def test_equal_scores_are_ordered_by_id() -> None:
    part = np.asarray([[0.5, 0.5, 0.5]], np.float32), np.asarray([[9, 2, 4]])
    assert merged([part], 1, 2)[1].tolist() == [[2, 4]]
