"""When an answer is given for each entity of a name, and when the question's own words decide."""

from __future__ import annotations

import pytest

from retrieval.entity_names import Named
from retrieval.open_names import answered_for_each, words_beside

ONE, OTHER = frozenset({1}), frozenset({2})


def beside(question: str, name: str) -> float:
    start = question.index(name)
    return words_beside(question, Named(start, start + len(name), {}))


@pytest.mark.parametrize(
    ("question", "name", "few"),
    [
        ("When did James Lee join?", "James Lee", True),
        ("Who is James Lee?", "James Lee", True),
        ("李伟何时入职？", "李伟", True),
        ("What hymn did Luther write after the martyrdom of Esch?", "Luther", False),
        ("Which company sold its boats to James Lee?", "James Lee", False),
        ("李伟毕业于哪所大学的材料系？", "李伟", False),
    ],
)
def test_a_question_tells_by_its_words_beside_the_name(question: str, name: str, few: bool) -> None:
    assert (beside(question, name) < 2) is few


def test_a_question_that_says_little_is_answered_for_each_however_unlike_their_passages() -> None:
    assert answered_for_each([ONE, OTHER], {3: 0.78, 1: 0.76, 2: 0.07}, 1.0) == [ONE, OTHER]


def test_a_question_that_asks_for_something_is_answered_for_those_who_can_answer_it() -> None:
    assert not answered_for_each([ONE, OTHER], {1: 0.9, 2: 0.06}, 4.0)
    assert answered_for_each([ONE, OTHER], {1: 0.9, 2: 0.6}, 4.0) == [ONE, OTHER]
    third = frozenset({4})
    assert answered_for_each([ONE, OTHER, third], {1: 0.9, 2: 0.1, 4: 0.8}, 4.0) == [ONE, third]


@pytest.mark.parametrize("said", [1.0, 4.0])
def test_nobody_of_the_name_stands_before_a_far_better_passage(said: float) -> None:
    assert not answered_for_each([ONE, OTHER], {3: 0.97, 1: 0.3, 2: 0.3}, said)


def test_passages_that_were_not_ranked_answer_nothing() -> None:
    assert not answered_for_each([ONE, OTHER], {3: 0.5}, 4.0)
    assert answered_for_each([ONE, OTHER], {}, 1.0) == [ONE, OTHER]
