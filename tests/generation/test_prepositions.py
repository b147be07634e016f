"""What stands behind a preposition in a source stays behind it in a claim."""

from __future__ import annotations

import pytest

from core.types import Verdict
from generation.prepositions import objects_exchanged
from generation.verify import judge

GENES = "A new technique lets genes be transferred from bacteria to plants in the field."
SHIPS = "The company sold its old ships to the navy soon after the war had ended."
OIL = "Oil flows from the pump to the valve, where it is cooled by water."
KING = "The king was succeeded by his brother Henry after a reign of ten years."
HEAT = "热量从锅炉传到水箱，再由水泵送往各个房间。"
FAREL = "法雷尔是勒菲弗的学生，1532年把改革带到日内瓦。"
POWER = "国会于1911年向内阁移交了权力，结束了长期争执。"


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Genes can be transferred from plants to bacteria.", GENES),
        ("The navy sold ships to the company.", SHIPS),
        ("Oil flows from the valve to the pump.", OIL),
        ("Henry was succeeded by the king after a reign of ten years.", KING),
        ("Lefevre was a student of William Farel.", "William Farel, a student of Lefevre, went to Geneva."),
        ("Jupiter is a moon of Europa.", "The moon of Jupiter called Europa is covered by ice."),
        ("Hydrogen is heavier than water vapour.", "Water vapour is heavier than hydrogen, which rises."),
        ("热量从水箱传到锅炉。", HEAT),
        ("勒菲弗是法雷尔的学生。", FAREL),
        ("内阁向国会移交了权力。", POWER),
        ("空气比氢气轻。", "氢气比空气轻，因此气球会上升。"),
    ],
)
def test_things_that_change_sides_are_noticed(claim: str, source: str) -> None:
    assert judge(claim, source).verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Genes can be transferred to plants from bacteria.", GENES),
        ("From bacteria, genes can be transferred to plants.", GENES),
        ("The company sold ships to the navy.", SHIPS),
        ("The navy was sold ships by the company.", SHIPS),
        ("Oil flows to the valve from the pump.", OIL),
        ("Henry succeeded the king after a reign of ten years.", KING),
        ("The capital of France is Paris.", "Paris, the capital of France, lies on the Seine."),
        ("Bolt is equal to Acme.", "Acme is equal to Bolt."),
        ("热量由锅炉传到水箱。", HEAT),
        ("法雷尔是勒菲弗的学生。", FAREL),
        ("国会1911年向内阁移交权力。", POWER),
        ("赵州桥是李春建造的。", "李春建造的赵州桥位于河北。"),
    ],
)
def test_the_same_sides_in_another_order_stay(claim: str, source: str) -> None:
    assert objects_exchanged(claim, source) == ""


def test_the_neighbouring_sentence_may_say_it_in_the_claims_order() -> None:
    there, back = "Ships sail from Dover to Calais.", "Other ships sail from Calais to Dover."
    assert objects_exchanged("Ships sail from Calais to Dover.", there)
    assert objects_exchanged("Ships sail from Calais to Dover.", there, f"{there} {back}") == ""
    zh, back_zh = "渡船从青岛开往大连。", "客船从大连开往青岛。"
    assert objects_exchanged("渡船从大连开往青岛。", zh)
    assert objects_exchanged("渡船从大连开往青岛。", zh, zh + back_zh) == ""


@pytest.mark.parametrize("source", [GENES, SHIPS, OIL, KING, HEAT, FAREL, POWER])
def test_a_source_agrees_with_itself(source: str) -> None:
    assert objects_exchanged(source, source) == ""
    assert judge(source, source).verdict is Verdict.SUPPORTED
