"""A number or date belongs to the clause that it stands in."""

from __future__ import annotations

import pytest

from core.types import Verdict
from generation.attachment import misattached
from generation.verify import judge

BOOKS = (
    "Lefevre, a professor at Paris, published his French translation of the New Testament in 1523, followed "
    "by the whole Bible in the French language in 1530."
)
PLAYS = "Twelfth Night was written in 1601 and Hamlet in 1599."
CLUB = "Founded in 1901, the club won the cup in 1950."
TEAM = "Kuechly led the team in tackles (118), forced two fumbles, and intercepted four passes."
FOREST = "Brazil has 60% of the rainforest, followed by Peru with 13% and Colombia with 10%."
ZH = "勒菲弗于1523年出版了新约的法文译本，1530年出版了法文圣经全书。俱乐部成立于1901年，1950年夺得联赛冠军。"


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The leader who wrote the French Bible in 1523 was Lefevre, a professor at Paris.", BOOKS),
        ("Lefevre published the whole Bible in the French language in 1523.", BOOKS),
        ("Hamlet was written in 1601.", PLAYS),
        ("The club won the cup in 1901.", CLUB),
        ("The treaty ended the war in 1914.", "The war began in 1914, and the treaty ended it in 1918."),
        ("Kuechly intercepted two passes.", TEAM),
        ("Peru has 60% of the forest.", FOREST),
        ("The bridge opened in May.", "The tunnel closed in May, and the bridge opened in June."),
        ("勒菲弗于1523年出版了法文圣经全书。", ZH),
        ("俱乐部1901年夺得联赛冠军。", ZH),
        ("桥于五月开放通行。", "隧道于五月关闭检修，大桥于六月开放通行。"),
    ],
)
def test_a_number_of_another_thing_is_not_this_ones(claim: str, source: str) -> None:
    assert misattached(claim, source)
    judgement = judge(claim, source)
    assert judgement.verdict is not Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Lefevre published the New Testament in French in 1523.", BOOKS),
        ("Lefevre published the whole Bible in French in 1530.", BOOKS),
        ("The Bible, translated into French by Lefevre, was published in 1530.", BOOKS),
        ("Hamlet was written in 1599.", PLAYS),
        ("Hamlet was written in 1599 and Twelfth Night in 1601.", PLAYS),
        ("The club was founded in 1901.", CLUB),
        ("The club won the cup in 1950.", CLUB),
        ("The treaty ended the war in 1918.", "The war began in 1914, and the treaty ended it in 1918."),
        ("Kuechly intercepted four passes.", TEAM),
        ("Peru has 13% of the rainforest.", FOREST),
        ("The tower is 330 m tall.", "Finished in 1889, the tower is 330 m tall and has 3 floors."),
        ("勒菲弗1530年出版了法文圣经全书。", ZH),
        ("勒菲弗于1523年出版了新约的法文译本。", ZH),
        ("俱乐部于1950年夺得联赛冠军。", ZH),
        ("俱乐部于1901年成立。", ZH),
    ],
)
def test_a_number_with_its_own_words_stays(claim: str, source: str) -> None:
    assert misattached(claim, source) == ""


@pytest.mark.parametrize("source", [BOOKS, PLAYS, CLUB, TEAM, FOREST, *ZH.split("。")[:2]])
def test_a_source_agrees_with_itself(source: str) -> None:
    assert misattached(source, source) == ""
    assert judge(source, source).verdict is Verdict.SUPPORTED
