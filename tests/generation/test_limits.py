"""Where something holds, and how seldom."""

from __future__ import annotations

import pytest

from core.types import Verdict
from generation.limits import limit_dropped
from generation.verify import judge


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        (
            "The western theater of the war usually is not given a separate name.",
            "In Europe, the western theater of the war usually is not given a separate name.",
        ),
        ("The pumps are inspected twice a year.", "In most countries, the pumps are inspected twice a year."),
        (
            "Medicine was practiced at the court, where it was labeled as huihui.",
            "Medicine was practiced at the court, where it was sometimes labeled as huihui.",
        ),
        (
            "Players of the northern league who pass the entry draft are agents.",
            "The term agent can occasionally be seen in the northern league, whose entry draft takes players "
            "of high school age.",
        ),
        (
            "In North American sports, players are drafted by the record of the previous season.",
            "In most North American sports, players are drafted by the record of the previous season.",
        ),
        (
            "The northern skies have constellations that survived since Antiquity.",
            "The northern skies have constellations that have mostly survived since Antiquity.",
        ),
        (
            "The purpose of the act is to maintain sanctions on Cuba.",
            "The purpose of the act is to maintain sanctions on Cuba as long as it refuses talks.",
        ),
        ("该厂就向员工发放年终奖金。", "只要利润增长，该厂就向员工发放年终奖金。"),
        ("北方工厂的水泵采用铜制叶轮。", "北方工厂的多数水泵采用铜制叶轮。"),
        ("北方联赛的选秀球员为自由人。", "自由人一词有时见于北方联赛，联赛的选秀多选高中球员。"),
        ("水泵通常每年检修两次。", "在欧洲，水泵通常每年检修两次。"),
        ("阀门在雨天停机检修。", "阀门有时在雨天停机检修。"),
    ],
)
def test_a_limit_may_not_be_left_out(claim: str, source: str) -> None:
    assert judge(source, source).verdict is Verdict.SUPPORTED
    judgement = judge(claim, source)
    assert (judgement.verdict, judgement.reason.split(":")[0]) == (Verdict.PARTIAL, "limit")


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Acme bought Bolt.", "In 1900, Acme bought Bolt."),
        ("Acme bought Bolt in May.", "In Dover, Acme bought Bolt in May."),
        ("The bridge was opened by the mayor.", "In Dover, the bridge was opened by the mayor."),
        ("The pumps in Europe are inspected yearly.", "In Europe, the pumps are inspected yearly."),
        ("Dover has the largest harbour.", "Dover has the most important and the largest harbour."),
        ("It rains unless wind blows.", "It rains unless wind blows."),
        ("Many pumps run at night.", "Most pumps run at night."),
        ("The hall has 12 pumps.", "The hall has 12 pumps and is sometimes closed to visitors in winter."),
        ("海石公司收购了远山股份。", "在东港，海石公司收购了远山股份。"),
    ],
)
def test_what_happened_happened_anywhere(claim: str, source: str) -> None:
    assert limit_dropped(claim, source) == ""
