"""How well a text fits descriptions, by the encoder; loaded when the first ambiguous name asks for it.

A bare cosine says more about the length and the language of both texts than about what they have in common.
So each is measured against reference texts that have nothing to do with either.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_KEPT = 4096  # descriptions are asked for again and again; one vector is 1.5 kB
_HAN = regex.compile(r"\p{Han}")
_REFERENCES = {
    False: (
        "postal clerk in a mountain village",
        "deep-sea fishing company",
        "inventor of a knitting machine",
        "a bridge over a narrow river",
        "minister for transport",
        "singer of folk songs",
        "chain of toy shops",
        "The museum opens at nine and closes in the afternoon.",
        "After the storm the road was covered with branches.",
        "They sold the old house and moved to another town.",
    ),
    True: (
        "山区邮政所的投递员",
        "远洋捕捞公司",
        "针织机的发明者",
        "一座跨河的桥",
        "交通部门负责人",
        "民歌歌手",
        "玩具连锁店",
        "博物馆上午九点开门，下午闭馆。",
        "暴风雨过后，路上满是树枝。",
        "他们卖掉旧房子，搬到了另一座城市。",
    ),
}


def similarity(context: str, descriptions: Sequence[str]) -> list[float]:
    """How much nearer `context` is to each description than unrelated texts are to either.

    cos(c, d) − ½ · (mean over r of cos(c, r) + mean over r of cos(d, r)), the references r for c in the
    language of d and the other way round; about 0 for unrelated texts, rarely above 0.15.
    """
    own = _encoded((context,))[0]
    han = _HAN.search(context) is not None
    return [_centred(own, han, text) for text in descriptions]


def _centred(own: npt.NDArray[np.float32], han: bool, description: str) -> float:
    other, other_han = _vector(description), _HAN.search(description) is not None
    base = (_references(other_han) @ own).mean() + (_references(han) @ other).mean()
    return float(own @ other - base / 2)


@lru_cache(maxsize=2)
def _references(han: bool) -> npt.NDArray[np.float32]:
    return _encoded(_REFERENCES[han])


@lru_cache(maxsize=_KEPT)
def _vector(text: str) -> npt.NDArray[np.float32]:
    return _encoded((text,))[0]


@lru_cache(maxsize=64)
def _encoded(texts: tuple[str, ...]) -> npt.NDArray[np.float32]:
    from ingest.encode import encode_passages

    return encode_passages(texts)
