from __future__ import annotations

import pytest

from core.types import Verdict
from generation.polarity import agreement, marks, no_effect
from generation.relations import bound_changed, cause_reversed, hedge_dropped, quantity_changed, sole_added
from generation.verify import judge, judge_together
from generation.wording import content_terms
from tests.generation.evidence import evidence


@pytest.mark.parametrize(
    ("claim", "source", "reason"),
    [
        ("All pumps in the hall failed in 2019.", "Some pumps in the hall failed in 2019.", "quantity"),
        ("所有水泵在检修后停机。", "部分水泵在检修后停机。", "quantity"),
        ("The valve holds at least 12 bar.", "The valve holds up to 12 bar.", "bound"),
        ("一号车间的储油箱容量不超过30升。", "一号车间的储油箱容量至少30升。", "bound"),
        ("Corrosion causes high pressure in pumps.", "High pressure in pumps causes corrosion.", "cause"),
        ("管道腐蚀导致压力过高。", "压力过高导致管道腐蚀。", "cause"),
        ("In March Bolt bought Acme.", "In March Acme bought Bolt.", "roles"),
        ("The treaty was signed after the war.", "The treaty was signed before the war.", "direction"),
        ("The drug enhances liver function.", "The drug strongly suppresses liver function.", "direction"),
        ("该药物促进肝功能恢复。", "试验中该药物抑制肝功能恢复。", "direction"),
        ("It was built in June 1889.", "It was built in July 1889.", "month"),
        ("Deliveries take 3 days.", "Deliveries take 3 hours.", "number"),
        ("The release is dated 2024-09-12.", "The release is dated 2024-10-12.", "month"),
        ("三分之二的水泵停机。", "三分之一的水泵停机。", "number"),
    ],
)  # fmt: skip
def test_a_claim_that_changes_one_word_of_its_source_is_caught(claim: str, source: str, reason: str) -> None:
    assert judge(source, source).verdict is Verdict.SUPPORTED
    judgement = judge(claim, source)
    assert judgement.verdict is Verdict.UNSUPPORTED
    assert judgement.reason.startswith(reason)


@pytest.mark.parametrize(
    ("claim", "source", "reason"),
    [
        ("The pump is the only one in hall four.", "The pump is one of those in hall four.", "sole"),
        ("The bridge closed in 2021.", "The bridge reportedly closed in 2021.", "hedge"),
        (
            "The poem is about a colonialist and an African native.",
            "The poem is commonly thought to be about a colonialist and an African native.",
            "hedge",
        ),
        ("这首诗写的是殖民者与当地人。", "一般认为，这首诗写的是殖民者与当地人。", "hedge"),
        ("桥梁于2021年关闭通行。", "据称桥梁于2021年关闭通行。", "hedge"),
    ],
)
def test_a_claim_that_is_surer_than_its_source_is_only_partly_borne_out(
    claim: str, source: str, reason: str
) -> None:
    judgement = judge(claim, source)
    assert judgement.verdict is Verdict.PARTIAL
    assert judgement.reason.startswith(reason)


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Acme Pumps Corp was sued by Bolt in Dover.", "Bolt was sued by Acme Pumps Corp in Dover."),
        ("The Denver Steelers beat Pittsburgh Broncos.", "The Denver Broncos beat Pittsburgh Steelers."),
        ("Steam turbines drive generators in stations.", "Generators drive steam turbines in stations."),
        ("The final was played in Bowl Super style.", "The final was played in Super Bowl style."),
        ("去年海石科技收购了远山股份。", "去年远山股份收购了海石科技。"),
        ("2005年Lowry公司把数据交给了Nafzger修复。", "2005年Nafzger公司把数据交给了Lowry修复。"),
        ("Sports公司证实将于三月推出Setanta订阅服务。", "Setanta Sports公司证实将于三月推出订阅服务。"),
        ("The plant in Dover closed in May.", "Every plant except the one in Dover closed in May."),
        ("东门仓库周一开放。", "除东门仓库外，各仓库周一开放。"),
    ],
)  # fmt: skip
def test_sides_exchanged_and_exceptions_are_caught(claim: str, source: str) -> None:
    assert judge(source, source).verdict is Verdict.SUPPORTED
    judgement = judge(claim, source)
    assert judgement.verdict is Verdict.UNSUPPORTED
    assert judgement.reason.startswith(("roles:", "name:", "exception:"))


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Sales in France, Spain and Italy rose.", "Sales in Italy, Spain and France rose."),
        ("In 1990 the firm sold pumps to Acme.", "The firm sold pumps to Acme in 1990."),
        ("The capital of France is Paris.", "Paris is the capital of France."),
        ("Bolt Ltd and Acme sell pumps.", "Acme and Bolt Ltd sell pumps."),
        ("海石科技、远山股份和东方公司参加了会议。", "远山股份、东方公司和海石科技参加了会议。"),
        ("中国的首都是北京。", "北京是中国的首都。"),
        ("Gas is used as well as oil.", "Apart from oil, gas is also used as well."),
    ],
)
def test_another_order_that_says_the_same_is_no_exchange(claim: str, source: str) -> None:
    assert not judge(claim, source).reason.startswith(("roles", "name", "exception"))


def test_a_quote_that_opens_with_a_pronoun_has_the_sentence_that_says_whom_it_means() -> None:
    text = "The pump was made by Ada Finch. She sold the patent to Bolt in May. Bolt closed."
    span = judge("She sold the patent to Bolt in May.", text).span
    assert span is not None
    assert text[span.start : span.end].startswith("The pump was made by Ada Finch.")
    zh = "李伟任独立董事。他于三月辞去职务。公司随后公告。"
    span = judge("他于三月辞去职务。", zh).span
    assert span is not None
    assert zh[span.start : span.end] == "李伟任独立董事。他于三月辞去职务。"


def test_weaker_words_than_the_source_are_no_change() -> None:
    assert quantity_changed("Some pumps failed.", "All pumps failed.") == ""
    assert hedge_dropped("It might rain.", "It might rain.") == ""
    assert not sole_added("It is not only cheap.", "It is cheap.")
    assert bound_changed("at least 12 bar", "12 bar") == ""
    assert not cause_reversed("Heat causes wear.", "Wear is caused by heat.")


def test_directions_are_compared_where_the_same_words_stand() -> None:
    claim = "Screening decreases hospital mortality."
    weights = dict.fromkeys(content_terms(claim), 1.0)
    same = "Screening was associated with lower hospital mortality, while costs increased."
    other = "Screening was associated with higher hospital mortality, while costs decreased."
    assert agreement(claim, same, weights) > 0 > agreement(claim, other, weights)


def test_a_negation_turns_a_direction_round() -> None:
    assert [sign for _, sign in marks("does not increase").signs] == [-1]
    assert [sign for _, sign in marks("压力没有上升").signs] == [-1]
    assert no_effect("It had no significant effect.")
    assert no_effect("两组没有明显差异。")


def test_two_passages_may_carry_one_claim_together() -> None:
    tower = evidence(1, "The tower in Paris is 330 metres tall. It is painted brown.")
    year = evidence(2, "Workers finished the iron tower in 1889 after two years.")
    claim = "The tower is 330 metres tall and workers finished it in 1889."
    assert judge(claim, tower.passage.text).verdict is Verdict.UNSUPPORTED
    joined = judge_together(claim, (tower, year))
    assert [(e.marker, j.verdict) for e, j in joined] == [(1, Verdict.SUPPORTED), (2, Verdict.SUPPORTED)]
    assert judge_together("The tower is 331 metres tall, finished in 1889.", (tower, year))[0][
        1
    ].reason.startswith("together;number")
    assert judge_together("The tower is 330 metres tall.", (tower,)) == []


def test_a_number_further_on_in_the_passage_is_shown_as_partly_borne_out() -> None:
    text = (
        "The Harbour bridge was opened by the old mayor in heavy rain. Nobody crossed it. Cars waited. "
        "The bridge toll of the Harbour authority is 4 euros."
    )
    claim = "The Harbour bridge was opened by the old mayor in heavy rain, its toll is 4 euros."
    judgement = judge(claim, text)
    assert (judgement.verdict, judgement.reason.split(":")[0]) == (Verdict.PARTIAL, "apart")


def test_a_sentence_with_its_neighbours_name_is_only_partly_borne_out() -> None:
    text = (
        "The Broncos defeated the Pittsburgh Steelers in the divisional round by scoring 11 points in the "
        "final minutes of the game. They went on to win the Super Bowl."
    )
    claim = (
        "The Broncos defeated the Pittsburgh Steelers in the Super Bowl by scoring 11 points in the final "
        "minutes of the game."
    )
    judgement = judge(claim, text)
    assert (judgement.verdict, judgement.reason) == (Verdict.PARTIAL, "spliced:Super")
    assert judge(text.split(". ")[0] + ".", text).verdict is Verdict.SUPPORTED


def test_the_subject_may_be_named_from_the_sentence_before() -> None:
    text = "Acme sells pumps. It opened a plant in Dover in 1999."
    assert judge("Acme opened a plant in Dover in 1999.", text).verdict is Verdict.SUPPORTED
