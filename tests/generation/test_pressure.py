from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation.plan_batch import PROMPT_OVERHEAD, SMALLEST_CONTEXT
from generation.pressure import Promises, Room, prompt_budget

LOWEST = PROMPT_OVERHEAD + SMALLEST_CONTEXT


@pytest.mark.parametrize(
    ("room", "budget"),
    [
        (Room(40_000, 0, 0.0), 1800),
        (Room(40_000, 35_000, 0.0), 1800),  # half of 5,000 holds 1,800 and the answer
        (Room(40_000, 37_000, 0.0), 1244),
        (Room(40_000, 0, 0.925), 1244),  # measured, as after a restart of the worker beside a server
        (Room(40_000, 40_000, 0.0), LOWEST),
        (Room(40_000, 90_000, 1.0), LOWEST),
        (Room(0, 0, 0.5), 1800),  # a server that tells only its share
        (Room(0, 0, 0.875), 900),
        (Room(0, 0, 1.0), LOWEST),
    ],
)
def test_the_budget_shrinks_with_the_free_blocks(room: Room, budget: int) -> None:
    assert prompt_budget(1800, 256, room) == budget


def test_prompts_that_come_at_once_each_leave_room_for_the_next() -> None:
    promised, budgets = 0, list[int]()
    while promised + LOWEST + 256 <= 20_000:
        budgets.append(prompt_budget(1800, 256, Room(20_000, promised, 0.0)))
        promised += budgets[-1] + 256
    assert budgets == sorted(budgets, reverse=True)
    assert len(budgets) > 20_000 // (1800 + 256)  # more run at once than with full prompts
    assert budgets[-1] == LOWEST


TOKENS = st.integers(0, 10**6)


@given(st.integers(0, 4000), st.integers(1, 512), st.builds(Room, TOKENS, TOKENS, st.floats(0, 1)))
def test_the_budget_is_never_above_the_full_one(full: int, answer: int, room: Room) -> None:
    budget = prompt_budget(full, answer, room)
    assert min(full, LOWEST) <= budget <= full


def test_promises_end_with_their_answer() -> None:
    promises = Promises()
    with promises.held(100), promises.held(20):
        assert promises.tokens == 120
    with pytest.raises(RuntimeError), promises.held(7):
        raise RuntimeError
    assert promises.tokens == 0
