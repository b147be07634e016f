"""Two sentences are not run together into one."""

from __future__ import annotations

import pytest

from core.types import Verdict
from generation.run_together import run_together
from generation.verify import judge

SONG = (
    "The song is a critical profile of a lover about whom Simon asserts that he is vain. The title subject's "
    "identity has long been a matter of speculation."
)
TOWER = "The tower was finished in 1889. It is 330 metres tall and can be seen from the sea."
ZH = "这首歌是对情人的批判。情人的身份一直是众人猜测的谜。"


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        (
            "The song is a critical profile of a lover about whom Simon asserts that the song is about the "
            "title subject's identity has long been a matter of speculation.",
            SONG,
        ),
        ("The tower was finished in 1889 is 330 metres tall.", TOWER),
        ("这首歌是对情人的批判身份一直是众人猜测的谜。", ZH),
    ],
)
def test_a_clause_with_two_verbs_and_nothing_between_is_no_statement(claim: str, passage: str) -> None:
    assert run_together(claim, passage)
    assert judge(claim, passage).verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The tower, which was finished in 1889, is 330 metres tall.", TOWER),
        ("The tower was finished in 1889 and is 330 metres tall.", TOWER),
        ("What was finished in 1889 is 330 metres tall.", TOWER),
        ("The tower is 330 metres tall. It was finished in 1889.", TOWER),
        ("The reason the tower was finished is unknown.", "The reason the tower was finished is unknown."),
        ("That the tower was finished late is known.", TOWER),
        ("The idea that the tower is too tall was proposed in 1889.", TOWER),
        ("One of the things he is known for is the tower.", TOWER),
        ("这首歌是对情人的批判，情人的身份一直是众人猜测的谜。", ZH),
        ("凡是众人猜测的都是谜。", ZH),
        *((text, text) for text in (SONG, TOWER, ZH)),
    ],
)
def test_what_something_joins_or_the_source_has_so_stays(claim: str, passage: str) -> None:
    assert run_together(claim, passage) == ""
