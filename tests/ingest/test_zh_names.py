from __future__ import annotations

from itertools import pairwise

import pytest

from ingest.zh_names import ZhToken, zh_names


def names(*tagged: tuple[str, str], rare: str = "") -> list[tuple[str, str]]:
    tokens: list[ZhToken] = []
    at = 0
    for word, tag in tagged:
        tokens.append(ZhToken(word, tag, at))
        at += len(word)
    text = "".join(t.word for t in tokens)
    return [(text[a:b], label) for a, b, label in zh_names(tokens, lambda word: word not in rare.split())]


@pytest.mark.parametrize(
    ("tagged", "rare", "found"),
    [
        ([("远山", "ns"), ("股份", "n"), ("财务", "n"), ("负责人", "n")], "", [("远山股份", "ORG")]),
        ([("海石", "n"), ("科技", "n"), ("独立", "v"), ("董事", "n")], "海石", [("海石科技", "ORG")]),
        ([("云河", "ns"), ("物流", "n"), ("有限公司", "n")], "", [("云河物流有限公司", "ORG")]),
        ([("杭州市", "ns"), ("教育局", "n")], "", [("杭州市", "GPE")]),
        ([("杭州市", "ns"), ("教育", "vn"), ("局", "n")], "", [("杭州市", "GPE")]),
        ([("会计师", "n"), ("事务所", "n")], "", []),
        ([("本", "r"), ("公司", "n"), ("和", "c"), ("该", "r"), ("集团", "n")], "", []),
        ([("王小明", "nr"), ("经理", "n")], "", [("王小明", "PERSON")]),
        ([("在", "p"), ("清华大学", "nt"), ("工作", "vn")], "", [("清华大学", "ORG")]),
        ([("王", "nr"), ("说", "v")], "", []),
    ],
)
def test_organisations_are_put_together_and_common_nouns_are_not(
    tagged: list[tuple[str, str]], rare: str, found: list[tuple[str, str]]
) -> None:
    assert names(*tagged, rare=rare) == found


def test_every_name_lies_inside_the_text_and_none_overlap() -> None:
    tokens = [ZhToken("星澜", "x", 0), ZhToken("天文台", "n", 2), ZhToken("星澜", "nz", 5)]
    found = list(zh_names(tokens, lambda _: False))
    assert all(a < b for a, b, _ in found)
    assert all(b <= c for (_, b, _), (c, _, _) in pairwise(found))
