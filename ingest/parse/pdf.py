"""PDF: lines in reading order, without page furniture, joined to paragraphs over lines, columns and pages."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from core.errors import DocumentRejected
from ingest.parse.members import Parts, display_name
from ingest.parse.model import ParsedDocument, ParseOptions, ParseWarning
from ingest.parse.pdf_blocks import blocks_of_lines
from ingest.parse.pdf_document import (
    attachments,
    information,
    open_or_repair,
    outline,
    properties,
    read_pages,
    title_of,
)
from ingest.parse.pdf_furniture import without_furniture
from ingest.parse.pdf_layout import lines_of_page
from ingest.parse.pdf_recognise import (
    PageReader,
    has_picture,
    lacks_text,
    may_be_scan,
    page_reader,
)
from ingest.parse.pdf_words import PageText
from ingest.parse.progress import tell_pages
from ingest.parse.recognise import Recogniser, why_not
from ingest.parse.sniff import PDF
from ingest.parse.turned import blocks_as_shown
from ingest.parse.within import check_length

_DAMAGED_SHARE = 0.02


def parse_pdf(content: bytes, options: ParseOptions, media_type: str = PDF) -> ParsedDocument:
    """Read a PDF: its text layer, and the pictures of pages that have none where recognition is installed.

    Raises:
        DocumentRejected: `encrypted`, `corrupt`, `too_big`, or `no_text` when OCR would be needed.
    """
    with collector_paused():
        document, mended = open_or_repair(content)
        try:
            recognise = page_reader(options, len(document))
            pages, lost = _read(document, options, recognise)
            info, levels, count = information(document), outline(document), len(document)
            attached = attachments(document)
        finally:
            document.close()
        recogniser = recognise.recogniser if recognise is not None else Recogniser(0)
        if not attached:
            _require_text(pages, options, recogniser, mended)
        lines = without_furniture([lines_of_page(page) for page in pages], pages)
        blocks = blocks_as_shown(blocks_of_lines(lines, levels), recogniser.turns)
    parsed = ParsedDocument(
        media_type=media_type,
        blocks=blocks,
        title=title_of(info),
        pages=count,
        warnings=(*recogniser.warnings(), *_warnings(pages, lost, recogniser, mended, options)),
        partial=bool(lost) or mended or recogniser.partial,
        properties=properties(info),
    )
    if attached:
        parsed = _with_parts(parsed, attached, options)
        if not parsed.blocks:
            _require_text(pages, options, recogniser, mended)
    return parsed


@contextmanager
def collector_paused() -> Generator[None]:
    """Search for no cycles: none are made here, and most objects live to the end (15 % of the time)."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _with_parts(
    parsed: ParsedDocument, attached: list[tuple[str, bytes]], options: ParseOptions
) -> ParsedDocument:
    """The document with the files attached to it as its parts."""
    parts = Parts(options)
    parts.add(parsed.blocks)
    for name, file in attached:
        parts.attach(file, name)
    names = ", ".join(display_name(name) for name, _ in attached[:5])
    more = f" and {len(attached) - 5} more" if len(attached) > 5 else ""
    told = ParseWarning("has_attachments", f"Files are attached: {names}{more}.")
    return replace(
        parsed,
        blocks=tuple(parts.blocks),
        warnings=(*parsed.warnings, told, *parts.warnings),
        partial=parsed.partial or parts.partial,
    )


def _read(
    document: Any, options: ParseOptions, recognise: PageReader | None
) -> tuple[list[PageText], list[int]]:
    """The pages that could be read, and the numbers of those that could not."""
    pages: list[PageText] = []
    lost: list[int] = []
    chars = 0
    total = len(document)
    for number, read in enumerate(read_pages(document, options), start=1):
        tell_pages(number - 1, total)
        if read is None:
            lost.append(number)
            continue
        page, text = read
        if recognise is not None and lacks_text(text) and (text.unmapped or has_picture(page)):
            text = recognise(page, number) or text
        elif recognise is not None and may_be_scan(page, text):
            text = recognise.stamped(page, number, text)
        if lacks_text(text):
            text.pieces, text.others = [], []  # what is left of it reads as noise
        chars += text.chars
        check_length(chars, options.limits)
        pages.append(text)
    tell_pages(total, total)
    return pages, lost


def _require_text(pages: list[PageText], options: ParseOptions, recogniser: Recogniser, mended: bool) -> None:
    if all(lacks_text(page) for page in pages):
        unmapped = sum(page.unmapped for page in pages)
        if mended:
            raise DocumentRejected(
                "corrupt", "The PDF breaks off before its text; upload a complete copy of it."
            )
        what = "has no text layer" if unmapped == 0 else "has fonts whose letters cannot be read"
        reason = why_not(options)
        if reason is None and recogniser.tried:
            reason = "No text was recognised in its pictures."
        raise DocumentRejected(
            "no_text",
            f"The PDF {what}. {reason or 'Its pages show no pictures of text.'} Upload a version with text.",
        )


def _warnings(
    pages: list[PageText], lost: list[int], recogniser: Recogniser, mended: bool, options: ParseOptions
) -> list[ParseWarning]:
    found: list[ParseWarning] = []
    if mended:
        found.append(ParseWarning("file_damaged", "The file breaks off; what is left of it was read."))
    damaged = tuple(p.number for p in pages if p.unmapped > _DAMAGED_SHARE * (p.chars + p.unmapped))
    if damaged:
        found.append(ParseWarning("text_damaged", "Letters are missing from the text layer.", damaged))
    told = set(recogniser.skipped)
    bare = tuple(p.number for p in pages if p.chars + p.unmapped == 0 and p.number not in told)
    if bare:
        reason = why_not(options)
        detail = f"These pages hold no text. {reason}" if reason else "These pages hold no text."
        found.append(ParseWarning("pages_without_text", detail, bare))
    if lost:
        found.append(
            ParseWarning("pages_unreadable", "These pages are damaged and were skipped.", tuple(lost))
        )
    hidden = tuple(p.number for p in pages if p.hidden)
    if hidden:
        count = sum(p.hidden for p in pages)
        found.append(
            ParseWarning("hidden_text", f"{count} characters that people cannot see were left out.", hidden)
        )
    return found
