"""A number stands where its source has it, and belongs to what its own sentence says."""

from __future__ import annotations

import pytest

from core.types import Verdict
from generation.contradiction import closest_sentence
from generation.number_places import borrowed_number, displaced_number
from generation.verify import judge

SPAN = "The area used for crops increased by 9% from 1961 to 2012, and was 1.4 billion hectares in 2012."
RECORD = "Furthermore, 2014 was the third warmest year since observations commenced in 1910."
TARGET = "The bill wants emissions to fall from the 1990 level by 2050, with a target of 26% by 2020."
PRESS = "The press was invented around 1040 in China during the dynasty by Bi Sheng (990-1051)."
ZH = "该馆自1961年至2012年由市政府管理，2012年以后改为基金会管理。"
ZH_BUILT = "老桥建于1923年，是1957年大桥通车以前唯一的过江通道。"


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        (SPAN.replace("1961", "2012"), SPAN),
        (RECORD.replace("2014", "1910"), RECORD),
        ("1910 was the third warmest year since observations commenced.", RECORD),
        (TARGET.replace("1990", "2020"), TARGET),
        ("The bill wants emissions to fall from the 2020 level by 2050.", TARGET),
        (PRESS.replace("1040", "1051"), PRESS),
        ("该馆自2012年至2012年由市政府管理，2012年以后改为基金会管理。", ZH),
        ("老桥建于1957年，是1957年大桥通车以前唯一的过江通道。", ZH_BUILT),
    ],
)
def test_a_number_in_the_place_of_another_is_found(claim: str, source: str) -> None:
    assert displaced_number(claim, source)
    assert judge(claim, source).verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        (SPAN, SPAN),
        ("The area used for crops was 1.4 billion hectares in 2012.", SPAN),
        ("The area used for crops increased by 9% between 1961 and 2012.", SPAN),
        ("2014 was the third warmest year.", RECORD),
        ("Observations commenced in 1910.", RECORD),
        ("In 1530 he published the Bible.", "In 1523 he published the New Testament, in 1530 the Bible."),
        ("The press was invented in China around 1040.", PRESS),
        ("The tower has 3 floors.", "The tower is 330 m tall and has 3 floors."),
        ("该馆2012年以后由基金会管理。", ZH),
        ("老桥建于1923年。", ZH_BUILT),
        (ZH, ZH),
        (ZH_BUILT, ZH_BUILT),
    ],
)
def test_a_number_in_its_own_place_stays(claim: str, source: str) -> None:
    assert displaced_number(claim, source) == ""


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        (
            "The hall was preserved in its original condition by 1954.",
            "The hall was preserved in its original condition by some citizens. In 1954 a tower was added.",
        ),
        (
            "The army of the north took the town in 1900.",
            "The war broke out in 1900. The army of the north took the town.",
        ),
        ("The old mill makes flour for 12 villages.", "The old mill makes flour. It has 12 workers."),
        ("该厅于1954年按原样得到保存修复。", "该厅由市民团体按原样保存修复。1954年增建了塔楼。"),
        ("北方军队于1900年占领了县城。", "战争爆发于1900年。北方军队占领了县城。"),
    ],
)
def test_a_number_of_the_neighbouring_sentence_is_not_this_ones(claim: str, passage: str) -> None:
    assert judge(claim, passage).verdict is not Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The tower, finished in 1889, is 330 m tall.", "The tower was finished in 1889. It is 330 m tall."),
        ("The army took the town in 1900.", "The war broke out in 1900. That year the army took the town."),
        (
            "The northern army took the town in May.",
            "It took the town in May. The northern army left.",
        ),
        ("该塔建成于1889年，塔高330米。", "该塔建成于1889年。塔高330米。"),
        ("北方军队于1900年占领了县城。", "战争爆发于1900年。同年北方军队占领了县城。"),
    ],
)
def test_a_claim_may_join_two_sentences(claim: str, passage: str) -> None:
    assert borrowed_number(claim, closest_sentence(claim, passage), passage) == ""


VIDEOS = (
    "The first video was made in 1984 and filmed in Hebden Bridge. It was directed by Tim Pope. The second "
    "was made in 1985 by Leslie Libman. It was filmed in and around Newcastle upon Tyne with some scenes "
    "from Manchester."
)
ZH_VIDEOS = "第一部短片1984年拍摄于海布登桥。第二部短片1985年拍摄于纽卡斯尔市区及周边。"


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The video was filmed in and around Newcastle upon Tyne in 1984.", VIDEOS),
        ("The video was filmed in and around Newcastle upon Tyne in 1984 by Tim Pope.", VIDEOS),
        ("第二部1984年拍摄于纽卡斯尔市区及周边。", ZH_VIDEOS),
    ],
)
def test_a_year_of_elsewhere_is_not_even_partly_borne_out_where_its_own_sentences_have_another(
    claim: str, passage: str
) -> None:
    assert judge(claim, passage).verdict is Verdict.UNSUPPORTED


def test_a_year_of_elsewhere_is_partly_borne_out_where_its_own_sentences_have_none() -> None:
    wall = (
        "The wall is a series of forts built across the northern borders of China. Little of it "
        "remains. It has been rebuilt over the dynasties; most of the wall is from the Ming dynasty of 1368."
    )
    claim = "The wall of the Ming dynasty of 1368 is a series of forts across the northern borders of China."
    assert judge(claim, wall).verdict is Verdict.PARTIAL
