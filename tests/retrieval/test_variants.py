from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.variants import MAX_CHARS, MOST, Variant, joined, variants_of

HITS = st.dictionaries(st.integers(1, 40), st.floats(-5, 50, allow_nan=False), max_size=20).map(
    lambda found: sorted(found.items(), key=lambda item: (-item[1], item[0]))
)


@given(own=HITS, others=st.lists(HITS, max_size=3))
def test_what_variants_alone_found_stands_below_the_questions_best(
    own: list[tuple[int, float]], others: list[list[tuple[int, float]]]
) -> None:
    merged, known = joined(own, others), dict(own)
    assert {i for i, _ in merged} == {i for found in (own, *others) for i, _ in found}
    assert merged == sorted(merged, key=lambda item: (-item[1], item[0]))
    if own:
        low, high = own[-1][1], own[0][1]
        for passage_id, score in merged:
            assert score >= known.get(passage_id, low)
            if passage_id not in known:
                assert score <= low + 0.5 * (high - low) + 1e-9


def test_without_variants_hits_stay_as_they_are() -> None:
    own = [(2, 1.0), (1, 1.0)]
    assert joined(own, []) == joined(own, [[]]) == own


def test_a_variant_lifts_what_both_found() -> None:
    merged = joined([(1, 10.0), (2, 9.0), (3, 0.0)], [[(2, 4.0), (4, 1.0)]])
    assert [i for i, _ in merged] == [2, 1, 3, 4]
    assert dict(merged)[2] == pytest.approx(14.0)


def test_a_question_that_found_nothing_has_what_its_variant_found() -> None:
    assert [i for i, _ in joined([], [[(7, 3.0), (8, 1.0)]])] == [7, 8]


def test_rows_with_unknown_kinds_or_without_text_are_left_out() -> None:
    stored = [
        {"kind": "sql", "text": "x"},
        {"kind": "llm", "text": " "},
        {"kind": "hyde", "text": "a" * 5000},
    ]
    assert variants_of(stored) == (Variant("hyde", "a" * MAX_CHARS),)
    assert len(variants_of([{"kind": "llm", "text": "q"}] * 9)) == MOST
