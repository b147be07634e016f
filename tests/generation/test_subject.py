"""What a sentence speaks about."""

from __future__ import annotations

import pytest

from generation.subject import has_verb, subject_head, subject_of


@pytest.mark.parametrize(
    ("sentence", "subject"),
    [
        ("The Broncos defeated the Steelers in the final.", "The Broncos"),
        ("In the Super Bowl, the Broncos defeated the Steelers.", "the Broncos"),
        ("In 1990 the firm sold pumps to Acme.", "the firm"),
        ("In March 2004, Bolt bought Acme.", "Bolt"),
        ("The fees at state schools rose.", "The fees"),
        ("The population of Dover was 8,000.", "The population of Dover"),
        ("The leader who wrote the book was Ada Finch.", "The leader"),
        ("Pumps drive the fans.", "Pumps"),
        ("The isolated subdivision was known for crime.", "The isolated subdivision"),
        ("Lefevre, a professor at Paris, published the book.", "Lefevre"),
        ("在决赛中，野马队击败了钢人队。", "野马队"),
        ("在决赛中野马队击败了钢人队。", "野马队"),
        ("2004年海石公司收购了远山股份。", "海石公司"),
        ("海石公司2004年收购了远山股份。", "海石公司"),
        ("该市的人口是八千。", "该市的人口"),
        ("华为公司位于深圳。", "华为公司"),
    ],
)
def test_the_subject_ends_before_the_verb(sentence: str, subject: str) -> None:
    assert subject_of(sentence) == subject


def test_a_phrase_of_place_without_a_comma_leaves_no_subject() -> None:
    assert subject_of("In the Super Bowl the Broncos won.") == ""


def test_the_head_is_the_noun_that_the_rest_belongs_to() -> None:
    assert subject_head("The fees of the school rose.") == {"fee"}
    assert subject_head("学校的学费是八千。") == {"学费"}
    assert subject_head("") == frozenset()


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("Folk metal band.", False), ("New England Patriots.", False), ("It was painted.", True),
        ("Bolt bought Acme.", True), ("丹佛野马队", False), ("丹佛野马队是冠军。", True),
    ],
)  # fmt: skip
def test_a_fragment_has_no_verb(text: str, verb: bool) -> None:
    assert has_verb(text) is verb
