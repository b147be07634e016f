"""Blocks → one normalized text that is shown and cited, with the way back to the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.errors import DocumentRejected
from core.types import Lang, Span
from ingest.clean import Run, clean, clean_code_with_runs, clean_with_runs, private_use, spaced_edges, visible
from ingest.lang import language_of
from ingest.offset_map import OffsetMap, Segment
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseWarning

_TITLE_MAX = 200
# A blank line parts paragraphs; items and rows of one list or table follow each other.
_TIGHT = frozenset({BlockKind.LIST_ITEM, BlockKind.TABLE_ROW, BlockKind.CODE})


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A block inside the normalized text.

    Attributes:
        span: its place; the text of a block holds no line end.
        heading_path: headings above it, outermost first; for a heading, without itself.
        table_header: the header row of the table it belongs to, when it is a later row.
    """

    span: Span
    kind: BlockKind
    level: int = 0
    heading_path: tuple[str, ...] = ()
    table: int | None = None
    table_header: str | None = None
    is_table_header: bool = False


@dataclass(frozen=True, slots=True)
class NormalizedDocument:
    """A document version ready to be split, stored and cited.

    Attributes:
        text: NFC, cleaned, as shown; one block per line, paragraphs parted by a blank line.
        outline: headings as `{"level", "text", "start", "end"}`, in order.
        warnings: in the JSON form that is stored.
    """

    text: str
    offset_map: OffsetMap
    blocks: tuple[TextBlock, ...]
    outline: list[dict[str, Any]]
    title: str
    lang: Lang
    media_type: str
    pages: int | None = None
    encoding: str | None = None
    encoding_confidence: float | None = None
    warnings: list[dict[str, Any]] = field(default_factory=list)
    partial: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


def build(parsed: ParsedDocument) -> NormalizedDocument:
    """Clean the blocks and lay them out as one text.

    Pure: the same blocks give the same text, map and outline.

    Raises:
        DocumentRejected: nothing visible is left (`empty`).
    """
    writer = _Writer()
    headings: list[tuple[int, str]] = []
    outline: list[dict[str, Any]] = []
    header_of: dict[int, str] = {}
    for block in parsed.blocks:
        if block.kind is BlockKind.HEADING and visible(clean(block.text)):
            while headings and headings[-1][0] >= block.level:
                headings.pop()
        path = tuple(text for _, text in headings)
        span = writer.add(block, path, header_of.get(block.table) if block.table is not None else None)
        if span is None:
            continue
        text = writer.text_of(span)
        if block.kind is BlockKind.HEADING:
            headings.append((block.level, text))
            outline.append({"level": block.level, "text": text, "start": span.start, "end": span.end})
        elif block.is_table_header and block.table is not None:
            header_of.setdefault(block.table, text)
    text = writer.text
    if not visible(text):
        raise DocumentRejected("empty", "The document holds no text after cleaning; upload one with content.")
    return NormalizedDocument(
        text=text,
        offset_map=OffsetMap(writer.segments),
        blocks=tuple(writer.blocks),
        outline=outline,
        title=_title(parsed, outline),
        lang=language_of(text),
        media_type=parsed.media_type,
        pages=parsed.pages,
        encoding=parsed.encoding,
        encoding_confidence=parsed.encoding_confidence,
        warnings=[w.as_json() for w in _warnings(parsed, text)],
        partial=parsed.partial,
        properties=parsed.properties,
    )


class _Writer:
    """Lays out cleaned blocks and notes where each character came from."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self.segments: list[Segment] = []
        self.blocks: list[TextBlock] = []
        self._tail = ""

    @property
    def text(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def text_of(self, span: Span) -> str:
        """Text of the block written last."""
        return self._tail[len(self._tail) - len(span) :]

    def add(self, block: Block, path: tuple[str, ...], table_header: str | None) -> Span | None:
        """Write one block; None when nothing visible is in it."""
        pieces = _clean_block(block)
        body = "".join(glue + text for glue, text, _, _ in pieces)
        # A line of code may be one bracket.
        if not visible(body) and not (block.kind is BlockKind.CODE and body.strip()):
            return None
        if self.blocks:
            last = self.blocks[-1]
            tight = block.kind in _TIGHT and last.kind is block.kind and last.table == block.table
            self._write("\n" if tight else "\n\n")
        start = self._length
        for glue, text, runs, fragment in pieces:
            self._write(glue)
            at = self._length
            if fragment.written is not None:
                runs = [Run(len(text), 0, fragment.written)]
            for run in runs:
                self.segments.append(
                    _segment(at, run.length, run.source_start, run.source_length, fragment, block)
                )
                at += run.length
            self._write(text)
        self._tail = body
        span = Span(start, self._length)
        self.blocks.append(
            TextBlock(span, block.kind, block.level, path, block.table, table_header, block.is_table_header)
        )
        return span

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)


def _clean_block(block: Block) -> list[tuple[str, str, list[Run], Fragment]]:
    pieces: list[tuple[str, str, list[Run], Fragment]] = []
    cleaned = clean_code_with_runs if block.kind is BlockKind.CODE else clean_with_runs
    spaced = False  # white space at the edge of a fragment is stripped, but still parts it from the next
    for fragment in block.fragments:
        text, runs = cleaned(fragment.text)
        before, after = spaced_edges(fragment.text)
        spaced = spaced or before
        if not text and fragment.glue != " | ":
            continue  # an empty cell keeps its column, an empty run leaves nothing
        glue = fragment.glue if pieces else ""
        pieces.append((" " if spaced and pieces and not glue else glue, text, runs, fragment))
        spaced = after
    while pieces and not pieces[-1][1]:
        pieces.pop()  # empty cells at the end of a row
    return pieces


def _segment(
    start: int, length: int, source_start: int, source_length: int, fragment: Fragment, block: Block
) -> Segment:
    known = fragment.start is not None
    return Segment(
        start,
        length,
        (fragment.start or 0) + source_start if known else None,
        source_length if known else 0,
        fragment.line,
        fragment.page,
        block.paragraph,
        fragment.box,
        block.member,
    )


def _title(parsed: ParsedDocument, outline: list[dict[str, Any]]) -> str:
    title = clean(parsed.title)
    if not visible(title) and outline:
        title = str(outline[0]["text"])
    return title[:_TITLE_MAX]


def _warnings(parsed: ParsedDocument, text: str) -> list[ParseWarning]:
    found = list(parsed.warnings)
    damaged = text.count("\ufffd")
    if damaged and not any(w.code == "text_damaged" for w in found):
        found.append(ParseWarning("replaced_characters", f"{damaged} characters could not be decoded."))
    if private := private_use(text):
        detail = f"{private} characters have no meaning outside the font or system that they were made for."
        found.append(ParseWarning("private_use", detail))
    return found
