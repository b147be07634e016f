"""What a claim takes from a heading, from a neighbour, or puts in somebody's mouth."""

from __future__ import annotations

import pytest

from core.types import Verdict
from generation.slots import added, misquoted, slot_replaced, subject_replaced, subject_unnamed
from generation.splicing import subject_from_later
from generation.verify import judge
from generation.wording import name_stands

GAME = (
    "The Broncos defeated the Pittsburgh Steelers in the divisional round, 23–16, by scoring 11 points in "
    "the final three minutes. They then beat the defending Super Bowl XLIX champion New England Patriots."
)
BARE = "The Broncos defeated the Pittsburgh Steelers in the divisional round, 23–16, in the rain."
ZH = "野马队在分区赛中以23比16击败了匹兹堡钢人队，最后三分钟得到11分。随后他们在冠军赛中击败了爱国者队。"


@pytest.mark.parametrize(
    ("claim", "passage", "above"),
    [
        ("The Broncos defeated the Pittsburgh Steelers in the Super Bowl, 23–16.", GAME, "Super Bowl 50"),
        ("The Broncos defeated the Pittsburgh Steelers in the Super Bowl, 23–16.", BARE, "Super Bowl 50"),
        ("The Broncos defeated the Pittsburgh Steelers in the Super Bowl.", GAME, "Super Bowl 50"),
        ("In the Super Bowl, the Broncos defeated the Pittsburgh Steelers, 23–16.", BARE, "Super Bowl 50"),
        ("In the Super Bowl the Broncos defeated the Pittsburgh Steelers, 23–16.", BARE, "Super Bowl 50"),
        ("The Broncos defeated the Pittsburgh Steelers in the Super Bowl XL.", GAME, "Super Bowl 50"),
        ("The plant sold 12 pumps to Acme in May.", "The plant sold 12 pumps in May.", "Acme"),
        ("野马队在超级碗中以23比16击败了匹兹堡钢人队。", ZH, "超级碗50"),
        ("在超级碗中，野马队以23比16击败了匹兹堡钢人队。", ZH, "超级碗50"),
        ("工厂五月向海石公司售出十二台水泵。", "工厂五月售出十二台水泵。", "海石公司"),
    ],
)
def test_a_heading_gives_no_place_and_no_object(claim: str, passage: str, above: str) -> None:
    assert judge(claim, passage, above).verdict is not Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("claim", "passage", "above"),
    [
        ("Jacksonville had 853,382 people in 2014.", "It had 853,382 people in 2014.", "Jacksonville"),
        ("The population of Dover was 8,000.", "The population was 8,000.", "Dover"),
        ("Acme opened a plant in Dover in 1999.", "The firm opened a plant in Dover in 1999.", "Acme"),
        ("The Broncos defeated the Pittsburgh Steelers in the divisional round.", GAME, "Super Bowl 50"),
        ("The Broncos beat the New England Patriots.", GAME, "Super Bowl 50"),
        ("野马队在分区赛中击败了匹兹堡钢人队。", ZH, "超级碗50"),
        ("海石公司成立于1999年五月。", "成立于1999年五月。", "海石公司"),
        ("海石公司的总部位于东门大街。", "总部位于东门大街。", "海石公司"),
    ],
)
def test_a_heading_gives_the_subject(claim: str, passage: str, above: str) -> None:
    assert judge(claim, passage, above).verdict is Verdict.SUPPORTED


def test_another_things_name_behind_the_same_preposition_is_put_in() -> None:
    first = GAME.split(". ")[0]
    assert (
        slot_replaced("The team won in the Super Bowl.", "The team won in the divisional round.", GAME)
        == "super bowl"
    )
    assert (
        slot_replaced("The team won in the second round.", "The team won in the divisional round.", first)
        == ""
    )
    assert slot_replaced("野马队在冠军赛中获胜。", "野马队在分区赛中获胜。", ZH) == "冠军"
    assert slot_replaced("Heavy rain fell in the night.", "Heavy rain fell in the evening.", "Rain.") == "", (
        "a synonym"
    )


def test_a_place_of_the_next_verb_is_not_the_first_ones() -> None:
    source = "Tesla was born in Smiljan and moved to Berlin."
    assert slot_replaced("Tesla was born in Berlin.", source, source) == "berlin"
    assert slot_replaced("Pumps run in Rome.", "Pumps run in Paris, Bonn and Rome.", "") == "", "a list"
    assert slot_replaced("He sold to Bolt in June.", "He sold to Acme in May, and to Bolt in June.", "") == ""
    zh = "李白出生于碎叶，后来迁居长安。"
    assert slot_replaced("李白出生于长安。", zh, zh) == "长安"
    assert slot_replaced("李白出生于碎叶。", zh, zh) == ""


def test_a_word_that_takes_nobodys_place_adds_to_what_is_said() -> None:
    source = "Harvard is a private university in Cambridge. It has a dental school."
    first = source.split(". ")[0]
    assert added("Harvard is a private cheap university in Cambridge.", first, source) == "cheap"
    assert added("Harvard is a private institution in Cambridge.", first, source) == "", "in another's place"
    assert (
        added("Harvard is a private university in the city of Cambridge.", first, source + " A city.") == ""
    )
    zh = "一号水泵安装在东门车间。"
    assert added("一号水泵安装在东门废弃车间。", zh, zh) == "废弃"
    judgement = judge("Harvard is a private cheap university in Cambridge.", source)
    assert (judgement.verdict, judgement.reason) == (Verdict.PARTIAL, "added:cheap")


def test_whom_a_sentence_only_compares_with_is_not_its_subject() -> None:
    source = "Moffat described the companion as the hero, because she undergoes more change than the Doctor."
    assert subject_replaced("The Doctor is the hero, because he undergoes change.", source) == "Doctor"
    assert subject_replaced("The companion is the hero, because she undergoes more change.", source) == ""
    zh = "莫法特把同伴称作主角，因为她的变化大过比博士。"
    assert subject_replaced("博士是主角，因为变化大。", zh) == "博士"


def test_what_follows_is_not_what_a_sentence_speaks_of() -> None:
    text = (
        "Lefevre published the Bible in the French language in 1530. William Farel was a student of Lefevre "
        "who became a leader. The fees of the school went up."
    )
    whole = judge(text, text).span
    assert whole is not None
    wrong = judge("The leader who published the Bible in the French language was William Farel.", text)
    assert (wrong.verdict, wrong.reason) == (Verdict.PARTIAL, "spliced:William")
    right = judge("The man who published the Bible in the French language was Lefevre.", text)
    assert right.verdict is Verdict.SUPPORTED
    named = 'The leader who published the Bible in the French language was "William Farel" of Geneva.'
    assert subject_from_later(named, text, whole) == "William"
    noun = "The fees published the Bible in the French language."
    assert subject_from_later(noun, text, whole) == "fee"


def test_words_in_quotation_marks_stand_in_the_source() -> None:
    source = 'It checked to see who "is wrongly claiming to be living alone". 规定称“水泵在夜间不得运行”。'
    assert misquoted('The office checked who "is living alone" in the house.', source) == "is living alone"
    assert misquoted('It checked who "is wrongly claiming to be living alone".', source) == ""
    assert misquoted('The "living" house.', source) == "", "a name or a word, no quotation"
    assert misquoted("规定说“水泵在夜间可以运行”。", source) == "水泵在夜间可以运行"
    assert misquoted("规定说“水泵在夜间不得运行”。", source) == ""


@pytest.mark.parametrize(
    ("name", "text", "stands"),
    [
        ("XL", "the Super Bowl XLIX", False), ("XLIX", "Super Bowl XLIX champion", True),
        ("US", "in the U.S. since", True), ("US", "a US-led team", True), ("NFL", "the NFL's best", True),
        ("HIV-1", "HIV1 infection", True), ("DNA", "DNAs of mice", True), ("NFC", "在NFC决赛中", True),
        ("Norman", "the Normans", True), ("WHO", "who is it", True),
    ],
)  # fmt: skip
def test_a_name_in_capitals_stands_as_a_word(name: str, text: str, stands: bool) -> None:
    assert name_stands(name, text) is stands


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        (
            "The song is about how a government can be defeated or forced into a general election.",
            "The Westminster system enables a government to be defeated or forced into a general election.",
        ),
        ("歌曲是让内阁经信任投票提前下台。", "议会制度是让内阁经信任投票提前下台。"),
    ],
)
def test_a_subject_that_nothing_names_is_not_what_the_passage_speaks_of(claim: str, passage: str) -> None:
    judgement = judge(claim, passage)
    assert (judgement.verdict, judgement.reason.split(":")[0]) == (Verdict.PARTIAL, "subject")


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("This firm sells pumps and valves to ships.", "Acme sells pumps and valves to ships."),
        ("Acme sells pumps and valves.", "The firm sells pumps and valves."),
        ("该公司出售水泵和阀门给船厂。", "海石科技出售水泵和阀门给船厂。"),
    ],
)
def test_what_points_back_or_stands_above_is_named(claim: str, passage: str) -> None:
    assert subject_unnamed(claim, passage, f"Acme 海石科技\n{passage}") == ""


FRANK = (
    "Frank wrote 40 books. He published widely on political economy and world history. In his later career "
    "he produced works such as ReOrient: Global Economy in the Asian Age, and taught in Chile."
)
ZH_FRANK = "弗兰克写过四十本书。他广泛发表政治经济学和世界史著作。他后来用 Fortran 编写模型，并在智利任教。"


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Frank published widely on political economy and world history in the Asian Age.", FRANK),
        ("弗兰克广泛发表政治经济学、世界史和 Fortran 著作。", ZH_FRANK),
    ],
)
def test_a_name_of_another_sentence_is_no_part_of_this_one(claim: str, passage: str) -> None:
    judgement = judge(claim, passage)
    assert (judgement.verdict, judgement.reason.split(":")[0]) == (Verdict.PARTIAL, "spliced")


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        (
            "The degree prepares students for the licence exam in all states, which is a requirement there.",
            "The degree currently prepares students for the licence exam in all states.",
        ),
        ("该学位使学生有资格参加执业考试，这是强制规定。", "该学位使学生有资格参加执业考试。"),
    ],
)
def test_a_clause_that_nothing_bears_out_is_not_put_behind(claim: str, passage: str) -> None:
    assert added(claim, passage.split(". ")[0], passage)
    assert judge(claim, passage).verdict is not Verdict.SUPPORTED


def test_a_name_of_its_own_sentences_or_the_heading_stays() -> None:
    said = "Frank published widely on political economy and world history."
    assert judge(said, FRANK).verdict is Verdict.SUPPORTED
    assert judge("弗兰克广泛发表政治经济学和世界史著作。", ZH_FRANK).verdict is Verdict.SUPPORTED
