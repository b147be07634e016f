"""Fusion against plain loops, and what it must never do."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.types import Hit, Lang, Route
from retrieval.fuse import (
    divided,
    followed_by,
    reciprocal_rank_fusion,
    route_weights,
    standardized,
    standardized_sum,
)
from retrieval.hits import ranked_hits
from retrieval.language import identifier_share, question_language

scored_lists = st.lists(
    st.tuples(st.integers(1, 30), st.floats(-100, 100, allow_nan=False)),
    max_size=20,
    unique_by=lambda t: t[0],
)
rankings = st.fixed_dictionaries(dict.fromkeys(Route, scored_lists)).map(
    lambda lists: {route: ranked_hits(route, own) for route, own in lists.items()}
)


def rrf_loop(ranked: dict[Route, list[Hit]], k: int) -> dict[int, float]:
    scores: dict[int, float] = {}
    for hits in ranked.values():
        for hit in hits:
            scores[hit.passage_id] = scores.get(hit.passage_id, 0.0) + 1 / (k + hit.rank)
    return scores


def z_loop(ranked: dict[Route, list[Hit]]) -> dict[int, float]:
    ids = {hit.passage_id for hits in ranked.values() for hit in hits}
    total = dict.fromkeys(ids, 0.0)
    for hits in ranked.values():
        if not hits:
            continue
        values = [hit.score for hit in hits]
        mean, deviation = statistics.fmean(values), statistics.pstdev(values)
        flat = deviation <= 1e-9 * max(1.0, abs(mean))
        z = {h.passage_id: 1.0 if flat else max(-4.0, min(4.0, (h.score - mean) / deviation)) for h in hits}
        for i in ids:
            total[i] += z.get(i, -1.0 if flat else min(z.values()))
    return total


@given(rankings, st.integers(1, 100))
def test_reciprocal_rank_fusion_equals_its_loop(ranked: dict[Route, list[Hit]], k: int) -> None:
    expected = rrf_loop(ranked, k)
    fused = reciprocal_rank_fusion(ranked, k=k)
    assert {f.passage_id for f in fused} == set(expected)
    assert all(math.isclose(f.score, expected[f.passage_id], rel_tol=1e-12) for f in fused)
    assert [(-f.score, f.passage_id) for f in fused] == sorted((-f.score, f.passage_id) for f in fused)


@given(rankings)
def test_standardized_sum_equals_its_loop(ranked: dict[Route, list[Hit]]) -> None:
    expected = z_loop(ranked)
    fused = standardized_sum(ranked)
    assert {f.passage_id for f in fused} == set(expected)
    for f in fused:
        assert math.isclose(f.score, expected[f.passage_id], rel_tol=1e-6, abs_tol=1e-6)
        assert {h.route for h in f.hits} == {
            r for r, hits in ranked.items() if f.passage_id in {h.passage_id for h in hits}
        }


def test_ties_go_to_the_lower_passage_id() -> None:
    ranked = {Route.DENSE: [Hit(9, Route.DENSE, 1, 1.0)], Route.LEXICAL: [Hit(4, Route.LEXICAL, 1, 7.0)]}
    assert [f.passage_id for f in reciprocal_rank_fusion(ranked)] == [4, 9]
    assert [f.passage_id for f in standardized_sum(ranked)] == [4, 9]


def test_nothing_recalled_fuses_to_nothing() -> None:
    assert reciprocal_rank_fusion({}) == []
    assert standardized_sum({Route.DENSE: []}) == []


def test_a_passage_listed_twice_by_one_route_is_an_error() -> None:
    twice = {Route.DENSE: [Hit(1, Route.DENSE, 1, 1.0), Hit(1, Route.DENSE, 2, 0.5)]}
    with pytest.raises(ValueError, match="twice"):
        reciprocal_rank_fusion(twice)
    with pytest.raises(ValueError, match="twice"):
        standardized_sum(twice)


def test_a_score_that_is_not_finite_is_an_error() -> None:
    with pytest.raises(ValueError, match="finite"):
        standardized_sum({Route.DENSE: [Hit(1, Route.DENSE, 1, math.nan)]})


def test_the_only_hit_of_a_route_counts_in_its_favour() -> None:
    dense = ranked_hits(Route.DENSE, [(1, 0.9), (2, 0.89), (3, 0.1)])
    lexical = [Hit(2, Route.LEXICAL, 1, 12.0)]
    assert standardized_sum({Route.DENSE: dense, Route.LEXICAL: lexical})[0].passage_id == 2


def test_words_do_not_count_across_languages() -> None:
    langs = {1: Lang.EN, 2: Lang.ZH}
    weight = route_weights(
        {Route.DENSE: 1.0, Route.LEXICAL: 1.0},
        question_lang=Lang.ZH,
        passage_langs=langs,
        identifier_share=0.0,
    )
    assert weight(Route.LEXICAL, 1) == 0.0
    assert weight(Route.LEXICAL, 2) == weight(Route.DENSE, 1) == 1.0
    assert weight(Route.LEXICAL, 3) == 1.0, "an unknown language says nothing"


@pytest.mark.parametrize(
    ("question", "lang", "share"),
    [
        ("水泵多久保养一次？", Lang.ZH, 0.0),
        ("How often is the pump serviced?", Lang.EN, 0.0),
        ("XY-2080", Lang.EN, 1.0),
        ("Qwen3 的上下文长度是多少", Lang.ZH, 1 / 10),
        ("🙂🙂🙂", Lang.UND, 0.0),
        ("ポンプの点検", Lang.UND, 0.0),
    ],
)
def test_question_language_and_identifiers(question: str, lang: Lang, share: float) -> None:
    assert question_language(question) is lang
    assert identifier_share(question) == pytest.approx(share)


def test_standardized_values_have_mean_zero_and_deviation_one() -> None:
    values = standardized([1.0, 2.0, 4.0])
    assert math.isclose(sum(values), 0, abs_tol=1e-12)
    assert math.isclose(statistics.pstdev(values), 1)
    assert standardized([3.0, 3.0]) == [0.0, 0.0]
    assert standardized([]) == []


def test_asking_for_more_does_not_move_what_came_before() -> None:
    """Pages of a search ask the routes for ever more hits; the pages must follow each other."""
    source = random.Random(4)
    routes = {
        route: [
            Hit(i, route, rank, 10.0 / rank + source.random() / 100)
            for rank, i in enumerate(source.sample(range(400), 300), 1)
        ]
        for route in (Route.DENSE, Route.LEXICAL)
    }

    def order(k: int) -> list[int]:
        asked = {route: own[:k] for route, own in routes.items()}
        above, below = divided(asked, 50)
        return [f.passage_id for f in followed_by(standardized_sum(above), below)]

    whole = order(300)
    assert len(whole) == len(set(whole)) == len({h.passage_id for own in routes.values() for h in own})
    for k in (50, 51, 80, 120, 200):
        found = order(k)
        assert found == whole[: len(found)]


def test_a_merged_passage_keeps_the_hits_of_lower_parts() -> None:
    routes = {
        Route.DENSE: [Hit(1, Route.DENSE, 1, 0.9), Hit(2, Route.DENSE, 2, 0.5)],
        Route.LEXICAL: [Hit(3, Route.LEXICAL, 1, 9.0), Hit(1, Route.LEXICAL, 2, 8.0)],
    }
    above, below = divided(routes, 1)
    fused = followed_by(standardized_sum(above), below)
    assert {f.passage_id: len(f.hits) for f in fused} == {1: 2, 3: 1, 2: 1}
    assert fused[-1].passage_id == 2
    assert fused[-1].score < min(f.score for f in fused[:-1])
    assert divided(routes, 1, undivided=(Route.DENSE,))[1][Route.DENSE] == []
