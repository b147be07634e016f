"""The bare noun of a follow-up question, and the name of earlier turns that it stands for. Pure.

After `Where is Harbour College?` a question about `the college` means that one, and `学院` alone means the
`文学院` of a question before. The name is the last one said that ends in the noun, however long ago: nothing
else that is spoken of in between takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from core.types import Lang
from retrieval.language import question_language

# Nouns that names of one such thing end in.
_HEADS = """
学院 大学 学校 中学 小学 公司 集团 企业 工厂 医院 银行 酒店 商场 机场 车站 港口 研究院 研究所 研究中心 中心
实验室 博物馆 图书馆 美术馆 体育馆 出版社 协会 学会 基金会 委员会 联盟 组织 机构 部门 俱乐部 球队 乐队
大桥 水库 隧道 铁路 高速公路 地铁 运河 寺庙 教堂 公园 城市 大厦 项目 工程 计划 条例 办法 协议 合同 政策
平台 系统 软件 设备 仪器 水泵 手机 汽车 飞机 火箭 卫星 疫苗 药物 专业 课程 实验班 比赛 电影 小说
"""
# What may stand before a noun that is still bare, beside nothing at all: words that name nothing.
_BEFORE = """
请问 请 问 那 那么 在 与 和 跟 同 由 从 对 向 到 给 被 让 为 于 关于 介绍 目前 现在 当时 后来
"""
_HEADS_ZH, _BEFORE_ZH = frozenset(_HEADS.split()), frozenset(_BEFORE.split())
_PART_OF_NAME = regex.compile(r"[\p{L}\p{N}）)》”」\"']$")
# No name goes on beyond these.
_CUT_ZH = regex.compile(r"[的是有哪么问些个几]|介绍|多少|[两三四五六七八九十百多]家")
_NAME_ZH = r"[\p{Han}\p{Latin}\p{N}·（）()-]*"
_BARE_EN = regex.compile(r"\bthe\s+(\p{Ll}{4,})\b(?!\s+of\b)")
_MAX_NAME_CHARS = 40


@dataclass(frozen=True, slots=True)
class BareNoun:
    """Where it stands in the question, `the` included, and the name that is meant."""

    start: int
    end: int
    name: str


def bare_noun(question: str, said: Sequence[str]) -> BareNoun | None:
    """The first bare noun of a question for which an earlier text has a name.

    Args:
        question: as asked.
        said: what was asked before, oldest first.
    """
    if question_language(question) is Lang.ZH:
        found = _bare_zh(question)
        name_of = _name_zh
    else:
        found = [(m.start(), m.end(), m.group(1)) for m in _BARE_EN.finditer(question)]
        name_of = _name_en
    for start, end, noun in found:
        for text in reversed(said):
            if name := name_of(text, noun):
                return None if name in question else BareNoun(start, end, name)
    return None


def _bare_zh(question: str) -> list[tuple[int, int, str]]:
    import rjieba

    found: list[tuple[int, int, str]] = []
    at, before = 0, ""
    for word in rjieba.cut(question):
        if word in _HEADS_ZH and (before in _BEFORE_ZH or not _PART_OF_NAME.search(before)):
            found.append((at, at + len(word), word))
        at, before = at + len(word), word
    return found


def _name_zh(text: str, noun: str) -> str:
    """The longest run before the noun that may be a name with it; empty when the noun is bare there too."""
    for match in regex.finditer(_NAME_ZH + noun, text):
        name = match.group()
        cuts = [cut.end() for cut in _CUT_ZH.finditer(name, 0, len(name) - len(noun))]
        name = name[max(cuts, default=0) :].lstrip("()（）·-")
        before = name[: -len(noun)]
        if before and before not in _BEFORE_ZH and len(name) <= _MAX_NAME_CHARS:
            return name
    return ""


def _name_en(text: str, noun: str) -> str:
    """Capitalized words that end in the noun."""
    words = r"(?:\p{Lu}[\p{L}\p{M}\p{N}'’.-]*\s+(?:(?:of|the|de|von|van|and)\s+)?)+"
    match = regex.search(rf"{words}(?i:{regex.escape(noun)})\b", text)
    if match is None or not match.group().split()[-1][0].isupper():
        return ""
    return regex.sub(r"^(?:The|What|Which|Who|When|Where|Why|How|Is|Are|Was|Does|Did)\s+", "", match.group())
