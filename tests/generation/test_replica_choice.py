from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation.replica_choice import Breaker, Candidate, choose, prefix_key, rendezvous

urls = st.lists(st.sampled_from([f"http://s{n}" for n in range(9)]), min_size=2, max_size=9, unique=True)


@given(st.text(max_size=50), urls)
def test_the_order_depends_on_key_and_servers_alone(key: str, servers: list[str]) -> None:
    assert rendezvous(key, servers) == rendezvous(key, servers[::-1])
    assert sorted(rendezvous(key, servers)) == sorted(servers)


@given(st.lists(st.text(max_size=20), max_size=30), urls)
def test_a_server_that_goes_moves_only_its_own_keys(keys: list[str], servers: list[str]) -> None:
    gone = servers[0]
    for key in keys:
        before = rendezvous(key, servers)[0]
        after = rendezvous(key, servers[1:])[0]
        assert before in (after, gone)


def test_keys_are_spread() -> None:
    servers = [f"http://s{n}" for n in range(4)]
    counts = Counter(rendezvous(f"key {n}", servers)[0] for n in range(4000))
    assert all(800 < count < 1200 for count in counts.values())


@given(st.text(max_size=20), st.lists(st.integers(0, 100), min_size=1, max_size=8))
def test_the_chosen_server_is_never_much_busier_than_the_least_busy(key: str, loads: list[int]) -> None:
    candidates = [Candidate(f"http://s{n}", load) for n, load in enumerate(loads)]
    chosen = choose(key, candidates)
    load = next(c.requests for c in candidates if c.url == chosen)
    assert load <= min(loads) * 1.5 + 4
    if max(loads) <= min(loads) * 1.5 + 4:  # nobody is overloaded: the cache decides
        assert chosen == rendezvous(key, [c.url for c in candidates])[0]


def test_the_key_is_tenant_instructions_and_first_evidence() -> None:
    evidence = "Passages: [1] " + "x" * 2000
    same = prefix_key("ten_1", "rules", evidence + "Question: one?")
    assert same == prefix_key("ten_1", "rules", evidence + "Question: two?")
    assert same != prefix_key("ten_2", "rules", evidence)
    assert same != prefix_key("ten_1", "rules", "other")


def test_no_candidate_is_an_error() -> None:
    with pytest.raises(ValueError):
        choose("k", [])


def test_a_breaker_opens_probes_at_doubling_gaps_and_closes() -> None:
    breaker = Breaker(failures=2, first_s=1, longest_s=3)
    breaker.failed(0)
    assert breaker.closed
    breaker.failed(0)
    assert not breaker.closed
    assert [breaker.probe_due(t) for t in (0.9, 1.0)] == [False, True]
    breaker.failed(1)
    assert [breaker.probe_due(t) for t in (2.9, 3.0)] == [False, True]
    breaker.failed(3)
    assert [breaker.probe_due(t) for t in (5.9, 6.0)] == [False, True]
    breaker.probed()
    assert breaker.closed
    breaker.failed(7)
    breaker.failed(7)  # looks well, fails all the same: the gap stays long
    assert not breaker.probe_due(9.9)
    breaker.succeeded()
    breaker.failed(10)
    assert breaker.closed
