"""The light query door: what is accepted, what is refused, what is stored."""

from __future__ import annotations

import pytest

from core.errors import InvalidInput, TooLarge
from core.settings import get_settings
from retrieval.filters import Field, Filters, parse_filters
from retrieval.queries import clean_question, page_of


@pytest.mark.parametrize("blank", ["", "   \n", "​　", "\x00\x01\x1f", "\ufeff", "\u200d", "\ufe0f"])
def test_blank_control_and_zero_width_questions_are_refused(blank: str) -> None:
    with pytest.raises(InvalidInput):
        clean_question(blank)


@pytest.mark.parametrize(
    "legal", ["🙂🙂🙂", "？！。", "的", "' OR 1=1 --", 'AND OR NOT ("unclosed ~2 [1 TO', "👩‍👩‍👧"]
)
def test_odd_but_legal_questions_are_kept_as_they_are(legal: str) -> None:
    assert clean_question(legal) == legal


def test_nul_and_lone_surrogates_never_reach_the_database() -> None:
    assert clean_question("a\x00b") == "a b"
    assert clean_question("a\ud800b") == "a\ufffdb"


def test_a_question_above_the_cap_is_too_large() -> None:
    cap = get_settings().api.max_question_chars
    assert clean_question("水" * cap) == "水" * cap
    with pytest.raises(TooLarge):
        clean_question("水" * (cap + 1))


def test_filters_read_every_key() -> None:
    parsed = parse_filters({"documents": ["doc_1"], "metadata": {"year": 2024}, "lang": ["zh"]})
    assert parsed == Filters(documents=("doc_1",), metadata=(Field("year", (2024,)),), lang=("zh",))
    assert parse_filters({}).empty
    assert not parse_filters({"tags": []}).empty


@pytest.mark.parametrize(
    "bad",
    [
        {"owner": "x"},
        {"tags": "x"},
        {"tags": [1]},
        {"lang": ["fr"]},
        {"metadata": {"a": [1]}},
        {"metadata": 1},
    ],
)
def test_malformed_filters_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        parse_filters(bad)


@pytest.mark.parametrize(
    "bad", [{"top_k": 0}, {"top_k": 1001}, {"top_k": True}, {"offset": -1}, {"top_k": "5"}]
)
def test_pages_out_of_bounds_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        page_of(bad)
