from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.figures import auroc, growth_exponent, spread


def test_the_exponent_of_linear_time_is_one() -> None:
    assert growth_exponent({1000: 2.0, 5000: 10.0, 20_000: 40.0}) == pytest.approx(1)
    assert growth_exponent({1000: 1.0, 10_000: 100.0}) == pytest.approx(2)
    assert growth_exponent({1000: 1.0}) is None


def test_a_spread_names_the_middle_and_both_ends() -> None:
    assert spread([3.0, 1.0, 2.0004]) == {"median": 2.0, "min": 1.0, "max": 3.0}
    assert spread([1.231, 1.236], 2) == {"median": 1.23, "min": 1.23, "max": 1.24}


@given(st.lists(st.integers(0, 5), max_size=8), st.lists(st.integers(0, 5), max_size=8))
def test_auroc_equals_its_loop(positives: list[int], negatives: list[int]) -> None:
    got = auroc(positives, negatives)
    if not positives or not negatives:
        assert got is None
        return
    pairs = [(p, n) for p in positives for n in negatives]
    assert got == pytest.approx(sum(1.0 if p > n else 0.5 if p == n else 0.0 for p, n in pairs) / len(pairs))
