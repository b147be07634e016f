from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation.prefix_bound import Layout, PrefixCache, as_ranked, best, simulate, zipf_draws

SHAPE = Layout(rules=70, passage=128, question=24, block=32)


def test_a_prompt_is_found_up_to_the_first_block_that_differs() -> None:
    cache = PrefixCache(SHAPE, 1000)
    assert cache.serve((1, 2), 0) == 0
    assert cache.found((1, 2), 1) == (70 + 256) // 32 * 32
    assert cache.found((1, 3), 1) == (70 + 128) // 32 * 32
    assert cache.found((3, 1), 1) == 70 // 32 * 32
    assert cache.found((1, 2), 0) == (70 + 256 + 24) // 32 * 32  # the same question again


def test_the_least_recently_used_blocks_go_out_and_ends_before_beginnings() -> None:
    one = SHAPE.tokens(1) // 32
    cache = PrefixCache(SHAPE, one + 2)
    cache.serve((1,), 0)
    cache.serve((2,), 1)
    assert cache.found((2,), 1) == one * 32
    assert 0 < cache.found((1,), 0) < SHAPE.tokens(1) - 32


@given(
    st.lists(st.permutations(range(6)).map(lambda p: tuple(p[:3])), min_size=1, max_size=12),
    st.permutations(range(6)).map(lambda p: tuple(p[:3])),
    st.integers(5, 60),
)
def test_the_best_order_is_the_best_of_all(
    served: list[tuple[int, ...]], asked: tuple[int, ...], capacity: int
) -> None:
    cache = PrefixCache(SHAPE, capacity)
    for number, order in enumerate(served):
        cache.serve(order, number)
    found = cache.best_order(asked, lambda p: p)
    assert sorted(found) == sorted(asked)
    assert cache.found(found, 99) == max(cache.found(o, 99) for o in permutations(asked))


def test_draws_follow_zipfs_law_and_repeat_themselves() -> None:
    draws = zipf_draws(200, 1.0, 4, 2000, seed=7)
    assert draws == zipf_draws(200, 1.0, 4, 2000, seed=7)
    assert all(len(set(drawn)) == 4 for drawn in draws)
    share = [sum(d in drawn for drawn in draws) / len(draws) for d in (0, 1, 100)]
    assert share[0] > share[1] > share[2]
    first = [drawn[0] for drawn in draws if 0 in drawn and 100 in drawn]
    assert first.count(0) < len(first)  # the ranking does not follow popularity


def test_use_orders_close_to_the_bound_and_rank_does_not() -> None:
    draws = zipf_draws(200, 1.0, 4, 300, seed=7)
    ranked, bound = as_ranked(draws, SHAPE, 1456, skip=100), best(draws, SHAPE, 1456, skip=100)
    popular = simulate(draws, SHAPE, 1456, lambda _, drawn: tuple(sorted(drawn)), skip=100)
    assert ranked.hit_share < 0.35 < 0.45 < popular.hit_share <= bound.hit_share + 0.01
    assert ranked.median / popular.median == pytest.approx(1.45, abs=0.05)
    assert len(bound.computed) == 200
