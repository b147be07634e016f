"""Who did what for a thing."""

from __future__ import annotations

import pytest

from core.types import Verdict
from generation.roles import role_exchanged
from generation.verify import judge

METRO = (
    "The network is operated by DB Regio on behalf of Nexus and carries over 37 million passengers a year. "
    "In 2004, the company Marconi designed and constructed the radio system of the underground Metro."
)
ZH = "该地铁网络由远山公司代表市政府运营，每年运送三千七百万乘客。2004年海石公司设计并承建了移动通信系统。"
NOVEL = "The novel was written by Ada Finch and published by Bolt Press in London."


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        (
            "The company that built the network was DB Regio on behalf of Nexus, and it carries over 37 "
            "million passengers a year.",
            METRO,
        ),
        ("DB Regio is the owner of the network on behalf of Nexus.", METRO),
        ("The novel was translated by Ada Finch for Bolt Press in London.", NOVEL),
        ("该地铁网络由远山公司代表市政府建造。", ZH),
        ("远山公司是该地铁网络的建筑商。", ZH),
        ("该剧本由李伟翻译，在北京上演。", "该剧本由李伟撰写，在北京上演。"),
    ],
)
def test_another_role_is_another_statement(claim: str, source: str) -> None:
    judgement = judge(claim, source)
    assert judgement.verdict is Verdict.UNSUPPORTED
    assert judgement.reason.startswith("role:")


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("DB Regio is the operator of the network on behalf of Nexus.", METRO),
        ("Marconi built the radio system of the Metro in 2004.", METRO),
        ("Ada Finch is the author of the novel.", NOVEL),
        ("The publisher of the novel was Bolt Press in London.", NOVEL),
        ("Finch was a student of Lefevre in Paris.", "Lefevre in Paris was the teacher of Finch."),
        ("Bolt bought the plant from Acme in May.", "Acme sold the plant to Bolt in May."),
        ("远山公司代表市政府经营该地铁网络。", ZH),
        ("海石公司2004年承建了移动通信系统。", ZH),
    ],
)
def test_the_same_role_in_other_words_is_none(claim: str, source: str) -> None:
    assert role_exchanged(claim, source) == ""
    assert not judge(claim, source).reason.startswith("role:")
