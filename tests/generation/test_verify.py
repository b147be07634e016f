from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.types import Span, Verdict
from generation.facts import facts_of, han_number
from generation.verify import judge, quote_is_exact
from generation.wording import content_terms, negated
from tests.generation.evidence import evidence

TOWER = (
    "The Eiffel Tower is 330 metres tall and was finished in 1889 by the company of Gustave Eiffel. "
    "It did not open in May. Prices increased by 12 % in 2023."
)
PUMP = (
    "客户在九月十二日来信，要求更换两台阀门。清洗后静置十分钟。"
    "水泵不得在雨天启动。一号水泵车间的年度总产量增加了百分之五。"
)


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The Eiffel Tower is 330 metres tall.", TOWER),
        ("The tower is three hundred and thirty metres tall.", TOWER),
        ("The Eiffel Tower was finished in 1889.", TOWER),
        ("It did not open in May.", TOWER),
        ("Prices increased by 12 percent in 2023.", TOWER),
        ("客户要求更换两台阀门。", PUMP),
        ("客户要求更换2台阀门。", PUMP),
        ("清洗后静置10分钟。", PUMP),
        ("水泵车间年度总产量增加了5%。", PUMP),
        ("水泵不得在雨天启动。", PUMP),
    ],
)
def test_what_the_passage_says_is_supported(claim: str, passage: str) -> None:
    assert judge(claim, passage).verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("claim", "passage", "reason"),
    [
        ("The Eiffel Tower is 324 metres tall.", TOWER, "number"),
        ("The Eiffel Tower is 330 feet tall.", TOWER, "number"),
        ("The Eiffel Tower was finished in June 1889.", TOWER, "month"),
        ("The Eiffel Tower was not finished in 1889.", TOWER, "negation"),
        ("The Louvre Tower was finished in 1889.", TOWER, "name"),
        ("It opened in May.", TOWER, "negation"),
        ("Prices decreased by 12 % in 2023.", TOWER, "direction"),
        ("Prices increased by 21 % in 2023.", TOWER, "number"),
        ("客户要求更换三台阀门。", PUMP, "number"),
        ("客户在十月十二日来信。", PUMP, "month"),
        ("清洗后静置二十分钟。", PUMP, "number"),
        ("清洗后不需静置十分钟。", PUMP, "negation"),
        ("水泵得在雨天启动。", PUMP, "negation"),
        ("一号水泵车间的年度总产量减少了百分之五。", PUMP, "direction"),
        ("Penguins live in the Antarctic.", TOWER, "words"),
        ("企鹅生活在南极。", PUMP, "words"),
    ],
)
def test_a_wrong_fact_is_never_supported(claim: str, passage: str, reason: str) -> None:
    judgement = judge(claim, passage)
    assert judgement.verdict is Verdict.UNSUPPORTED
    assert judgement.reason.startswith(reason)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("三百三十", 330), ("二〇二四", 2024), ("两万五", 25000), ("两万五千", 25000), ("一万零三百", 10300),
        ("十二", 12), ("一百零五", 105), ("三亿", 300_000_000), ("一百五", 150),
    ],
)  # fmt: skip
def test_chinese_numerals_have_their_values(text: str, value: int) -> None:
    assert han_number(text) == value


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1.5 km", "1500 m"), ("三百三十米", "330 m"), ("two hours", "120 minutes"), ("百分之二", "2%"),
        ("1,234", "1234"), ("twenty-five", "25"), ("3.5万", "35000"), ("two million", "2000000"),
    ],
)  # fmt: skip
def test_the_same_quantity_agrees_in_other_words(left: str, right: str) -> None:
    (a,), (b,) = facts_of(left), facts_of(right)
    assert a.agrees_with(b)


def test_may_and_march_are_months_only_beside_a_time() -> None:
    assert facts_of("you may march on") == ()
    assert {f.value for f in facts_of("in May and on 3 March")} >= {Decimal(5), Decimal(3)}


@pytest.mark.parametrize("text", ["不仅快而且好", "非常好", "not only fast", "没有不同"])
def test_words_that_only_look_like_negations(text: str) -> None:
    assert negated(text) is (text == "没有不同")


def test_a_quote_must_stand_where_it_says() -> None:
    e = evidence(1, "Pumps run at night.", start=100)
    assert quote_is_exact(e, Span(100, 105), "Pumps")
    assert not quote_is_exact(e, Span(101, 106), "Pumps")
    assert not quote_is_exact(e, Span(0, 5), "Pumps")
    assert not quote_is_exact(e, Span(100, 400), "Pumps")


PARTS = ("pump", "valve", "12", "metres", "三台", "not", "Berlin", "水泵", "open", "in", "1999")
words = st.lists(st.sampled_from(PARTS), max_size=12)


@given(words)
def test_every_text_is_judged_against_itself_without_a_contradiction(parts: list[str]) -> None:
    text = " ".join(parts)
    judgement = judge(text, text)
    if content_terms(text):
        assert judgement.reason.startswith(("words", "negation", "few_words"))


@given(st.text(max_size=80), st.text(max_size=200))
def test_any_two_texts_can_be_compared(claim: str, passage: str) -> None:
    judgement = judge(claim, passage)
    assert 0 <= judgement.score <= 1
    if judgement.span is not None:
        assert judgement.span.end <= len(passage)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_another_number_is_caught(said: int, written: int) -> None:
    verdict = judge(f"The mast stands {said} metres tall.", f"The mast stands {written} metres tall.").verdict
    assert verdict is (Verdict.SUPPORTED if said == written else Verdict.UNSUPPORTED)
