"""Slices of questions and the paired bootstrap against hand-worked values."""

from __future__ import annotations

import pytest

from retrieval.measure_slices import Asked, against_best_route, bootstrap, by_kind, kinds


def asked(text: str, final: float, dense: float, lexical: float) -> Asked:
    def own(value: float) -> dict[str, float]:
        return {"recall@1": value, "ndcg@10": value}

    return Asked(text, own(final), {"dense": own(dense), "lexical": own(lexical)})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("型号 XY-2080 的保修期是多少年？", ["zh", "middle", "code", "number"]),
        ("Who?", ["en", "short"]),
        ("12", ["other language", "short"]),
    ],
)
def test_kinds_of_a_question(text: str, expected: list[str]) -> None:
    assert kinds(text) == expected


def test_slices_name_their_best_route_and_the_whole_its_own() -> None:
    told = [asked("Who?", 1.0, 0.5, 1.0), asked("何人？", 0.5, 0.5, 0.0), asked("Where?", 1.0, 1.0, 0.0)]
    slices = by_kind(told)
    assert (slices["en"]["n"], slices["en"]["ndcg@10"], slices["en"]["best_route"]) == (2, 1.0, 0.75)
    assert slices["zh"] == {"n": 1, "recall@1": 0.5, "ndcg@10": 0.5, "best_route": 0.5}
    best = against_best_route(told)
    assert (best["route"], best["difference"]) == ("dense", round(0.5 / 3, 4))
    assert against_best_route([]) == {}


def test_a_steady_difference_is_told_from_none() -> None:
    steady = bootstrap([0.1] * 50)
    assert (steady["difference"], steady["ci95"], steady["p"]) == (0.1, [0.1, 0.1], 0.0)
    assert bootstrap([0.0] * 50)["p"] == 1.0
    assert bootstrap([1.0, -1.0] * 50)["p"] > 0.5
    assert bootstrap([0.3, -0.1, 0.2], seed=4) == bootstrap([0.3, -0.1, 0.2], seed=4)
