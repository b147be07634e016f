"""Which runs of a question are codes, how a text may spell them, and what a rare one decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.types import Hit, Route
from ingest.fold import search_fold
from retrieval.dedupe import fingerprint, near_duplicates
from retrieval.fuse import standardized_sum
from retrieval.identifiers import CODE_WEIGHT, COMMON, code_scores, codes, holds, rarity
from retrieval.rerank import final_order


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("本页的校验码是 V0123", ["v0123"]),
        ("ＸＹ－２０８０的保修期", ["xy-2080"]),
        ("what is error code 0x80070005?", ["0x80070005"]),
        ("错误码：404 是什么", ["404"]),
        ("open nightly-sync.sh on port 8080", ["nightly-sync.sh", "8080"]),
        ("QUARTZ-LANTERN 的预算", ["quartz-lantern"]),
        ("ORA-01017 after 3.11.7", ["ora-01017", "3.11.7"]),
        ("ERR_CONN_RESET", ["err_conn_reset"]),
        ("GB/T 50016-2014 第 12 条", ["50016-2014"]),
        ("订单号 20240001234", ["20240001234"]),
    ],
)
def test_codes_of_a_question(question: str, found: list[str]) -> None:
    assert [code.text for code in codes(question)] == found


@pytest.mark.parametrize(
    "question",
    [
        "a 5-year-old in the 1990s",
        "20mm 管 4.5kg",
        "e.g. the U.S. at 9:30 on 12/3",
        "and/or 24-hour",
        "第12条",
        "",
    ],
)
def test_quantities_dates_and_words_are_no_codes(question: str) -> None:
    assert codes(question) == ()


@pytest.mark.parametrize("text", ["型号XY-2080。", "the XY2080", "xy_2080,", "ＸＹ２０８０", "XY 2080"])
def test_one_code_is_found_however_its_parts_are_joined(text: str) -> None:
    assert holds(search_fold(text), "xy-2080")
    assert holds(search_fold(text), "xy2080")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("xy-20801", "xy-2080"),
        ("axy-2080", "xy-2080"),
        ("v3.11.71", "3.11.7"),
        ("3117", "3.11.7"),
        ("1.404", "404"),
    ],
)
def test_a_part_of_another_code_is_not_the_code(text: str, code: str) -> None:
    assert not holds(text, code)


@given(st.text(max_size=60))
def test_any_question_can_be_looked_at(text: str) -> None:
    for code in codes(text):
        assert code.text
        assert all(all(own) for own in code.spellings)
        assert holds(code.text, code.text)


def test_a_code_decides_less_the_more_passages_have_it() -> None:
    assert rarity(0) == rarity(COMMON + 1) == 0
    assert rarity(1) == 1 > rarity(2) > rarity(COMMON) > 0
    assert code_scores({"a": [3], "b": [1, 3, 2, 4]}) == [(3, 1.5), (1, 0.5), (2, 0.5), (4, 0.5)]


def test_a_code_of_one_passage_alone_comes_first_whatever_the_other_routes_say() -> None:
    """Nineteen near-identical passages agree with the question in everything but the code."""
    ids = list(range(1, 21))
    ranked = {
        Route.DENSE: [Hit(i, Route.DENSE, i, 0.99 if i < 20 else 0.1) for i in ids],
        Route.LEXICAL: [Hit(i, Route.LEXICAL, i, 30.0 if i < 20 else 1.0) for i in ids],
        Route.CODE: [Hit(20, Route.CODE, 1, 1.0)],
    }
    fused = standardized_sum(ranked, exact={Route.CODE: CODE_WEIGHT})
    assert fused[0].passage_id == 20
    order = final_order(
        [(f.passage_id, f.score) for f in fused],
        {i: 0.9 if i < 20 else 0.5 for i in ids},
        weight=2.0,
        exact={f.passage_id: f.exact for f in fused},
    )
    assert order[0][0] == 20


@pytest.mark.parametrize(
    ("one", "other"), [("V0123", "W0123"), ("QUARTZ-LANTERN", "QUARTZ-LANTERNS"), ("V0123", "")]
)
def test_texts_with_different_codes_are_no_repeats(one: str, other: str) -> None:
    page = "本页说明如何插入页眉并更新目录，" * 8
    assert not near_duplicates(fingerprint(f"{page}代号 {one}。"), fingerprint(f"{page}代号 {other}。"))
    assert near_duplicates(fingerprint(f"{page}代号 {one}。"), fingerprint(f"{page}代号 {one}！"))
