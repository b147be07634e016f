"""The curve of the router, and what counts as an answer."""

from __future__ import annotations

import pytest

from generation.measure_router import AtDepth, Routed, curve, gold_of
from retrieval.depth import Depth, Signals

SURE = Signals(0.99, 6.0, 0.95, True, True, True, False, 0.7)
UNSURE = Signals(0.2, 0.05, 0.0, False, False, False, True, 2.0)


def row(name: str, signals: Signals | None, *, shallow: bool) -> Routed:
    costs = {Depth.EXTRACT: (5, 0), Depth.ONE: (5, 50), Depth.FEW: (5, 100), Depth.FULL: (20, 400)}
    depths = {
        depth: AtDepth(shallow or depth is Depth.FULL, float(read), read, tokens)
        for depth, (read, tokens) in costs.items()
    }
    return Routed(name, signals, depths)


def test_a_router_that_knows_beats_the_best_random_mix_of_the_same_cost() -> None:
    rows = [row(f"s{n}", SURE, shallow=True) for n in range(50)]
    rows += [row(f"u{n}", UNSURE, shallow=False) for n in range(50)]
    found = curve(rows, threshold=0.12)
    assert found["n"] == 100
    assert found["depths"]["full"]["quality"] == 1.0
    assert found["depths"]["extract"]["quality"] == 0.5
    dear = found["curve"][-1]
    assert dear["quality"] == 1.0
    assert dear["saved"] > 0.3
    assert dear["random_quality"] < 0.8
    assert dear["over_random"]["difference"] == pytest.approx(
        dear["quality"] - dear["random_quality"], abs=1e-3
    )


def test_questions_that_the_router_is_not_asked_about_take_the_full_depth() -> None:
    found = curve([row("a", None, shallow=True), row("b", UNSURE, shallow=True)], threshold=0.9)
    assert all(point["depths"]["full"] == 1.0 and point["saved"] == 0.0 for point in found["curve"])


def test_nothing_asked_is_no_error() -> None:
    assert curve([], threshold=0.1)["n"] == 0


def test_an_answer_in_several_parts_needs_all_of_them() -> None:
    line = {"answers": ["2010", ["汉语", "法语"]], "selected_sentences": [["It rained ."]]}
    assert gold_of(line) == [["2010"], ["汉语", "法语"], ["It rained ."]]
