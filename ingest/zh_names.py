"""Names in a tagged Chinese sentence: single proper nouns, and organisations put together from several. Pure.

A dictionary knows `华为技术有限公司` as one word, but not the firm of a document at hand: `远山股份` comes
as a place and a noun. Nouns before a word that ends organisation names are joined to it, if one of them is a
name or a word that no dictionary has: `会计师事务所` is a kind of office, `云河会计师事务所` is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_LABELS = {"nr": "PERSON", "ns": "GPE", "nt": "ORG", "nz": "MISC"}
_NAME_TAGS = ("nr", "ns", "nt", "nz", "j", "eng")
_JOINED_TAGS = ("n", "j", "eng", "vn", "an", "b", "f")
_NOT_JOINED = frozenset(("本", "该", "我", "贵", "公司", "集团", "全", "各", "某"))
_ORG_ENDS = (
    "有限责任公司", "股份有限公司", "有限公司", "公司", "集团", "股份", "控股", "科技", "银行", "大学",
    "学院", "中学", "小学", "医院", "研究院", "研究所", "研究中心", "事务所", "委员会", "协会", "学会",
    "基金会", "联合会", "法院", "检察院", "出版社", "报社", "电视台", "博物馆", "图书馆", "天文台", "实验室",
    "工厂", "厂", "局", "部", "厅", "署", "院",
)  # fmt: skip
_WEAK_ENDS = frozenset(("科技", "局", "部", "厅", "署", "院", "厂", "股份", "控股"))
"""Ends that are also plain words: they need a name right before them."""
_MAX_PARTS = 5
_MAX_CHARS = 20


@dataclass(frozen=True, slots=True)
class ZhToken:
    """A word with its part-of-speech tag and the offset of its first character."""

    word: str
    tag: str
    start: int

    @property
    def end(self) -> int:
        """One past its last character."""
        return self.start + len(self.word)


def zh_names(tokens: Sequence[ZhToken], known: Callable[[str], bool]) -> Iterator[tuple[int, int, str]]:
    """Half-open offsets and labels of the names, in order, not overlapping.

    Args:
        tokens: of one text, in order and without gaps.
        known: whether the dictionary has a word.
    """
    at = 0
    while at < len(tokens):
        end = _organisation_end(tokens, at, known)
        if end is not None:
            yield tokens[at].start, tokens[end - 1].end, "ORG"
            at = end
            continue
        token = tokens[at]
        label = _LABELS.get(token.tag[:2])
        if label is not None and len(token.word) >= 2:
            yield token.start, token.end, label
        at += 1


def _organisation_end(tokens: Sequence[ZhToken], start: int, known: Callable[[str], bool]) -> int | None:
    """Number of the token after the organisation that begins at `start`; None when none does."""
    if tokens[start].word in _NOT_JOINED or not _joins(tokens[start]):
        return None
    named = False
    found: int | None = None
    for at in range(start, min(len(tokens), start + _MAX_PARTS + 1)):
        token = tokens[at]
        if not _joins(token) or token.end - tokens[start].start > _MAX_CHARS:
            break
        ends = at > start and token.word in _ORG_ENDS
        if ends and named and (token.word not in _WEAK_ENDS or _is_name(tokens[at - 1], known)):
            found = at + 1
        if token.word in _NOT_JOINED and not ends:
            break
        named = named or _is_name(token, known)
    return found


def _joins(token: ZhToken) -> bool:
    return token.tag.startswith(_JOINED_TAGS) and not token.word.isspace()


def _is_name(token: ZhToken, known: Callable[[str], bool]) -> bool:
    return token.tag.startswith(_NAME_TAGS) or (len(token.word) >= 2 and not known(token.word))
