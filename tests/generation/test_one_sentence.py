"""A claim that takes its words from several sentences is borne out in part at most."""

from __future__ import annotations

import pytest

from core.types import Verdict
from generation.one_sentence import word_elsewhere
from generation.verify import judge

SONG = "The song is about how people are regarded differently as they pass. Everyone deserves to die."
RIVER = "北江大桥建成于1998年，全长两千米。大桥每年春天检修一次。"


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The song is about how people are regarded and how they deserve to die.", SONG),
        ("In reality, the song is about how people are regarded differently.", SONG),
        ("北江大桥建成于1998年，春天检修。", RIVER),
        ("北江大桥是双层公路桥，建成于1998年。", RIVER),
    ],
)
def test_words_of_another_sentence_or_of_none_leave_a_claim_partial(claim: str, passage: str) -> None:
    assert judge(claim, passage).verdict is not Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The song is about how people are regarded differently.", SONG),
        ("A driver at an all-way stop waits.", "A driver at an all - way stop waits for the others."),
        ("Lefevre was elected in spring.", "Lefevre joined in 2019. He was elected in spring."),
        ("北江大桥全长两千米。", RIVER),
        ("北江大桥每年检修一次。", RIVER),
    ],
)
def test_words_of_one_sentence_bear_a_claim_out(claim: str, passage: str) -> None:
    assert judge(claim, passage).verdict is Verdict.SUPPORTED


def test_the_word_is_told_and_a_subject_may_stand_around() -> None:
    assert word_elsewhere("The pump was quietly built.", "It was built here.", "Pump P-7") == "quiet"
    assert word_elsewhere("The pump was built.", "It was built here.", "Pump P-7") == ""
