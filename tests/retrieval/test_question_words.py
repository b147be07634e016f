"""Words that ask are left out of what is searched for; names that look like them stay."""

from __future__ import annotations

import pytest

from retrieval.analyzer import question_tokens, tokens


@pytest.mark.parametrize(
    ("question", "the_same_as"),
    [
        ("When was the lighthouse lit?", "was the lighthouse lit"),
        ("Who's the keeper?", "the keeper"),
        ("What does the WHO advise?", "the WHO advise"),
        ("灯塔是什么时候点亮的", "灯塔是 点亮的"),
        ("哪吒出生在陈塘关吗", "哪吒出生在陈塘关"),
    ],
)
def test_words_that_ask_are_left_out(question: str, the_same_as: str) -> None:
    assert set(question_tokens(question)) == set(tokens(the_same_as))


@pytest.mark.parametrize("question", ["who", "什么", "怎么", "WHAT WHEN"])
def test_a_question_of_nothing_else_keeps_them(question: str) -> None:
    assert question_tokens(question) == tokens(question)
    assert question_tokens(question)
