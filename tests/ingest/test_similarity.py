"""Nearness of texts and descriptions by the real encoder: one scale for every language and length."""

from __future__ import annotations

import pytest

from ingest.similarity import similarity

PAIRS = [
    ("李伟更换了二号机组的机械密封，试运行无渗漏。", "泵站检修工程师", "面点师傅"),
    ("Weber labelled eighty moss specimens for the herbarium.", "botanist", "bankruptcy judge"),
    ("Weber labelled eighty moss specimens for the herbarium.", "植物学家，研究苔藓", "破产法官"),
    ("李伟更换了二号机组的机械密封，试运行无渗漏。", "engineer who repairs pumps", "pastry cook"),
]


@pytest.mark.parametrize(("text", "right", "wrong"), PAIRS)
def test_the_right_description_is_nearer_than_the_wrong_one(text: str, right: str, wrong: str) -> None:
    near, far = similarity(text, [right, wrong])
    assert near > far
    assert -0.1 < far < 0.06
    assert near < 0.2


def test_nothing_is_compared_with_no_descriptions() -> None:
    assert similarity("Weber", []) == []
