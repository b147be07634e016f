"""The planner: who belongs where, and that it never moves a document to and fro."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InvalidInput
from core.types import Tier
from retrieval.placement import (
    Budgets,
    DocumentPlacement,
    Move,
    PlacementPolicy,
    Reason,
    decayed,
    parse_placement_policy,
    plan_moves,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
HOT, WARM, COLD = Tier.HOT, Tier.WARM, Tier.COLD


def doc(name: str = "d", tier: Tier = HOT, *, age: float = 400, uses: float = 0, vectors: int = 10, **rest):
    added = NOW - timedelta(days=age)
    return DocumentPlacement(name, "col", "ten", tier, vectors, uses, added, **rest)


def plan(*documents: DocumentPlacement, policy: PlacementPolicy | None = None, **budgets) -> list[Move]:
    return plan_moves(documents, {"col": policy} if policy else {}, Budgets(**budgets), NOW)


def moved(moves: list[Move]) -> dict[str, tuple[Tier, Reason]]:
    return {m.document.document_id: (m.to, m.reason) for m in moves}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (doc(age=1), None),
        (doc(age=1, tier=COLD), (HOT, Reason.NEW)),
        (doc(age=31), (WARM, Reason.IDLE)),
        (doc(age=181), (COLD, Reason.IDLE)),
        (doc(uses=2), None),
        (doc(uses=1.01), None),
        (doc(uses=0.99), (WARM, Reason.IDLE)),
        (doc(tier=WARM, uses=1.99), None),
        (doc(tier=WARM, uses=2), (HOT, Reason.USED)),
        (doc(tier=WARM, uses=0.126), None),
        (doc(tier=WARM, uses=0.1), (COLD, Reason.IDLE)),
        (doc(tier=COLD, uses=0.2), None),
        (doc(tier=COLD, uses=0.25), (WARM, Reason.USED)),
        (doc(tier=COLD, uses=9), (HOT, Reason.USED)),
        (doc(tier=COLD, pinned=HOT), (HOT, Reason.PINNED)),
        (doc(uses=9, age=0, pinned=COLD), (COLD, Reason.PINNED)),
        (doc(moved_at=NOW - timedelta(hours=1)), None),
        (doc(moved_at=NOW - timedelta(hours=25)), (COLD, Reason.IDLE)),
    ],
)
def test_use_age_and_pins_decide(document: DocumentPlacement, expected: tuple[Tier, Reason] | None) -> None:
    assert moved(plan(document, min_stay=timedelta(hours=24))).get("d") == expected


def test_the_pin_of_a_document_goes_before_that_of_its_collection() -> None:
    policy = PlacementPolicy(pinned=COLD)
    documents = doc("a", age=0), doc("b", age=0, pinned=WARM)
    assert moved(plan(*documents, policy=policy)) == {"a": (COLD, Reason.PINNED), "b": (WARM, Reason.PINNED)}


def test_idle_documents_stay_hot_while_there_is_room_the_most_wanted_first() -> None:
    documents = [doc(f"d{n}", uses=n / 10) for n in range(5)]
    assert plan(*documents, roomy=50) == []
    assert set(moved(plan(*documents, roomy=35))) == {"d0", "d1"}


def test_full_tiers_push_the_least_wanted_down_and_say_so() -> None:
    documents = [doc(f"d{n}", uses=10 + n) for n in range(6)]
    moves = plan(*documents, hot=25, warm=20)
    assert moved(moves) == {
        "d0": (COLD, Reason.BUDGET), "d1": (COLD, Reason.BUDGET),
        "d2": (WARM, Reason.BUDGET), "d3": (WARM, Reason.BUDGET),
    }  # fmt: skip


def test_whoever_is_in_a_full_tier_stays_until_another_is_clearly_wanted_more() -> None:
    inside = doc("in", uses=4)
    assert plan(inside, doc("out", WARM, uses=4.9), hot=10) == []
    moves = plan(inside, doc("out", WARM, uses=5.1), hot=10)
    assert [(m.document.document_id, m.to) for m in moves] == [("in", WARM), ("out", HOT)], (
        "space is freed first"
    )


def test_a_large_document_that_does_not_fit_does_not_keep_smaller_ones_out() -> None:
    documents = doc("large", WARM, uses=9, vectors=100), doc("small", WARM, uses=5)
    assert moved(plan(*documents, hot=50)) == {"small": (HOT, Reason.USED)}


def test_pinned_documents_may_exceed_a_budget_and_count_to_it() -> None:
    documents = doc("p", pinned=HOT, vectors=100), doc("u", uses=50)
    assert moved(plan(*documents, hot=20)) == {"u": (WARM, Reason.BUDGET)}


def test_a_score_halves_with_its_half_life_and_needs_no_writes() -> None:
    assert decayed(8, NOW - timedelta(days=14), NOW, 14) == 4
    assert decayed(8, NOW + timedelta(days=14), NOW, 14) == 8
    assert decayed(8, None, NOW, 14) == 0


@pytest.mark.parametrize(
    "body", [{"tier": "hot"}, {"pinned": "lukewarm"}, {"hot_days": -1}, {"hot_days": 10, "warm_days": 5}]
)
def test_a_policy_with_a_slip_is_refused_with_its_place(body: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="placement"):
        parse_placement_policy(body)


_tiers = st.sampled_from(list(Tier))
_times = st.none() | st.floats(0, 100).map(lambda hours: NOW - timedelta(hours=hours))
_documents = st.lists(
    st.builds(
        doc, st.uuids().map(str), _tiers, age=st.floats(0, 500), uses=st.floats(0, 20),
        vectors=st.integers(0, 40), moved_at=_times, pinned=st.sampled_from([None, None, None, *Tier]),
    ),
    max_size=25, unique_by=lambda d: d.document_id,
)  # fmt: skip
_budgets = st.builds(
    Budgets, st.none() | st.integers(0, 300), st.none() | st.integers(0, 300), st.integers(0, 300),
    st.sampled_from([timedelta(0), timedelta(hours=24)]),
)  # fmt: skip


def made(documents: list[DocumentPlacement], moves: list[Move], at: datetime) -> list[DocumentPlacement]:
    to = {m.document.document_id: m.to for m in moves}
    return [replace(d, tier=to[d.document_id], moved_at=at) if d.document_id in to else d for d in documents]


@settings(max_examples=300, deadline=None)
@given(_documents, _budgets)
def test_the_plan_of_a_placement_that_a_plan_made_is_empty(
    documents: list[DocumentPlacement], budgets: Budgets
) -> None:
    moves = plan_moves(documents, {}, budgets, NOW)
    assert plan_moves(made(documents, moves, NOW), {}, budgets, NOW) == []


@settings(max_examples=200, deadline=None)
@given(_documents, _budgets, st.randoms(use_true_random=False))
def test_the_plan_does_not_depend_on_the_order_and_moves_each_document_once_to_another_tier(
    documents: list[DocumentPlacement], budgets: Budgets, random
) -> None:
    moves = plan_moves(documents, {}, budgets, NOW)
    shuffled = list(documents)
    random.shuffle(shuffled)
    assert plan_moves(shuffled, {}, budgets, NOW) == moves
    assert len({m.document.document_id for m in moves}) == len(moves)
    assert all(m.to is not m.document.tier for m in moves)


@settings(max_examples=200, deadline=None)
@given(_documents, _budgets)
def test_budgets_hold_for_all_that_is_not_pinned(
    documents: list[DocumentPlacement], budgets: Budgets
) -> None:
    after = made(documents, plan_moves(documents, {}, budgets, NOW), NOW)
    for tier, budget in ((HOT, budgets.hot), (WARM, budgets.warm)):
        held = [d for d in after if d.tier is tier]
        free = [d for d in held if d.pinned is None and d.vectors]
        assert budget is None or not free or sum(d.vectors for d in held) <= budget
    assert all(d.tier is d.pinned for d in after if d.pinned)


@settings(max_examples=60, deadline=None)
@given(_documents, _budgets)
def test_without_new_uses_a_document_never_comes_back(
    documents: list[DocumentPlacement], budgets: Budgets
) -> None:
    """Half a year of daily plans: after its first move, each document only cools down or stays."""
    order = list(Tier)
    documents = [replace(d, moved_at=None) for d in documents if d.pinned is None]
    began = {d.document_id: d.score for d in documents}
    documents = made(documents, plan_moves(documents, {}, budgets, NOW), NOW)
    for day in range(1, 180, 7):
        now = NOW + timedelta(days=day)
        documents = [replace(d, score=decayed(began[d.document_id], NOW, now, 14)) for d in documents]
        moves = plan_moves(documents, {}, budgets, now)
        if budgets.hot is None and budgets.warm is None:
            assert all(order.index(m.to) > order.index(m.document.tier) for m in moves)
        documents = made(documents, moves, now)
