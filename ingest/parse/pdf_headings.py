"""Which groups of lines of a PDF are headings, and how deep: by bookmarks, size, weight and numbering."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from ingest.parse.pdf_document import folded
from ingest.parse.pdf_groups import Group, Scale, is_caption, is_contents
from ingest.parse.pdf_joints import ends_sentence

_BULLET = re.compile(r"[-–*•·‣▪●○■□◦➢✓]\s")
_NUMBERED = re.compile(
    r"(?:(?P<dotted>\d{1,2}(?:\.\d{1,3}){0,4})\.?\s*[^\W\d]|(?P<letter>[A-Z])(?:\.\d{1,2})*\.?\s+[A-Z]"
    r"|(?P<word>Chapter|Section|Appendix|Part)\s+[\dA-Z]|第[一二三四五六七八九十百\d]+(?P<zh>[章篇部节節條条])"
    r"|(?P<zh_list>[一二三四五六七八九十]{1,3}、))"
)
_NUMBER = re.compile(r"(?:\d{1,2}(?:\.\d{1,3})*\.?|[A-Z]\.(?:\d+\.?)*|第\S{1,4}[章篇部节節])\s*")
_RATIO = 1.1  # of the body's size
_MAX_CHARS = 160
_MAX_LEVEL = 6
_LABELS = 4  # bold lines in a row

_Style = tuple[float, bool]
"""Size in body sizes, and whether the weight alone makes the heading; larger first, then bolder."""


class Headings:
    """The headings among the groups of a document."""

    def __init__(self, groups: list[Group], scale: Scale, outline: Mapping[str, int]) -> None:
        """Find them.

        Args:
            groups: of the whole document.
            scale: its font sizes.
            outline: levels of its bookmarks by folded text.
        """
        self._scale = scale
        self._outline = outline
        self._found: dict[int, tuple[_Style, int]] = {}
        self._named: dict[int, int] = {}
        named_styles: defaultdict[_Style, Counter[int]] = defaultdict(Counter)
        for group in groups:
            self._note(group, named_styles)
        self._drop_labels(groups)
        ranks = sorted({style for style, _ in self._found.values()}, reverse=True)
        self._rank = {style: rank for rank, style in enumerate(ranks, start=1)}
        # A style that bookmarks point to has their level also where there is no bookmark.
        self._rank |= {style: levels.most_common(1)[0][0] for style, levels in named_styles.items()}
        self._shallowest: dict[_Style, int] = {}
        for style, depth in self._found.values():
            if depth:
                self._shallowest[style] = min(depth, self._shallowest.get(style, depth))

    def level(self, group: Group) -> int | None:
        """Level of a heading, 1 = top; None when the group is none."""
        named = self._named.get(id(group))
        if named is not None:
            return min(named, _MAX_LEVEL)
        found = self._found.get(id(group))
        if found is None:
            return None
        style, depth = found
        deeper = depth - self._shallowest[style] if depth else 0
        return min(self._rank[style] + deeper, _MAX_LEVEL)

    def _note(self, group: Group, named_styles: defaultdict[_Style, Counter[int]]) -> None:
        first = group[0]
        if first.table is not None or first.has_cells or len(group) > 4 or self._scale.is_code(first):
            return
        plain = first.size < 1.03 * self._scale.body and not first.bold
        if plain and not self._outline and first.text[0] != "第":
            return
        text = " ".join(line.text for line in group)
        if len(text) > _MAX_CHARS or not any(c.isalpha() for c in text):
            return
        size = self._scale.of(first)
        bold = all(self._scale.is_bold(line) for line in group)
        style = (round(size, 1) if size >= 1.03 else 1.0, bold and size < _RATIO)
        level = self._bookmarked(text) if self._outline else None
        if level is not None and not (ends_sentence(text) and len(group) > 1):
            self._named[id(group)] = level
            if not plain:
                named_styles[style][level] += 1
            return
        depth = _depth(text)
        if self._stands_out(group, text, size, bold, depth):
            self._found[id(group)] = style, depth

    def _bookmarked(self, text: str) -> int | None:
        """The level of the bookmark with this text; its number may stand in one of the two only."""
        level = self._outline.get(folded(text))
        if level is None and (number := _NUMBER.match(text)) is not None:
            level = self._outline.get(folded(text[number.end() :]))
        return level

    def _drop_labels(self, groups: list[Group]) -> None:
        """Bold lines that follow each other without a text between them label a figure or a form."""
        run: list[Group] = []
        for group in [*groups, []]:
            found = self._found.get(id(group))
            if found is not None and found[0][1] and not found[1]:
                run.append(group)
                continue
            if len(run) >= _LABELS:
                for label in run:
                    del self._found[id(label)]
            run = []

    def _stands_out(self, group: Group, text: str, size: float, bold: bool, depth: int) -> bool:
        if _BULLET.match(text) or is_caption(text) or is_contents(text) or size < 0.97:
            return False
        if size >= _RATIO:
            return len(group) <= 3 and not text.endswith(("。", "；", ";", ",", "，"))
        if ends_sentence(text) and not text.endswith(("?", "？")):
            return False
        if len(group) == 1 and depth and len(text) <= 80:
            chapter = (
                text[0] == "第"
                and _NUMBERED.match(text) is not None
                and "条" not in text[:6]
                and len(text) <= 40
            )
            if bold or size >= 1.03 or chapter:
                return True
        return bold and len(group) <= 2 and len(text) <= 100 and not text.endswith((",", "，", "、"))


def _depth(text: str) -> int:
    """How deep the numbering at the beginning of a heading goes; 0 = it has none."""
    match = _NUMBERED.match(text)
    if match is None:
        return 0
    if match["dotted"]:
        return match["dotted"].count(".") + 1
    if match["zh"]:
        return 2 if match["zh"] in "节節條条" else 1
    return 2 if match["zh_list"] else 1
