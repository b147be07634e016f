"""Reported speech stays reported, and pronouns stay who they are."""

from __future__ import annotations

import pytest

from core.types import Verdict
from generation.answer import without_preamble
from generation.reported import object_dropped, person_changed, report_dropped
from generation.verify import judge

SONG = "Some references suggest that the song was copyrighted by Jay Roberts in 1865."
RING = "Barney and Robin start planning to break them up, so Robin puts her ring in one of their glasses."


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The song was copyrighted by Jay Roberts in 1865.", SONG),
        ("The bridge is closed.", "According to the mayor, the bridge is closed."),
        ("这首歌创作于1865年。", "有学者认为这首歌创作于1865年。"),
        ("Barney and Robin start planning to break up.", RING),
        ("Robin puts his ring in one of their glasses.", RING),
        ("罗宾把他的戒指放进杯子。", "罗宾把她的戒指放进杯子。"),
    ],
)
def test_what_is_reported_or_said_of_another_is_not_borne_out(claim: str, passage: str) -> None:
    assert judge(claim, passage).verdict is not Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        (SONG, SONG),
        ("The song was said to be copyrighted by Jay Roberts in 1865.", SONG),
        ("Robin puts her ring in one of their glasses.", RING),
        ("The mayor opened the bridge.", "The mayor, who said that trains come later, opened the bridge."),
        ("罗宾把她的戒指放进杯子。", "罗宾把她的戒指放进杯子。"),
    ],
)
def test_what_is_told_as_it_stands_stays(claim: str, passage: str) -> None:
    assert report_dropped(claim, passage) == ""
    assert person_changed(claim, passage) == ""
    assert object_dropped(claim, passage) == ""


def test_a_subject_of_another_sentence_is_not_lent_to_one_that_has_its_own() -> None:
    passage = (
        "The first movable type printing press was made in China. In 1377, the oldest extant print book "
        "was printed in Korea."
    )
    assert (
        judge("The oldest extant printing press was printed in Korea.", passage).verdict
        is not Verdict.SUPPORTED
    )


@pytest.mark.parametrize("label", ["Passage: ", "According to passage 2, ", "The passage: "])
def test_a_label_in_front_of_a_sentence_is_taken_off(label: str) -> None:
    assert without_preamble(f"{label}the pump runs.") == "The pump runs."
    assert without_preamble("The passage of the bill took years.") == "The passage of the bill took years."
