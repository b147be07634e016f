"""Headings of documents that use no heading styles, by their numbering and their look.

Only lines whose first words number a section (`第三章`, `二、`, `1.2.3`) are taken, and only when they are
short, end without a full stop and, where lists are numbered alike, are bold or large.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import regex

from ingest.parse.model import Block, BlockKind

Looks = dict[int, tuple[bool, int | None]]
_MAX_CHARS = 50
_NUMERAL = "[一二三四五六七八九十百零〇0-9]{1,5}"
_SECTIONS = (
    (1, True, regex.compile(rf"第{_NUMERAL}[编篇部]\b|第{_NUMERAL}[编篇部分](?=[\s\u3000]|$)")),
    (2, True, regex.compile(rf"第{_NUMERAL}章")),
    (3, True, regex.compile(rf"第{_NUMERAL}节")),
    (4, True, regex.compile(r"[一二三四五六七八九十]{1,3}、")),
    (5, False, regex.compile(r"[（(][一二三四五六七八九十]{1,3}[)）]")),
    (
        2,
        False,
        regex.compile(r"(?:chapter|part|section|article|appendix)\s+(?:\d+|[IVXLC]+|[A-Z])\b", regex.I),
    ),
)
_DECIMAL = regex.compile(r"\d{1,2}((?:\.\d{1,3}){0,5})[.、]?[\s\u3000]*(?=\p{L})")
_ENDS = regex.compile(r"[。；;，,：:!?！？…]$|(?<!\b[A-Z])\.$")


def with_headings(blocks: list[Block], looks: Looks) -> list[Block]:
    """The blocks with section lines turned into headings, unless the document has headings already."""
    if any(b.kind is BlockKind.HEADING and b.level > 0 for b in blocks):
        return blocks
    usual = _usual_size(blocks, looks)
    ranks: dict[int, int] = {}
    for index, block in enumerate(blocks):
        rank = _rank(block, looks, usual)
        if rank is not None:
            ranks[index] = rank
    # Ranks that occur become levels 1, 2, 3 … in order.
    levels = {rank: level for level, rank in enumerate(sorted(set(ranks.values())), start=1)}
    return [
        replace(block, kind=BlockKind.HEADING, level=levels[ranks[index]]) if index in ranks else block
        for index, block in enumerate(blocks)
    ]


def _usual_size(blocks: list[Block], looks: Looks) -> int | None:
    sizes: Counter[int | None] = Counter()
    for block in blocks:
        if block.paragraph in looks:
            sizes[looks[block.paragraph][1]] += len(block.text)
    return sizes.most_common(1)[0][0] if sizes else None


def _rank(block: Block, looks: Looks, usual: int | None) -> int | None:
    if block.kind not in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM) or block.paragraph is None:
        return None
    text = block.text.strip()
    if len(text) > _MAX_CHARS or _ENDS.search(text) or block.paragraph not in looks:
        return None
    bold, size = looks[block.paragraph]
    stands_out = bold or (size is not None and usual is not None and size > usual)
    for rank, alone, pattern in _SECTIONS:
        if pattern.match(text):
            return rank if alone or stands_out else None
    number = _DECIMAL.match(text)
    return 6 + number.group(1).count(".") if number and stands_out else None
