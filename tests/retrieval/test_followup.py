# ruff: noqa: E501 - a conversation a line
"""Questions that lean on the turns before them."""

from __future__ import annotations

import pytest

from retrieval.followup import MAX_TURNS, rewritten


def turns(*texts: str) -> list[dict[str, str]]:
    """User and assistant in turn."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("history", "question", "held"),
    [
        (("How often is the cooling pump in hall 4 serviced?", "Every six months [1]."), "When was it last done?", ["cooling pump", "last"]),
        (("Who wrote Nature?", "Emerson wrote it in 1836 [1]."), "When was he born?", ["Emerson", "born"]),
        (("Where was Marie Curie born?", "In Warsaw [1]."), "And her husband?", ["Marie Curie", "husband"]),
        (("What is the price of the XW-2003?", "40 euros [1]."), "What about its weight?", ["XW-2003", "weight"]),
        (("What is the price of the XW-2003?", "40 euros [1]."), "Why?", ["XW-2003", "Why"]),
        (("When did the Amazon rainforest form?", "In the Eocene [1].", "How big is it?", "5.5 million km2 [2]."), "Which countries share it?", ["Amazon", "countries"]),
        (("What does the warranty cover?", "Parts [1]."), "And labour?", ["warranty", "labour"]),
        (("二号厂房的冷却水泵多久保养一次？", "每六个月一次[1]。"), "它上一次保养是什么时候？", ["二号厂房的冷却水泵", "上一次保养"]),
        (("《红楼梦》的作者是谁？", "曹雪芹[1]。"), "他还写过什么？", ["还写过什么"]),
        (("XW-2003 的价格是多少？", "四十欧元[1]。"), "那重量呢？", ["XW-2003", "重量"]),
        (("人大文学院的古典学实验班创办于哪一年？", "2010年[1]。"), "为什么？", ["古典学实验班", "为什么"]),
        (("海石科技的总部在哪里？", "在苏州[1]。"), "该公司有多少员工？", ["海石科技", "员工"]),
        (("海石科技的总部在哪里？", "在苏州[1]。", "它的创始人是谁？", "李伟[2]。"), "其成立时间是哪一年？", ["成立时间"]),
        (("年假有多少天？", "十天[1]。"), "病假呢？", ["年假", "病假"]),
    ],
)  # fmt: skip
def test_what_is_missing_is_carried_over(history: tuple[str, ...], question: str, held: list[str]) -> None:
    found = rewritten(question, turns(*history))
    assert found.topic
    assert found.why in ("pronoun", "fragment")
    for words in held:
        assert words in found.text, found


@pytest.mark.parametrize(
    ("history", "question"),
    [
        (("How often is the pump serviced?", "Every six months."), "Where do visitors register?"),
        (("How often is the pump serviced?", "Every six months."), "Is it true that the archive keeps paper records?"),
        (("Who wrote Nature?", "Emerson."), "When was Marie Curie born, and where did she study?"),
        (("水泵多久保养一次？", "每六个月。"), "访客在哪里登记？"),
        (("水泵多久保养一次？", "每六个月。"), "其他部门的访客在哪里登记？"),
        (("水泵多久保养一次？", "每六个月。"), "《红楼梦》的作者和他的朋友是谁？"),
        ((), "When was it last serviced?"),
        ((), "它上一次保养是什么时候？"),
    ],
)  # fmt: skip
def test_a_question_that_stands_by_itself_stays_as_it_is(history: tuple[str, ...], question: str) -> None:
    found = rewritten(question, turns(*history))
    assert (found.text, found.topic, found.why) == (question, "", "")


@pytest.mark.parametrize(
    ("history", "question", "whole"),
    [
        (("Where is Harbour College?", "In Leith [1]."), "When was the college founded?", "When was Harbour College founded?"),
        (("What does the Acme Harbour Company sell?", "Pumps [1].", "And where?", "In Leith [2]."), "Who leads the company?", "Who leads Acme Harbour Company?"),
        (("高瓴人工智能学院是什么时候成立的", "2019年[1]。"), "学院的院长是谁", "高瓴人工智能学院的院长是谁"),
        (("海石公司的总部在哪里？", "在苏州[1]。"), "目前公司有多少员工？", "目前海石公司有多少员工？"),
        (("海石公司和南湖公司哪个更早成立？", "南湖公司[1]。"), "公司的总部在哪里？", "海石公司和南湖公司的总部在哪里？"),
    ],
)  # fmt: skip
def test_a_bare_noun_means_the_last_name_that_ends_in_it(
    history: tuple[str, ...], question: str, whole: str
) -> None:
    found = rewritten(question, turns(*history))
    assert (found.text, found.why) == (whole, "noun")
    far = [*turns(*history), *turns(*("天气怎么样？", "晴。") * MAX_TURNS)]
    assert rewritten(question, far).text == whole


@pytest.mark.parametrize(
    ("history", "question"),
    [
        (("Where is Harbour College?", "In Leith [1]."), "When was Lakeside College founded?"),
        (("Where is the college?", "In Leith [1]."), "When was the college founded?"),
        (("海石公司的总部在哪里？", "在苏州[1]。"), "南湖公司有多少员工？"),
        (("海石公司的总部在哪里？", "在苏州[1]。"), "与多少家公司有合作？"),
        (("东海大学在哪里？", "在台中[1]。"), "大学生怎么申请宿舍？"),
        (("有哪些公司参加？", "三家[1]。"), "公司有多少员工？"),
    ],
)  # fmt: skip
def test_a_noun_that_is_named_or_was_never_named_stays(history: tuple[str, ...], question: str) -> None:
    assert rewritten(question, turns(*history)).text == question


def test_a_known_name_is_carried_before_what_spelling_shows() -> None:
    history = turns("海石科技去年的营业额是多少？", "三亿元[1]。")
    found = rewritten(
        "它的员工有多少？", history, names_in=lambda text: ["海石科技"] if "海石科技" in text else []
    )
    assert found.text == "海石科技的员工有多少？"


def test_a_known_name_is_carried_over_with_its_owner() -> None:
    history = turns("青石水库的大坝有多高？", "大坝高四十二米[1]。")
    found = rewritten("它的库容是多少？", history, names_in=lambda text: ["大坝"] if "大坝" in text else [])
    assert found.text == "青石水库的大坝的库容是多少？"


def test_only_the_last_turns_count() -> None:
    old = turns("What is the price of the XW-2003?", "40 euros.")
    newer = turns(*(text for n in range(MAX_TURNS) for text in (f"Where is door {n}?", "East.")))
    assert "XW-2003" not in rewritten("How heavy is it?", [*old, *newer]).text


def test_turns_without_text_or_of_other_roles_do_no_harm() -> None:
    history = [{"role": "system", "content": "x"}, {"role": "user", "content": ""}, {}, {"role": "user"}]
    assert rewritten("Why?", history).text == "Why?"
