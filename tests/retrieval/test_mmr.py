"""Order by marginal relevance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.mmr import mmr_order

scores = st.lists(st.floats(-5, 5), min_size=1, max_size=12)


@given(scores, st.integers(0, 1000))
def test_relevance_alone_keeps_the_order_of_the_scores(values: list[float], seed: int) -> None:
    vectors = np.random.default_rng(seed).standard_normal((len(values), 8)).astype(np.float32)
    order = mmr_order(values, vectors, balance=1.0)
    assert order == sorted(range(len(values)), key=lambda n: (-values[n], n))


@given(scores, st.integers(0, 1000), st.floats(0, 1))
def test_everything_stays_and_the_best_stays_first(values: list[float], seed: int, balance: float) -> None:
    vectors = np.random.default_rng(seed).standard_normal((len(values), 8)).astype(np.float32)
    order = mmr_order(values, vectors, balance=balance)
    assert sorted(order) == list(range(len(values)))
    assert values[order[0]] == max(values)


def test_what_says_the_same_steps_back_behind_what_says_something_else() -> None:
    same, other = [1.0, 0.1, 0.0], [-1.0, 0.2, 0.0]
    vectors = np.array([same, same, other], np.float32)
    assert mmr_order([3.0, 2.9, 2.5], vectors, balance=1.0) == [0, 1, 2]
    assert mmr_order([3.0, 2.9, 2.5], vectors, balance=0.5) == [0, 2, 1]


def test_zero_vectors_one_passage_and_none_are_no_error() -> None:
    assert mmr_order([], np.zeros((0, 4), np.float32), balance=0.5) == []
    assert mmr_order([1.0], np.zeros((1, 4), np.float32), balance=0.5) == [0]
    assert mmr_order([1.0, 2.0], np.zeros((2, 4), np.float32), balance=0.5) == [1, 0]
    with pytest.raises(ValueError, match="2 scores"):
        mmr_order([1.0, 2.0], np.zeros((1, 4), np.float32), balance=0.5)
