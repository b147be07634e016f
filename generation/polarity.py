"""Which way a sentence says that something goes, and whether two sentences say opposite ways. Pure.

"More", "enhances", 上升 point up; "fewer", "suppresses", 缺乏 point down; a negation before a word turns it
round. Whole sentences say nothing by the sum of their words, because they tell of several things at once. So
a word of the claim is compared with the word of the passage that stands nearest to the same neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from generation.wording import HAN_CHAR, STOP_WORDS, stem

_REACH = 8.0  # words between a shared term and the word of direction that belongs to it
_NEAR = 6.0  # the same inside the claim, which is short
_BEFORE = 4.0  # words before a word of direction in which a negation turns it round

_UP_WORDS = """
increase increases increased increasing increasingly enhance enhances enhanced enhancing enhancement
promote promotes promoted promoting promotion elevate elevated elevates elevation higher high highest
greater more most raise raises raised rise rises rose rising grow grows growing growth grew grown improve
improves improved improvement improving induce induces induced induction activate activates activated
activation activating stimulate stimulates stimulated stimulatory upregulate upregulated upregulates
up-regulated upregulation overexpression overexpressed gain gains gained longer larger stronger faster
better benefit benefits beneficial effective efficacy efficient positive positively facilitate facilitates
facilitated augment augmented exacerbate exacerbates exacerbated exacerbation worsen worsens trigger
triggers triggered boost boosts boosted abundant rich excess hyperactive hypersensitive sensitive
sensitivity susceptible susceptibility strengthen strengthens accelerate accelerates accelerated amplify
amplified expand expands expanded expansion above common prolonged prolongs double doubled
doubles twice succeed succeeded supports open opens opened allow allows allowed permitted gainful win wins
won begin begins began start starts started maximum warmer warming hotter heavier deeper older
"""
_DOWN_WORDS = """
decrease decreases decreased decreasing reduce reduces reduced reducing reduction reductions lower lowers
lowered low lowest lowering less least fewer diminish diminished diminishes decline declines declined
declining drop drops dropped fall falls fell fallen suppress suppresses suppressed suppression suppressor
suppressive inhibit inhibits inhibited inhibition inhibitor inhibitors inhibitory impair impairs impaired
impairment repress represses repressed repression attenuate attenuates attenuated attenuation block blocks
blocked blocking blockade prevent prevents prevented prevention downregulate downregulated downregulates
down-regulated downregulation deficient deficiency lack lacks lacking loss absence absent deletion deleted
knockout knockdown silencing depletion depleted abolish abolished abolishes abrogate abrogated limit limits
limited weaker weak weaken weakens slower slow slows slowed slowing delay delayed delays worse poor shorter
smaller below disrupt disrupts disrupted disruption defective defect resistant resistance protect protects
protected protective protection negative negatively antagonize antagonist counteract impede hinder hinders
restrict restricts restricted ineffective harmful detrimental eliminate eliminated rare rarely minimal
inactive inactivation inactivate inactivated fail fails failed failure disappears close closes closed
forbid forbids forbidden prohibited banned lose loses lost end ends ended stopped stop stops minimum cooler
cooling colder lighter shallower younger shrink shrank halved
"""
_UP = frozenset(_UP_WORDS.split())
_DOWN = frozenset(_DOWN_WORDS.split())
_UP_HAN = (
    "增加|上升|增长|提高|上涨|升高|增强|促进|加快|加速|扩大|改善|激活|诱导|延长|超过|高于|大于|多于|优于|更高|更多|更大|更快|"
    "更长|更强|最高|最多|最大|最长|利于|有益|有效|敏感|盈利|赢|胜|开启|打开|启动|开始|允许|准许|同意|支持|赞成|接受|通过|翻番|变大"
)
_DOWN_HAN = (
    "减少|下降|降低|缩减|下跌|回落|减弱|抑制|减慢|减缓|缩小|恶化|阻断|阻止|防止|缩短|低于|小于|少于|不足|劣于|更低|更少|更小|更慢|"
    "更短|更弱|最低|最少|最小|最短|不利|有害|无效|耐受|亏损|输|败|关闭|停止|结束|禁止|不得|不准|拒绝|反对|缺乏|缺少|丧失|减半|变小"
)
_NEGATION = re.compile(r"not|no|never|none|neither|nor|cannot|without|unable|hardly|scarcely|\w+n['’]t")
_NEGATION_HAN = re.compile("不|没|未|无|非|勿")
_TOKEN = re.compile(
    rf"(?P<han>[{HAN_CHAR}]+)|(?P<word>[^\W\d_][\w]*(?:[-'’][^\W_]+)*|\d+(?:[.,]\d+)*)", re.UNICODE
)
_HAN_SIGN = re.compile(f"(?P<up>{_UP_HAN})|(?P<down>{_DOWN_HAN})")

_NO_EFFECT = re.compile(
    r"\b(?:independent(?:ly)? of|dispensable|unaffected|unchanged"
    r"|no (?:significant |apparent |clear )?(?:effect|difference|association|evidence|impact|influence"
    r"|interaction|role|correlation|relationship|change|benefit|link)s?"
    r"|not (?:significantly )?(?:affect|alter|associated|require|necessary|differ|influence|change|predict"
    r"|correlate|involve|depend|cause|link)\w*"
    r"|irrespective|regardless|unrelated|uncorrelated|unlikely|insufficient|non-?significant|unnecessary)\b"
    r"|无关|没有(?:显著|明显)?(?:影响|差异|关系|作用|变化)|不(?:影响|取决于|依赖)|无(?:显著|明显)?(?:差异|影响)"
)


@dataclass(frozen=True, slots=True)
class Marks:
    """Terms and words of direction of a text with their places in words; two Han characters are one word."""

    terms: tuple[tuple[str, float], ...]
    signs: tuple[tuple[float, int], ...]


@lru_cache(maxsize=8192)
def marks(text: str) -> Marks:
    """Terms of a text, without its words of direction, and those words as +1 or -1 at their places."""
    terms: list[tuple[str, float]] = []
    signs: list[tuple[float, int]] = []
    negations: list[float] = []
    place = 0.0
    for match in _TOKEN.finditer(text.lower()):
        if match["han"]:
            _han(match["han"], place, terms, signs, negations)
            place += len(match["han"]) / 2
            continue
        word = match["word"]
        if _NEGATION.fullmatch(word):
            negations.append(place)
        elif word in _UP or word in _DOWN:
            signs.append((place, 1 if word in _UP else -1))
        elif word not in STOP_WORDS:
            terms.append((stem(word), place))
        place += 1
    turned = tuple((p, -s if any(0 < p - n <= _BEFORE for n in negations) else s) for p, s in signs)
    return Marks(tuple(terms), turned)


def _han(
    run: str,
    place: float,
    terms: list[tuple[str, float]],
    signs: list[tuple[float, int]],
    negations: list[float],
) -> None:
    taken: set[int] = set()
    for match in _HAN_SIGN.finditer(run):
        signs.append((place + match.start() / 2, 1 if match["up"] else -1))
        taken.update(range(*match.span()))
    negations += [place + m.start() / 2 for m in _NEGATION_HAN.finditer(run) if m.start() not in taken]
    terms += [
        (run[i : i + 2], place + i / 2) for i in range(len(run) - 1) if i not in taken and i + 1 not in taken
    ]


def agreement(claim: str, sentence: str, weights: Mapping[str, float]) -> float:
    """How much the words of direction that stand beside the same terms agree; negative when they oppose.

    Args:
        claim: one sentence.
        sentence: of a passage.
        weights: of terms, larger for rarer ones; terms without a weight count nothing.
    """
    ours, theirs = marks(claim), marks(sentence)
    if not ours.signs or not theirs.signs:
        return 0.0
    places: dict[str, list[float]] = {}
    for term, place in theirs.terms:
        places.setdefault(term, []).append(place)
    total = 0.0
    for at, sign in ours.signs:
        for term, place in ours.terms:
            apart = abs(place - at)
            if apart > _NEAR or not (weight := weights.get(term, 0.0)):
                continue
            for there in places.get(term, ()):
                found, other = min(theirs.signs, key=lambda s: (abs(s[0] - there), s[0]))
                far = abs(found - there)
                if far <= _REACH:
                    total += sign * other * weight / (1 + apart) / (1 + far)
    return total


@lru_cache(maxsize=8192)
def direction_sum(text: str) -> int:
    """+1, 0 or -1: whether more words of a text point up or down."""
    total = sum(sign for _, sign in marks(text).signs)
    return (total > 0) - (total < 0)


@lru_cache(maxsize=8192)
def direction_parity(text: str) -> int:
    """Product of the signs of a text's words of direction; 0 without any."""
    product = 1
    for _, sign in marks(text).signs:
        product *= sign
    return product if marks(text).signs else 0


@lru_cache(maxsize=8192)
def no_effect(text: str) -> bool:
    """Whether a text says that something has no effect, difference or relation."""
    return _NO_EFFECT.search(text.lower()) is not None
