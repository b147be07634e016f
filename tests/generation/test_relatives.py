"""A relative clause speaks of the thing before it."""

from __future__ import annotations

import pytest

from core.types import Verdict
from generation.relatives import taken_from_relative
from generation.verify import judge

DOCTOR = "The Doctor, a Time Lord, travels with his companion Clara, who is the main character of the series."
ACME = "Acme bought Bolt, which makes valves for ships, in 1990."
FAREL = "William Farel, a student of Lefevre, who preached the reform in Paris, went to Geneva."
HEAD = "The head of the school, who wrote many books, died in May."
ZH = "博士带着同伴克拉拉和罗斯旅行，后者是全剧的主角人物。"
ZH_BOTH = "长江和黄河都发源于高原，前者流经十一个省市区。"


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The Doctor is the main character of the series.", DOCTOR),
        ("Acme makes valves for ships.", ACME),
        ("博士是全剧的主角人物。", ZH),
        ("黄河流经十一个省市区。", ZH_BOTH),
    ],
)
def test_what_is_said_of_the_last_thing_is_not_said_of_the_first(claim: str, source: str) -> None:
    assert taken_from_relative(claim, source)
    assert judge(claim, source).verdict is Verdict.PARTIAL


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Clara is the main character of the series.", DOCTOR),
        ("The Doctor travels with his companion Clara.", DOCTOR),
        ("Bolt makes valves for ships.", ACME),
        ("Farel preached the reform in Paris.", FAREL),
        (
            "Farel preached in Paris for years.",
            "Farel was a student of Lefevre, who preached in Paris for years.",
        ),
        ("The head of the school wrote many books.", HEAD),
        ("The head of the school died in May.", HEAD),
        ("罗斯是全剧的主角人物。", ZH),
        ("长江流经十一个省市区。", ZH_BOTH),
        *((text, text) for text in (DOCTOR, ACME, FAREL, HEAD, ZH, ZH_BOTH)),
    ],
)
def test_what_is_said_of_it_stays(claim: str, source: str) -> None:
    assert taken_from_relative(claim, source) == ""
