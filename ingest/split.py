"""Normalized text → passages, cut between sentences by the encoder's own token counts.

A passage never crosses a heading or a table edge, never begins inside a grapheme cluster and is never blank.
Its text is a slice of the normalized text. What the slice lacks stands in `heading_path`: the headings above
it and, last, the header row of the table that it continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import regex

from core.types import Lang, Span
from ingest.clean import visible
from ingest.lang import language_of
from ingest.normalize import NormalizedDocument, TextBlock
from ingest.parse.model import BlockKind
from ingest.sentences import sentences
from ingest.tokens import TokenCounter

RESERVED_TOKENS = 8
"""Room for the special tokens and the encoder's own prompt (`passage: ` is 3 tokens for e5)."""
_PATH_JOIN = " > "
_PATH_SHARE = 3  # headings take at most a third of the window
_TAIL_SHARE = 4  # a rest below a quarter of the target joins the passage before it
_SHORT_TEXT = 40  # a Japanese heading may hold Han characters alone, a passage of this length does not
_CLUSTER = regex.compile(r"\X")
_SOFT_BREAK = regex.compile(r"(?<=[,，、:：)）\]】\s])")


@dataclass(frozen=True, slots=True)
class PassageDraft:
    """A passage before it has an id; `text` equals the slice of the normalized text at `span`."""

    ordinal: int
    span: Span
    page: int | None
    heading_path: tuple[str, ...]
    lang: Lang
    text: str
    page_breaks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class _Unit:
    """The smallest piece that is not cut: a sentence, a table row, a line of code.

    `section` is (heading path, number of that heading, table): units of different sections never meet.
    `paragraph` counts paragraphs of prose; lists, rows and code between two of them are one.
    """

    span: Span
    tokens: int
    section: tuple[tuple[str, ...], int, int | None]
    table_header: str | None
    is_header: bool
    paragraph: int


def encoder_text(heading_path: Sequence[str], text: str) -> str:
    """What the encoder (and the lexical index) sees of a passage: its headings, then its text."""
    return f"{_PATH_JOIN.join(heading_path)}\n{text}" if heading_path else text


def split(
    document: NormalizedDocument, count_tokens: TokenCounter, target: int, cap: int
) -> list[PassageDraft]:
    """Cut a document into passages.

    Args:
        document: what `normalize.build` gave.
        count_tokens: counts for a batch of texts, without special tokens.
        target: wanted size in tokens, headings included.
        cap: no passage is larger, with its headings and `RESERVED_TOKENS`; the only exception is a single
            grapheme cluster that is larger by itself.

    Returns:
        Passages in text order, ordinals from 0; every visible character of the body is in exactly one.

    Raises:
        ValueError: target or cap leaves no room for text.
    """
    if not 16 <= target <= cap:
        raise ValueError(f"needs 16 <= target <= cap, got {target} and {cap}")
    paths = _Paths(count_tokens, (cap - RESERVED_TOKENS) // _PATH_SHARE)
    units = _fit(document.text, list(_units(document, count_tokens)), count_tokens, paths, (target, cap))
    drafts: list[PassageDraft] = []
    for group in _packed(units, paths, target, cap):
        span = Span(group[0].span.start, group[-1].span.end)
        text = document.text[span.start : span.end]
        if not visible(text):
            continue
        lang = language_of(text)
        drafts.append(
            PassageDraft(
                ordinal=len(drafts),
                span=span,
                page=document.offset_map.page_at(span.start),
                heading_path=paths.of(group[0])[0],
                lang=_lang_within(document.lang, lang, text),
                text=text,
                page_breaks=document.offset_map.page_breaks(span) if document.pages else (),
            )
        )
    return drafts


def _lang_within(document: Lang, own: Lang, text: str) -> Lang:
    """Language of a passage: its own, but a few characters say less than the document around them."""
    if own is Lang.UND or (document is Lang.UND and len(text) < _SHORT_TEXT):
        return document
    return own


class _Paths:
    """Heading paths with their token counts, shortened where they would crowd out the text."""

    def __init__(self, count_tokens: TokenCounter, room: int) -> None:
        self._count = count_tokens
        self._room = room
        self._known: dict[tuple[str, ...], tuple[tuple[str, ...], int]] = {}

    def of(self, unit: _Unit) -> tuple[tuple[str, ...], int]:
        """Path of a passage that begins with `unit`, and its tokens."""
        path = unit.section[0]
        if unit.table_header is not None:
            path = (*path, unit.table_header)
        if path not in self._known:
            self._known[path] = self._shortened(path)
        return self._known[path]

    def _shortened(self, path: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        if not path:
            return (), 0
        tokens = self._count([_PATH_JOIN.join(path)])[0] + 1
        if tokens <= self._room:
            return path, tokens
        if rest := path[1:]:
            return self._shortened(rest)  # the inner headings say more
        innermost = path[-1]
        keep = max(1, len(innermost) * self._room // (2 * tokens))
        kept = "".join(m.group() for m in _CLUSTER.finditer(innermost[:keep]))
        return ((kept + "…",), self._room) if keep > 1 else ((), 0)


def _units(document: NormalizedDocument, count_tokens: TokenCounter) -> Iterator[_Unit]:
    text = document.text
    found: list[tuple[Span, TextBlock, int]] = []
    heading = 0
    for block, following in zip(document.blocks, [*document.blocks[1:], None], strict=True):
        heading += block.kind is BlockKind.HEADING
        if block.kind is BlockKind.HEADING and _has_body(block, following):
            continue  # it stands in the heading path of its body
        if block.kind in (BlockKind.TABLE_ROW, BlockKind.CODE, BlockKind.HEADING):
            found.append((block.span, block, heading))
            continue
        at = block.span.start
        found.extend(
            (Span(at + s.start, at + s.end), block, heading) for s in sentences(text[at : block.span.end])
        )
    counts = count_tokens([text[span.start : span.end] for span, _, _ in found])
    paragraph, last = 0, None
    for (span, block, heading), tokens in zip(found, counts, strict=True):
        # +1: joined pieces may cost one token more than their sum (the line end between them)
        section = (block.heading_path, heading, block.table)
        if block is not last and (
            block.kind is BlockKind.PARAGRAPH or last is None or last.kind is not block.kind
        ):
            paragraph += 1
        last = block
        yield _Unit(span, tokens + 1, section, block.table_header, block.is_table_header, paragraph)


def _has_body(heading: TextBlock, following: TextBlock | None) -> bool:
    if following is None:
        return False
    return following.kind is not BlockKind.HEADING or following.level > heading.level


def _fit(
    text: str, units: list[_Unit], count_tokens: TokenCounter, paths: _Paths, sizes: tuple[int, int]
) -> list[_Unit]:
    """Cut units above the cap into pieces of about the target. Each round makes them smaller."""
    target, cap = sizes
    while True:
        rooms = [cap - RESERVED_TOKENS - paths.of(u)[1] for u in units]
        large = [u.tokens > room and len(u.span) > 1 for u, room in zip(units, rooms, strict=True)]
        if not any(large):
            return units
        pieces: list[tuple[_Unit, list[Span]]] = [
            (u, _pieces(text, u, max(1, min(room, target + room - cap))) if is_large else [u.span])
            for u, room, is_large in zip(units, rooms, large, strict=True)
        ]
        fresh = [s for (_, spans), is_large in zip(pieces, large, strict=True) if is_large for s in spans]
        counts = iter(count_tokens([text[s.start : s.end] for s in fresh]))
        cut: list[_Unit] = []
        stuck = True
        for (unit, spans), is_large in zip(pieces, large, strict=True):
            if not is_large:
                cut.append(unit)
                continue
            stuck = stuck and len(spans) == 1
            cut.extend(replace(unit, span=s, tokens=next(counts) + 1, is_header=False) for s in spans)
        units = cut
        if stuck:  # single clusters that no cut makes smaller
            return units


def _pieces(text: str, unit: _Unit, room: int) -> list[Span]:
    """Cut one unit into spans of about `room` tokens, at soft breaks where there are any."""
    piece = text[unit.span.start : unit.span.end]
    count = max(2, -(-unit.tokens // room))
    size = -(-len(piece) // count)
    edges = [m.end() for m in _CLUSTER.finditer(piece)]
    soft = {m.start() for m in _SOFT_BREAK.finditer(piece)}
    spans: list[Span] = []
    start = 0
    index = 0
    while start < len(piece):
        limit = start + size
        last = index
        soft_end = 0
        while last < len(edges) and (edges[last] <= limit or last == index):
            if edges[last] in soft and edges[last] - start > size // 2:
                soft_end = last + 1
            last += 1
        if soft_end and last < len(edges):
            last = soft_end
        end = edges[last - 1]
        spans.append(Span(unit.span.start + start, unit.span.start + end))
        start, index = end, last
    return _trimmed(text, spans)


def _trimmed(text: str, spans: list[Span]) -> list[Span]:
    kept: list[Span] = []
    for span in spans:
        piece = text[span.start : span.end]
        start = span.start + len(piece) - len(piece.lstrip())
        if piece.strip():
            kept.append(Span(start, start + len(piece.strip())))
    return kept


def _packed(units: list[_Unit], paths: _Paths, target: int, cap: int) -> list[list[_Unit]]:
    """Fill passages up to the target with whole paragraphs; one that is larger is cut evenly."""
    groups: list[list[_Unit]] = []
    sizes: list[int] = []
    for _, together in groupby(units, key=lambda unit: (unit.section, unit.paragraph)):
        paragraph = list(together)
        fixed = RESERVED_TOKENS + paths.of(paragraph[0])[1]
        total = sum(unit.tokens for unit in paragraph)
        goes_on = bool(groups) and groups[-1][0].section == paragraph[0].section
        if goes_on and sizes[-1] + total > target and sizes[-1] > target // 2:
            goes_on = False  # full enough: the paragraph begins a passage of its own
        parts = max(1, -(-total // max(1, target - fixed)))
        limit = min(target, fixed + total // parts + total // (4 * parts)) if not goes_on else target
        for unit in paragraph:
            bound = cap if goes_on and all(u.is_header for u in groups[-1]) else limit
            if goes_on and sizes[-1] + unit.tokens <= bound:
                groups[-1].append(unit)
                sizes[-1] += unit.tokens
                continue
            groups.append([unit])
            sizes.append(RESERVED_TOKENS + paths.of(unit)[1] + unit.tokens)
            goes_on = True
    return _without_small_tails(groups, sizes, paths, target, cap)


def _without_small_tails(
    groups: list[list[_Unit]], sizes: list[int], paths: _Paths, target: int, cap: int
) -> list[list[_Unit]]:
    kept: list[list[_Unit]] = []
    kept_sizes: list[int] = []
    for group, size in zip(groups, sizes, strict=True):
        own = size - RESERVED_TOKENS - paths.of(group[0])[1]
        if (
            kept
            and kept[-1][0].section == group[0].section
            and own < target // _TAIL_SHARE
            and kept_sizes[-1] + own <= cap
        ):
            kept[-1].extend(group)
            kept_sizes[-1] += own
            continue
        kept.append(list(group))
        kept_sizes.append(size)
    return kept
