"""PDF: lines in reading order, without page furniture, joined to paragraphs over lines, columns and pages."""

from __future__ import annotations

from collections import Counter
from typing import Any

import regex

from core.errors import DocumentRejected
from ingest.parse.model import ParsedDocument, ParseOptions, ParseWarning
from ingest.parse.pdf_blocks import blocks_of_lines
from ingest.parse.pdf_layout import Line, lines_of_page
from ingest.parse.pdf_recognise import UNREADABLE_SHARE, PageReader, has_picture, lacks_text, page_reader
from ingest.parse.pdf_words import PageText, open_pdf, pdf_title, read_pages
from ingest.parse.progress import tell_pages
from ingest.parse.recognise import Recogniser, why_not
from ingest.parse.sniff import PDF
from ingest.parse.turned import blocks_as_shown
from ingest.parse.within import check_length

_DAMAGED_SHARE = 0.02
_EDGE = 0.1  # share of the page height in which headers and footers stand
_EDGE_LINES = 2
_REPEATED_SHARE = 0.3
_DIGITS = regex.compile(r"\d+|\b[ivxlc]{1,7}\b", regex.IGNORECASE)
_PAGE_NUMBER = regex.compile(
    r"[-–—·|\s]*(?:page|p\.|seite|第)?\s*(?:\d{1,4}|[ivxlc]{1,7})\s*(?:页|頁)?(?:\s*(?:/|of|共|,|，)\s*\d{1,4}\s*(?:页|頁)?)?[-–—·|\s]*",
    regex.IGNORECASE,
)


def parse_pdf(content: bytes, options: ParseOptions, media_type: str = PDF) -> ParsedDocument:
    """Read a PDF with a text layer.

    Raises:
        DocumentRejected: `encrypted`, `corrupt`, `too_big`, or `no_text` when OCR would be needed.
    """
    document = open_pdf(content)
    try:
        recognise = page_reader(options, len(document))
        pages, lost = _read(document, options, recognise)
        title, count = pdf_title(document), len(document)
    finally:
        document.close()
    recogniser = recognise.recogniser if recognise is not None else Recogniser(0)
    _require_text(pages, options, recogniser)
    lines = _without_furniture([lines_of_page(page) for page in pages], pages)
    return ParsedDocument(
        media_type=media_type,
        blocks=blocks_as_shown(blocks_of_lines(lines), recogniser.turns),
        title=title,
        pages=count,
        warnings=(*recogniser.warnings(), *_warnings(pages, lost, recogniser)),
        partial=bool(lost) or recogniser.partial,
    )


def _read(
    document: Any, options: ParseOptions, recognise: PageReader | None
) -> tuple[list[PageText], list[int]]:
    """The pages that could be read, and the numbers of those that could not."""
    pages: list[PageText] = []
    lost: list[int] = []
    chars = 0
    total = len(document)
    for number, read in enumerate(read_pages(document), start=1):
        tell_pages(number - 1, total)
        if read is None:
            lost.append(number)
            continue
        page, text = read
        if recognise is not None and lacks_text(text) and has_picture(page):
            text = recognise(page, number) or text
        chars += text.chars
        check_length(chars, options.limits)
        pages.append(text)
    tell_pages(total, total)
    return pages, lost


def _require_text(pages: list[PageText], options: ParseOptions, recogniser: Recogniser) -> None:
    chars = sum(p.chars for p in pages)
    unmapped = sum(p.unmapped for p in pages)
    if chars == 0 or unmapped > UNREADABLE_SHARE * (chars + unmapped):
        what = "has no text layer" if unmapped == 0 else "has fonts whose letters cannot be read"
        reason = why_not(options)
        if reason is None and recogniser.turns:
            reason = "No text was recognised in its pictures."
        raise DocumentRejected(
            "no_text",
            f"The PDF {what}. {reason or 'Its pages show no pictures of text.'} Upload a version with text.",
        )


def _warnings(pages: list[PageText], lost: list[int], recogniser: Recogniser) -> list[ParseWarning]:
    found: list[ParseWarning] = []
    damaged = tuple(p.number for p in pages if p.unmapped > _DAMAGED_SHARE * (p.chars + p.unmapped))
    if damaged:
        found.append(ParseWarning("text_damaged", "Letters are missing from the text layer.", damaged))
    told = set(recogniser.skipped)
    bare = tuple(p.number for p in pages if p.chars == 0 and p.number not in told)
    if bare:
        found.append(ParseWarning("pages_without_text", "These pages hold no text.", bare))
    if lost:
        found.append(
            ParseWarning("pages_unreadable", "These pages are damaged and were skipped.", tuple(lost))
        )
    return found


def _without_furniture(by_page: list[list[Line]], pages: list[PageText]) -> list[Line]:
    """Drop lines that repeat at page edges (digits aside) and lone page numbers there."""
    edges = [_edge_lines(lines, page.height) for lines, page in zip(by_page, pages, strict=True)]
    seen = Counter(key for keys in edges for key in set(keys.values()))
    enough = max(2, -int(-len(pages) * _REPEATED_SHARE // 1))
    kept: list[Line] = []
    for lines, keys in zip(by_page, edges, strict=True):
        for index, line in enumerate(lines):
            key = keys.get(index)
            if key is not None:
                repeated = len(pages) > 1 and seen[key] >= enough
                if repeated or _is_page_number(line.text, len(pages)):
                    continue
            kept.append(line)
    return kept


def _edge_lines(lines: list[Line], height: float) -> dict[int, tuple[bool, str]]:
    """Index of each line near an edge → (at the top?, its text with numbers folded)."""
    top = sorted(
        (i for i, n in enumerate(lines) if n.box.bottom < _EDGE * height), key=lambda i: lines[i].box.top
    )
    low = sorted(
        (i for i, n in enumerate(lines) if n.box.top > (1 - _EDGE) * height),
        key=lambda i: -lines[i].box.bottom,
    )
    return {
        i: (at_top, _DIGITS.sub("#", lines[i].text).casefold().strip())
        for at_top, chosen in ((True, top), (False, low))
        for i in chosen[:_EDGE_LINES]
    }


def _is_page_number(text: str, pages: int) -> bool:
    if not _PAGE_NUMBER.fullmatch(text.strip()):
        return False
    return pages > 1 or not text.strip().isalnum()
