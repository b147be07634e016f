"""What every vector tier promises. An implementation joins by an entry in `HARNESSES`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import ConfigError, TransientError
from core.types import Scope, Tier
from retrieval.exact import recall
from retrieval.files import DamagedIndex
from retrieval.manifest import TierFolder
from retrieval.segments import Segment, write_segments
from retrieval.structures import StructurePlan
from retrieval.tier_snapshot import load_tier
from retrieval.tier_writer import Layout, open_tier
from retrieval.vector_tier import TierRef, TierSnapshot, VectorRow, VectorsRejected, VectorTier
from tests.retrieval.external_tier import ExternalSnapshot, ExternalTier
from tests.retrieval.vector_rows import OWNERS, agree, clustered, exact, row, rows

D = 32
FLOOR = 0.93  # what structures are calibrated to is 0.95; 60 questions tell it to within 0.02
T1 = Scope("t1", None, "test")
T2 = Scope("t2", None, "test")
C2 = Scope("t1", ("c2",), "test")


@dataclass(frozen=True)
class Harness:
    """How to open one implementation on a folder."""

    write: Callable[[Path, TierRef], VectorTier]
    read: Callable[[Path, TierRef], TierSnapshot]


def segmented(tier: Tier, layout: Layout) -> Harness:
    def folder(place: Path) -> TierFolder:
        made = TierFolder(place)
        made.segments.mkdir(parents=True, exist_ok=True)
        made.dead.mkdir(exist_ok=True)
        return made

    return Harness(
        lambda place, ref: open_tier(folder(place), tier, ref, dimension=D, layout=layout),
        lambda place, ref: load_tier(folder(place), tier, ref, dimension=D),
    )


SMALL_LISTS = Layout(merge_count=3, lists_from=200, scanned_rows=16)
HARNESSES = {
    "hot": segmented(Tier.HOT, Layout(merge_count=3)),
    "hot-lists": segmented(Tier.HOT, SMALL_LISTS),
    "warm": segmented(Tier.WARM, Layout(merge_count=3)),
    "warm-lists": segmented(Tier.WARM, SMALL_LISTS),
    "cold": segmented(Tier.COLD, Layout(merge_count=3)),
    "cold-lists": segmented(Tier.COLD, SMALL_LISTS),
    "external": Harness(
        lambda place, ref: ExternalTier(place, ref, D), lambda place, ref: ExternalSnapshot(place, ref, D)
    ),
}


@pytest.fixture(params=HARNESSES)
def harness(request: pytest.FixtureRequest) -> Harness:
    return HARNESSES[request.param]


def filled(harness: Harness, place: Path, live: list[VectorRow]) -> tuple[TierRef, TierSnapshot]:
    tier = harness.write(place, TierRef())
    tier.add(live)
    ref = tier.commit()
    return ref, harness.read(place, ref)


def found_share(snapshot: TierSnapshot, live: list[VectorRow], queries: np.ndarray, scope: Scope) -> float:
    found = [[i for i, _ in snapshot.search(q, 10, scope)] for q in queries]
    return recall(found, [[i for i, _ in exact(live, q, 10, scope)] for q in queries])


@pytest.mark.parametrize("count", [0, 1, 30, 300, 1500])
def test_every_size_is_legal_and_found(harness: Harness, tmp_path: Path, count: int) -> None:
    live = rows(clustered(count, D))
    ref, snapshot = filled(harness, tmp_path, live)
    assert (snapshot.live_count, ref.live_count) == (count, count)
    queries = clustered(60, D, seed=5).astype(np.float32)
    for scope in (T1, T2, C2):
        assert found_share(snapshot, live, queries, scope) >= FLOOR
        for query in queries[:5]:
            wanted = exact(live, query, 10, scope)
            assert agree(snapshot.search_exact(query, 10, scope), wanted)
            for passage_id, score in snapshot.search(query, 10, scope):
                own = exact(live, query, 1, scope, [passage_id])
                assert score == pytest.approx(own[0][1], abs=2e-3), "scores are exact whatever found them"


def test_more_neighbours_than_vectors_gives_what_there_is(harness: Harness, tmp_path: Path) -> None:
    live = rows(clustered(7, D))
    _, snapshot = filled(harness, tmp_path, live)
    query = clustered(1, D, seed=9)[0].astype(np.float32)
    assert len(snapshot.search(query, 50, T1)) == 5
    assert all(i > 0 for i, _ in snapshot.search(query, 50, T1))
    assert snapshot.search(query, 0, T1) == []
    assert harness.read(tmp_path, TierRef()).search(query, 5, T1) == []


@pytest.mark.parametrize("count", [40, 600])
def test_a_scope_that_holds_less_than_k_gives_all_of_it(harness: Harness, tmp_path: Path, count: int) -> None:
    vectors = clustered(count, D)
    live = sorted(
        [row(n, v, ("t9", "few") if n < 4 else OWNERS[0]) for n, v in enumerate(vectors)],
        key=lambda r: r.order,
    )
    _, snapshot = filled(harness, tmp_path, live)
    few = Scope("t9", None, "test")
    hits = snapshot.search(vectors[-1].astype(np.float32), 10, few)
    assert {i for i, _ in hits} == {0, 1, 2, 3}
    assert snapshot.search(vectors[0].astype(np.float32), 10, Scope("t1", (), "test")) == []
    assert snapshot.search(vectors[0].astype(np.float32), 10, Scope("", None, "test")) == []


@pytest.mark.parametrize("count", [60, 900])
def test_a_search_can_be_limited_to_passages(harness: Harness, tmp_path: Path, count: int) -> None:
    live = rows(clustered(count, D))
    _, snapshot = filled(harness, tmp_path, live)
    random = np.random.default_rng(2)
    for query in clustered(6, D, seed=6).astype(np.float32):
        for share in (0.02, 0.3, 0.9):
            wanted = random.choice(
                np.arange(1, count + 9), max(1, int(share * count)), replace=False
            ).tolist()
            hits = snapshot.search(query, 5, T1, passage_ids=wanted)
            best = exact(live, query, 5, T1, wanted)
            assert len(hits) == len(best)
            assert recall([[i for i, _ in hits]], [[i for i, _ in best]]) >= 0.6
            assert agree(snapshot.search_exact(query, 5, T1, passage_ids=wanted), best)
        assert snapshot.search(query, 5, T1, passage_ids=[]) == []


@pytest.mark.parametrize("count", [50, 700])
def test_a_deleted_passage_does_not_come_back(harness: Harness, tmp_path: Path, count: int) -> None:
    live = rows(clustered(count, D))
    ref, _ = filled(harness, tmp_path, live)
    tier = harness.write(tmp_path, ref)
    gone = [one.passage_id for one in live[::2]]
    assert tier.delete([*gone, 10**9]) == len(gone)
    assert tier.delete(gone) == 0
    assert tier.present([one.passage_id for one in live]) == {one.passage_id for one in live[1::2]}
    snapshot = harness.read(tmp_path, tier.commit())
    left = live[1::2]
    assert snapshot.live_count == len(left)
    queries = clustered(60, D, seed=5).astype(np.float32)
    for query in queries:
        assert not {i for i, _ in snapshot.search(query, 20, T1)} & set(gone)
    assert found_share(snapshot, left, queries, T1) >= FLOOR


def test_adding_again_changes_nothing(harness: Harness, tmp_path: Path) -> None:
    live = rows(clustered(300, D))
    ref, _ = filled(harness, tmp_path, live)
    for _ in range(3):
        tier = harness.write(tmp_path, ref)
        assert tier.add(live) == 0
        assert tier.commit() == ref


def test_adding_replaces_a_passage_whose_vector_or_owner_changed(harness: Harness, tmp_path: Path) -> None:
    live = rows(clustered(300, D))
    ref, _ = filled(harness, tmp_path, live)
    other = clustered(1, D, seed=77)[0]
    moved = row(live[0].passage_id, np.frombuffer(live[0].vector, np.float16), ("t2", "c3"))
    changed = row(live[1].passage_id, other)
    tier = harness.write(tmp_path, ref)
    assert tier.add(sorted([moved, changed], key=lambda r: r.order)) == 2
    snapshot = harness.read(tmp_path, tier.commit())
    assert snapshot.live_count == 300
    assert snapshot.search(other.astype(np.float32), 1, T1)[0][0] == changed.passage_id
    query = np.frombuffer(moved.vector, np.float16).astype(np.float32)
    assert moved.passage_id in {i for i, _ in snapshot.search(query, 3, T2)}
    assert moved.passage_id not in {i for i, _ in snapshot.search(query, 300, T1)}


def test_a_deleted_passage_that_is_added_again_is_found(harness: Harness, tmp_path: Path) -> None:
    live = rows(clustered(260, D))
    ref, _ = filled(harness, tmp_path, live)
    tier = harness.write(tmp_path, ref)
    tier.delete([live[3].passage_id])
    assert tier.add([live[3]]) == 1
    snapshot = harness.read(tmp_path, tier.commit())
    assert snapshot.live_count == 260
    query = np.frombuffer(live[3].vector, np.float16).astype(np.float32)
    hits = snapshot.search(query, 5, Scope(live[3].tenant_id, None, "test"))
    assert [i for i, _ in hits].count(live[3].passage_id) == 1


def test_a_snapshot_never_changes(harness: Harness, tmp_path: Path) -> None:
    live = rows(clustered(300, D))
    ref, snapshot = filled(harness, tmp_path, live)
    queries = clustered(10, D, seed=5).astype(np.float32)
    before = [snapshot.search(q, 10, T1) for q in queries]
    tier = harness.write(tmp_path, ref)
    tier.delete([one.passage_id for one in live[:200]])
    tier.add(rows(clustered(400, D, seed=8), first_id=1000))
    tier.commit()
    assert [snapshot.search(q, 10, T1) for q in queries] == before
    assert [harness.read(tmp_path, ref).search(q, 10, T1) for q in queries] == before


def test_what_was_not_committed_is_not_there(harness: Harness, tmp_path: Path) -> None:
    live = rows(clustered(300, D))
    ref, _ = filled(harness, tmp_path, live)
    tier = harness.write(tmp_path, ref)
    tier.delete([live[0].passage_id])
    tier.add(rows(clustered(50, D, seed=8), first_id=1000))
    again = harness.read(tmp_path, ref)
    assert again.live_count == 300
    assert harness.write(tmp_path, ref).present([1000, live[0].passage_id]) == {live[0].passage_id}


def test_a_damaged_file_is_refused(harness: Harness, tmp_path: Path) -> None:
    ref, _ = filled(harness, tmp_path, rows(clustered(500, D)))
    query = clustered(1, D, seed=9)[0].astype(np.float32)
    for path in sorted(p for p in tmp_path.rglob("*") if p.is_file()):
        content = path.read_bytes()
        for damaged in (content[: len(content) // 2], content[:-9] + b"\x55" + content[-8:], b""):
            if damaged == content:
                continue
            path.write_bytes(damaged)
            with pytest.raises(DamagedIndex):
                read_all(harness.read(tmp_path, ref), query)
        path.unlink()
        with pytest.raises(DamagedIndex):
            read_all(harness.read(tmp_path, ref), query)
        path.write_bytes(content)
    assert len(harness.read(tmp_path, ref).search(query, 5, T1)) == 5


def read_all(snapshot: TierSnapshot, query: np.ndarray) -> None:
    for scope in (T1, T2):
        snapshot.search_exact(query, 400, scope)
    snapshot.sample(10**6, seed=1)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_vector_without_direction_is_refused(harness: Harness, tmp_path: Path, value: float) -> None:
    live = rows(clustered(5, D))
    tier = harness.write(tmp_path, TierRef())
    bad = row(99, np.full(D, value, np.float32), ("t3", "c9"))
    with pytest.raises(VectorsRejected):
        tier.add([*live, bad])
    assert tier.present([1, 2, 3, 99]) == set(), "nothing of the call was added"
    assert tier.commit().live_count == 0


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_question_without_direction_is_an_outage(harness: Harness, tmp_path: Path, value: float) -> None:
    _, snapshot = filled(harness, tmp_path, rows(clustered(5, D)))
    with pytest.raises(TransientError):
        snapshot.search(np.full(D, value, np.float32), 3, T1)


def test_another_width_is_refused(harness: Harness, tmp_path: Path) -> None:
    ref, snapshot = filled(harness, tmp_path, rows(clustered(5, D)))
    with pytest.raises(ConfigError, match=r"32.*16"):
        snapshot.search(np.ones(16, np.float32), 3, T1)
    with pytest.raises(ValueError):
        harness.write(tmp_path, ref).add([row(7, np.ones(16))])


def test_rows_out_of_order_are_refused(harness: Harness, tmp_path: Path) -> None:
    live = rows(clustered(5, D))
    with pytest.raises(ValueError):
        harness.write(tmp_path, TierRef()).add(live[::-1])


def test_length_does_not_count(harness: Harness, tmp_path: Path) -> None:
    near, far = np.eye(D)[0], 10 * (np.eye(D)[0] + np.eye(D)[1])
    _, snapshot = filled(harness, tmp_path, [row(1, near), row(2, far)])
    hits = snapshot.search(3 * np.eye(D, dtype=np.float32)[0], 2, T1)
    assert [i for i, _ in hits] == [1, 2]
    assert [s for _, s in hits] == pytest.approx([1.0, 0.7071], abs=1e-3)
    assert all(-1 <= s <= 1 for _, s in hits)


@pytest.mark.parametrize("count", [30, 600])
def test_stats_and_samples_tell_of_live_rows(harness: Harness, tmp_path: Path, count: int) -> None:
    live = rows(clustered(count, D))
    ref, _ = filled(harness, tmp_path, live)
    tier = harness.write(tmp_path, ref)
    tier.delete([one.passage_id for one in live[:10]])
    assert tier.stats().live == count - 10
    assert tier.live_ids().tolist() == sorted(one.passage_id for one in live[10:])
    snapshot = harness.read(tmp_path, tier.commit())
    stats = snapshot.stats()
    assert (stats.live, stats.tier) == (count - 10, tier.tier)
    assert 0 <= stats.fragmentation < 1
    assert 0 <= stats.padding_share < 1
    sample = snapshot.sample(20, seed=1)
    assert sample == snapshot.sample(20, seed=1)
    assert len(sample) == 20
    assert set(sample) <= set(live[10:])


@pytest.mark.parametrize("count", [40, 1200])
def test_many_exact_searches_equal_single_ones(harness: Harness, tmp_path: Path, count: int) -> None:
    live = rows(clustered(count, D))
    _, snapshot = filled(harness, tmp_path, live)
    queries = clustered(12, D, seed=5).astype(np.float32)
    for scope in (T1, C2):
        for query, hits in zip(queries, snapshot.search_exact_many(queries, 10, scope), strict=True):
            assert agree(hits, exact(live, query, 10, scope))


@pytest.mark.parametrize("count", [0, 3, 40, 1200])
@pytest.mark.parametrize("asked", [1, 5, 40])
def test_many_searches_find_what_single_ones_find(
    harness: Harness, tmp_path: Path, count: int, asked: int
) -> None:
    _, snapshot = filled(harness, tmp_path, rows(clustered(count, D)))
    queries = clustered(asked, D, seed=5).astype(np.float32)
    for scope in (T1, C2):
        for k in (0, 1, 10):
            scores, ids = snapshot.search_many(queries, k, scope)
            assert scores.shape == ids.shape
            assert scores.shape[0] == asked
            assert scores.shape[1] <= k
            for one, own, query in zip(scores, ids, queries, strict=True):
                together = [(int(i), float(s)) for i, s in zip(own, one, strict=True) if i >= 0]
                assert agree(together, snapshot.search(query, k, scope), tolerance=1e-5)
                assert np.isneginf(one[own < 0]).all()


@pytest.mark.parametrize("count", [40, 1200])
def test_many_searches_can_be_limited_to_passages(harness: Harness, tmp_path: Path, count: int) -> None:
    _, snapshot = filled(harness, tmp_path, rows(clustered(count, D)))
    queries = clustered(20, D, seed=5).astype(np.float32)
    wanted = list(range(1, count, 3))
    _, ids = snapshot.search_many(queries, 5, T1, passage_ids=wanted)
    for own, query in zip(ids, queries, strict=True):
        found = [int(i) for i in own if i >= 0]
        assert found == [i for i, _ in snapshot.search(query, 5, T1, passage_ids=wanted)]
        assert set(found) <= set(wanted)


def test_one_question_without_direction_refuses_all(harness: Harness, tmp_path: Path) -> None:
    _, snapshot = filled(harness, tmp_path, rows(clustered(50, D)))
    queries = clustered(3, D, seed=5).astype(np.float32)
    queries[1] = 0
    with pytest.raises(TransientError):
        snapshot.search_many(queries, 3, T1)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 79), st.integers(1, 40)),
        st.tuples(st.just("delete"), st.integers(0, 79), st.integers(1, 30)),
        st.tuples(st.just("commit"), st.just(0), st.just(0)),
    ),
    max_size=12,
)


@given(operations=OPERATIONS, seed=st.integers(0, 9))
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_order_of_changes_leaves_what_an_oracle_has(
    harness: Harness,
    tmp_path_factory: pytest.TempPathFactory,
    operations: list[tuple[str, int, int]],
    seed: int,
) -> None:
    place, oracle = tmp_path_factory.mktemp("tier"), dict[int, VectorRow]()
    pool = clustered(120, D, seed=seed)
    tier, ref = harness.write(place, TierRef()), TierRef()
    for what, start, length in operations:
        ids = range(start, start + length)
        if what == "add":
            batch = sorted([row(i, pool[i], OWNERS[i % 3]) for i in ids], key=lambda r: r.order)
            tier.add(batch)
            oracle.update({one.passage_id: one for one in batch})
        elif what == "delete":
            tier.delete(list(ids))
            for i in ids:
                oracle.pop(i, None)
        else:
            ref = tier.commit()
            tier = harness.write(place, ref)
    ref = tier.commit()
    snapshot = harness.read(place, ref)
    live = list(oracle.values())
    assert snapshot.live_count == len(live)
    for query in clustered(3, D, seed=seed + 50).astype(np.float32):
        for scope in (T1, T2, C2):
            assert agree(snapshot.search(query, 8, scope), exact(live, query, 8, scope))


def test_many_readers_search_while_the_writer_works(harness: Harness, tmp_path: Path) -> None:
    """Four threads search whatever was committed last; each hit was live in that generation."""
    churn(harness, tmp_path, seconds=1.0)


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_many_readers_search_for_a_minute(harness: Harness, tmp_path: Path, record_property) -> None:
    searches, generations = churn(harness, tmp_path, seconds=60.0)
    record_property("searches", searches)
    record_property("generations", generations)


def churn(harness: Harness, place: Path, seconds: float) -> tuple[int, int]:
    """Says how often was searched, and in how many generations."""
    import time

    pool = clustered(900, D)
    served: list[tuple[TierSnapshot, dict[int, VectorRow]]] = []
    live = state_of(pool, range(300))
    ref, snapshot = filled(harness, place, sorted(live.values(), key=lambda r: r.order))
    served.append((snapshot, dict(live)))
    stop, failures = time.monotonic() + seconds, list[str]()
    asked: list[int] = []

    def read(seed: int) -> None:
        queries = clustered(50, D, seed=seed).astype(np.float32)
        n = 0
        while time.monotonic() < stop and not failures:
            snapshot, present = served[-1]
            scope = (T1, T2, C2)[n % 3]
            for passage_id, _ in snapshot.search(queries[n % 50], 10, scope):
                one = present.get(passage_id)
                if one is None or one.tenant_id != scope.tenant_id:
                    failures.append(f"{passage_id} is not live for {scope}")
            n += 1
        asked.append(n)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    random = np.random.default_rng(1)
    while time.monotonic() < stop and not failures:
        tier = harness.write(place, ref)
        gone = random.choice(list(live), 40, replace=False).tolist()
        tier.delete(gone)
        for i in gone:
            del live[i]
        batch = state_of(pool, random.choice(900, 60, replace=False).tolist())
        tier.add(sorted(batch.values(), key=lambda r: r.order))
        live.update(batch)
        ref = tier.commit()
        served.append((harness.read(place, ref), dict(live)))
    for thread in threads:
        thread.join()
    assert not failures
    assert len(served) > 1
    return sum(asked), len(served)


def state_of(pool: np.ndarray, ids) -> dict[int, VectorRow]:
    return {i: row(i, pool[i], OWNERS[i % 3]) for i in ids}


def test_header_of_a_segment_is_all_a_reader_needs(tmp_path: Path) -> None:
    ref, snapshot = filled(HARNESSES["cold-lists"], tmp_path, rows(clustered(600, D)))
    assert [one.kind for one in ref.segments] == ["quick"]
    segment: Segment = snapshot.segments[0].segment  # type: ignore[attr-defined] # the segmented one
    assert segment.calibration["recall"] >= 0.95


class Before(StructurePlan):
    """What plans chose for segments that are on disk already."""

    def kind(self, count: int) -> str:
        return {Tier.HOT: "graph", Tier.WARM: "lists8", Tier.COLD: "bits"}[self.tier]


@pytest.mark.parametrize("tier", list(Tier))
def test_segments_of_kinds_that_are_built_no_more_are_searched(tier: Tier, tmp_path: Path) -> None:
    folder = TierFolder(tmp_path)
    folder.segments.mkdir(parents=True)
    live = rows(clustered(1500, D))
    refs = write_segments(
        folder.segments, sorted(live, key=lambda row: row.order), dimension=D, max_rows=2000,
        plan=Before(tier, scanned_rows=16),
    )  # fmt: skip
    snapshot = load_tier(folder, tier, TierRef(tuple(refs)), dimension=D)
    assert [one.kind for one in refs] == [Before(tier).kind(1500)]
    for scope in (T1, C2):
        assert found_share(snapshot, live, clustered(60, D, seed=5).astype(np.float32), scope) >= FLOOR


def test_vectors_whose_squares_are_beyond_float32_are_compared(tmp_path: Path) -> None:
    live = rows(clustered(300, D))
    _, snapshot = filled(HARNESSES["hot"], tmp_path, live)
    query = clustered(1, D, seed=5).astype(np.float32)[0]
    for factor in (1e30, 1e-30):
        assert snapshot.search(query * np.float32(factor), 5, T1)[0][0] == exact(live, query, 5, T1)[0][0]


@pytest.mark.parametrize("kind", ["warm-lists", "cold-lists"])
def test_less_effort_is_for_wide_questions_alone(kind: str, tmp_path: Path) -> None:
    """What the mean of all questions can spare says nothing about the few that ask for little."""
    vectors = clustered(1500, D)
    owners = [("t1", "c1"), ("t1", "c1"), ("t1", "c1"), ("t1", "c1"), ("t1", "c2")]
    live = rows(vectors, owners=owners)
    _, snapshot = filled(HARNESSES[kind], tmp_path, live)
    asked = clustered(40, D, seed=9).astype(np.float32)
    shares = {
        scope: recall(
            [[i for i, _ in snapshot.search(q, 10, scope, effort=0.05)] for q in asked],
            [[i for i, _ in exact(live, q, 10, scope)] for q in asked],
        )
        for scope in (T1, C2)
    }
    assert shares[C2] >= FLOOR
    assert shares[T1] < FLOOR, "the effort of wide questions has no part in this"
