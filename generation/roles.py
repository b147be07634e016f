"""Who did what for a thing: its builder is not its operator, its author not its publisher. Pure.

Words of one row say the same role, as verb or as noun, in English and Chinese, or the two sides of one act
(teacher and pupil). Words that share no row exclude each other, unless the source has both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from generation.polarity import marks
from generation.wording import HAN_CHAR, stem

_ROLES = """
build builds built building builder builders construct constructs constructed construction constructor erect
    erected manufacture manufactured manufacturer maker produce produced producer established created
    | 建造 修建 建成 兴建 承建 建筑商 施工 制造 生产
operate operates operated operating operator operators runs ran manage manages managed manager
    | 运营 经营 营运 管理
own owns owned owner owners ownership possess possessed | 拥有 业主 所有者 所有人
design designs designed designer designers architect created | 设计
founds founded founder founders established launched created creator | 创立 创办 创建 成立 创始人 发起
wrote write writes written writer author authors authored penned created | 撰写 作者 著作 编写 写作
publish publishes published publisher issued released launched printed printer | 出版 发行 发表
translate translates translated translator translation | 翻译 译者
directed director filmed | 导演 执导
produced producer producers | 出品 制作 制片
composed composer wrote written | 作曲 谱曲
sang sung singer performed performer recorded | 演唱 演奏 表演 歌手
invented inventor invention created | 发明
discovered discoverer discovery | 发现
taught teach teaches teacher tutor studied student students pupil pupils | 任教 老师 导师 教师 就读 学生 弟子
funded funds sponsor sponsored financed | 资助 赞助 出资
bought buys acquire acquired buyer purchased purchaser sold sells seller vendor
    | 收购 购买 买方 买下 出售 卖方 售出
supplied supplier delivered sold sells | 供应 供货 供应商
repaired repairs maintained maintains | 维修 检修 修理
tested tester | 测试 检验
approved approves | 批准 核准
proposed proposes | 提议 提出
appointed appoints | 任命 委任
nominated nominee | 提名
elected | 选举 当选
edited editor editors | 编辑 主编
killed killer murdered murderer | 杀害 杀死 凶手
defended defender | 辩护 保卫
accused accuser prosecuted prosecutor | 指控 起诉
father son daughter | 父亲 儿子 女儿
mother son daughter | 母亲 儿子 女儿
brother | 哥哥 弟弟 兄弟
sister | 姐姐 妹妹 姐妹
"""
_WORDS: dict[str, frozenset[int]] = {}
for _number, _line in enumerate(_ROLES.strip().replace("\n    ", " ").splitlines()):
    for _word in _line.replace("|", " ").split():
        _WORDS[_word] = _WORDS.get(_word, frozenset()) | {_number}
_HAN_PATTERN = re.compile("|".join(sorted((w for w in _WORDS if not w.isascii()), key=len, reverse=True)))
_STEMS = frozenset(map(stem, _WORDS))
_TOKEN = re.compile(
    rf"(?P<han>[{HAN_CHAR}]+)|(?P<word>[^\W\d_][\w]*(?:[-'’][^\W_]+)*|\d+(?:[.,]\d+)*)", re.UNICODE
)
_REACH = 8.0  # words between a role and the name or thing that it belongs to
_LEAST = 2  # shared terms that have one role in the claim and another in the source


@dataclass(frozen=True, slots=True)
class _Role:
    """A word that says a role, the rows that it stands in, and its place in words."""

    word: str
    rows: frozenset[int]
    place: float

    def among(self, others: Sequence[_Role]) -> bool:
        return any(self.rows & other.rows for other in others)


@lru_cache(maxsize=8192)
def _roles_in(text: str) -> tuple[_Role, ...]:
    """Roles of a text; places as `polarity.marks` counts them: two Chinese characters are one word."""
    found: list[_Role] = []
    place = 0.0
    for match in _TOKEN.finditer(text.lower()):
        if run := match["han"]:
            signs = _HAN_PATTERN.finditer(run)
            found += [_Role(s[0], _WORDS[s[0]], place + s.start() / 2) for s in signs]
            place += len(run) / 2
            continue
        if rows := _WORDS.get(match["word"]):
            found.append(_Role(match["word"], rows, place))
        place += 1
    return tuple(found)


def role_exchanged(claim: str, sentence: str) -> str:
    """`claimed/real` where a claim gives what it shares with its source another role; else the empty string.

    Args:
        claim: one sentence.
        sentence: the source's sentence nearest to it. A role that both have is never held against the claim.
    """
    ours, theirs = _roles_in(claim), _roles_in(sentence)
    new = [r for r in ours if not r.among(theirs)]
    left = [t for t in theirs if not t.among(ours)]
    if not new or not left:
        return ""
    places = _places(sentence)
    changed = same = 0
    pair = ""
    for term, at in marks(claim).terms:
        mine = _nearest(at, ours)
        there = [r for p in places.get(term, ()) if (r := _nearest(p, theirs))]
        if term in _STEMS or mine is None or not there:
            continue
        if mine.among(there):
            same += 1
        elif mine in new and any(r in left for r in there):
            changed += 1
            pair = pair or f"{mine.word}/{there[0].word}"
    return pair if changed >= _LEAST and changed > same else ""


def _nearest(place: float, roles: Sequence[_Role]) -> _Role | None:
    near = [r for r in roles if abs(r.place - place) <= _REACH]
    return min(near, key=lambda r: abs(r.place - place), default=None)


def _places(text: str) -> dict[str, list[float]]:
    places: dict[str, list[float]] = {}
    for term, place in marks(text).terms:
        places.setdefault(term, []).append(place)
    return places
