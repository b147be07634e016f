"""Claims of a few words and words about the source are not shown for being found somewhere."""

from __future__ import annotations

import pytest

from core.types import Claim, Verdict
from generation.answer import settled
from tests.generation.test_answer import evidence

BANDS = evidence(
    1,
    "Lindisfarne are a folk-rock group with a strong Tyneside connection. The folk metal band Skyclad "
    "comes from the same town, and the source of its name is a legend.",
)
ROADS = evidence(
    1,
    "Fresno is served by State Route 99, the main freeway that connects the population centers of the valley."
    " State Route 168 heads east to Clovis. State Route 41, the Yosemite Freeway, comes from Atascadero.",
)


def settle(text: str, question: str = "", marker: int = 1, source: object = BANDS) -> Claim:
    return settled(text, [marker], [source], show_partial=True, question=question)  # pyright: ignore


def test_a_few_words_have_to_stand_where_the_question_does() -> None:
    claim = settle("Folk metal band.", "What genre of music is the group Lindisfarne classified as?")
    assert claim.text != "Folk metal band."
    assert settle("Folk metal band.", "Which band is Skyclad?").text == "Folk metal band."
    assert settle("Folk metal band.").text == "Folk metal band.", "a summary answers no question"


def test_a_sentence_with_a_context_of_its_own_is_not_asked_for_the_question() -> None:
    said = "Lindisfarne are a folk-rock group with a Tyneside connection."
    assert settle(said, "Where would one hear old songs about shipyards?").text == said


@pytest.mark.parametrize(
    "said",
    [
        "This is a fact.",
        "The passage is about a folk-rock group with a strong Tyneside connection.",
        "This is the first sentence in the passage.",
        "It is a summary of a band with a strong Tyneside connection.",
        "A folk-rock group is named in the first line of the text.",
        "该段落介绍了乐队。",
        "乐队的名字出自上文。",
    ],
)
def test_words_about_the_source_are_no_claim(said: str) -> None:
    assert settle(said).text != said


def test_a_passage_may_have_the_word_itself() -> None:
    said = "The source of its name is a legend."
    assert settle(said).text == said


def test_a_passage_that_is_not_cited_has_to_say_nearly_all_of_it() -> None:
    loose = "The freeway that connects the main population centers of the whole valley serves Fresno today."
    assert settle(loose, marker=1, source=ROADS).verdict is Verdict.PARTIAL
    assert settle(loose, marker=9, source=ROADS).text != loose
    exact = "State Route 168 heads east to Clovis."
    assert settle(exact, marker=9, source=ROADS).text == exact


def test_what_is_said_of_one_is_not_said_of_a_name_that_comes_later() -> None:
    later = "The Yosemite Freeway is the main freeway that connects the population centers of the valley."
    shown = settle(later, source=ROADS)
    assert (shown.text, shown.verdict) != (later, Verdict.SUPPORTED)
    earlier = evidence(1, "Ann Lee joined in 2019. She was elected chair of the board in the spring.")
    assert (
        settle("Ann Lee was elected chair of the board in spring.", source=earlier).verdict
        is Verdict.SUPPORTED
    )


def test_a_question_is_no_claim_and_saying_it_back_is_no_answer() -> None:
    asked = "What does Lindisfarne have with Tyneside?"
    assert settle("Does Skyclad come from the same town?").text != "Does Skyclad come from the same town?"
    assert settle("Lindisfarne does have Tyneside.", asked).text != "Lindisfarne does have Tyneside."
    two = "Lindisfarne have two names."
    band = settle(two, "What names does Lindisfarne have?", source=evidence(1, two))
    assert band.text == two, "a number is an answer"
    said = "Skyclad comes from the same town."
    assert settle(said, "Does Skyclad come from the same town?").text == said


def test_who_did_it_and_to_whom_it_was_done_are_not_exchanged() -> None:
    battle = evidence(1, "The Tran dynasty which ruled Annam crushed and defeated the Mongols at Bach Dang.")
    wrong = "The Tran dynasty which ruled Annam was defeated by the Mongols at Bach Dang."
    assert settle(wrong, source=battle).text != wrong
    right = "The Tran dynasty which ruled Annam defeated the Mongols at Bach Dang."
    assert settle(right, source=battle).text == right


def test_a_place_put_in_twice_makes_another_statement() -> None:
    city = evidence(
        1,
        "Consolidation gave the city its great size; with 853,382 people in 2014 it is the most populous "
        "city proper in Florida and the Southeast, and the 12th most populous in the United States.",
    )
    wrong = (
        "It is the most populous city in the United States, and the 12th most populous in the United States."
    )
    shown = settle(wrong, source=city)
    assert (shown.text, shown.verdict) != (wrong, Verdict.SUPPORTED)


GAMES = evidence(
    1,
    "Peyton Manning is the oldest quarterback ever to play in a Super Bowl at age 39. The past record was "
    "held by John Elway, who led the Broncos to victory in Super Bowl XXXIII at age 38. The Broncos beat the "
    "Super Bowl XLIX champion New England Patriots.",
)
ZH_GAMES = evidence(
    1,
    "此前的纪录由约翰·埃尔韦保持，他三十八岁时率野马队夺得第三十三届超级碗。"
    "野马队击败了第四十九届超级碗冠军新英格兰爱国者队。",
)


@pytest.mark.parametrize(
    ("said", "question", "source"),
    [
        ("John Elway.", "Who won Super Bowl XLIX?", GAMES),
        ("The quarterback John Elway of Denver.", "Who won Super Bowl XLIX?", GAMES),
        ("约翰·埃尔韦。", "谁夺得了第四十九届超级碗？", ZH_GAMES),
    ],
)
def test_somebody_of_the_same_topic_is_no_answer(said: str, question: str, source: object) -> None:
    assert settle(said, question, source=source).text != said


@pytest.mark.parametrize(
    ("said", "question", "source"),
    [
        ("New England Patriots.", "Who won Super Bowl XLIX?", GAMES),
        ("John Elway.", "Who held the record before Manning?", GAMES),
        ("新英格兰爱国者队。", "谁夺得了第四十九届超级碗？", ZH_GAMES),
        ("约翰·埃尔韦。", "此前的纪录由谁保持？", ZH_GAMES),
    ],
)
def test_a_few_words_beside_the_question_are_an_answer(said: str, question: str, source: object) -> None:
    assert settle(said, question, source=source).text == said
