"""A PDF as a whole: opening it, its pages in turn, what it says of itself, its outline and attachments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from core.errors import DocumentRejected
from ingest.parse.model import ParseOptions
from ingest.parse.pdf_annotations import written_on
from ingest.parse.pdf_chars import plain_text, read_chars
from ingest.parse.pdf_frame import Frame
from ingest.parse.pdf_hidden import hidden_chars
from ingest.parse.pdf_repair import repaired
from ingest.parse.pdf_rules import drawn_on
from ingest.parse.pdf_words import PageText, page_text

_MAX_BOOKMARKS = 20_000
_PROGRAM = re.compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")
_FILE_NAME = re.compile(r"\.(?:pdf|docx?|pptx?|xlsx?|odt|dvi|tex|indd|qxd|rtf|wpd|txt|html?)$", re.IGNORECASE)
_NO_NAME = frozenset({"", "untitled", "anonymous", "unspecified", "(anonymous)", "(unspecified)", "unknown"})
_NOT_WORD = re.compile(r"[\W_]+")
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-])(\d\d)'?(\d\d)?)?")


def open_pdf(content: bytes) -> Any:
    """Open a document.

    Raises:
        DocumentRejected: `encrypted` or `corrupt`.
    """
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            raise DocumentRejected("encrypted", "The PDF needs a password; upload it without one.") from error
        raise DocumentRejected(
            "corrupt", "The PDF is damaged and could not be opened; upload a complete copy of it."
        ) from error
    if len(document) == 0:
        document.close()
        raise DocumentRejected("corrupt", "The PDF has no pages; upload a complete copy of it.")
    if document.get_formtype() != pdfium.FORMTYPE_NONE:
        document.init_forms()  # reads the values of fields; this build of pdfium runs no scripts
    return document


def open_or_repair(content: bytes) -> tuple[Any, bool]:
    """Open a document; if that fails, what is left of it. True when it had to be repaired.

    Raises:
        DocumentRejected: `encrypted` or `corrupt`.
    """
    try:
        return open_pdf(content), False
    except DocumentRejected as error:
        mended = repaired(content) if error.code == "corrupt" else None
        if mended is None:
            raise
        return open_pdf(mended), True


def read_pages(document: Any, options: ParseOptions) -> Iterator[tuple[Any, PageText] | None]:
    """Each page with its text, open until the next is asked for; None for one that cannot be loaded."""
    for index in range(len(document)):
        try:
            page = document[index]
            text_page = page.get_textpage()
        except pypdfium2.PdfiumError:
            yield None
            continue
        try:
            yield page, _read(document, page, text_page, index + 1, options)
        finally:
            text_page.close()
            page.close()


def _read(document: Any, page: Any, text_page: Any, number: int, options: ParseOptions) -> PageText:
    frame = Frame.of(page)
    drawn = drawn_on(page, frame)
    chars = read_chars(text_page, frame, drawn.texts)
    if chars is None:
        text = PageText(number, frame.width, frame.height, [], 0)
    else:
        hidden = None if options.keep_hidden else hidden_chars(chars, frame, drawn.images, page)
        text = page_text(chars, frame, number, hidden, drawn.rules)
    if text.turn == 0:
        written = written_on(page, frame, document.formenv)
        text.pieces.extend(written)
        text.chars += sum(len(piece.text) for piece in written)
    return text


def pages_as_text(content: bytes) -> list[str]:
    """The text of each page as pdfium orders it, without layout: for a peer's kind of comparison.

    Raises:
        DocumentRejected: `encrypted` or `corrupt`.
    """
    document = open_pdf(content)
    try:
        texts: list[str] = []
        for page in document:
            text_page = page.get_textpage()
            texts.append(plain_text(text_page))
            text_page.close()
            page.close()
        return texts
    finally:
        document.close()


def information(document: Any) -> dict[str, str]:
    """The document information by its own keys, such as `Title` and `CreationDate`."""
    try:
        return {key: str(value) for key, value in document.get_metadata_dict(skip_empty=True).items()}
    except (pypdfium2.PdfiumError, UnicodeDecodeError):
        return {}


def title_of(info: dict[str, str]) -> str:
    """The title that the document names, unless it is what a program put there: a file name, `untitled`."""
    title = _PROGRAM.sub("", info.get("Title", "")).strip()
    return "" if title.casefold() in _NO_NAME or _FILE_NAME.search(title) else title


def properties(info: dict[str, str]) -> dict[str, str]:
    """What the information dictionary says in the names that all formats share."""
    found = {
        "author": info.get("Author", "").strip(),
        "description": info.get("Subject", "").strip(),
        "created": iso_date(info.get("CreationDate", "")),
        "modified": iso_date(info.get("ModDate", "")),
    }
    return {key: value for key, value in found.items() if value and value.casefold() not in _NO_NAME}


def iso_date(written: str) -> str:
    """A PDF date (`D:20240131120000+08'00'`) as ISO 8601, as exact as it is given; empty if it is none."""
    match = _DATE.match(written.strip())
    if match is None:
        return ""
    year, month, day, hour, minute, second, zulu, sign, zone_hour, zone_minute = match.groups()
    if not 1 <= int(month or 1) <= 12 or not 1 <= int(day or 1) <= 31 or int(hour or 0) > 23:
        return year
    date = "-".join(part for part in (year, month, day) if part)
    if hour is None or int(minute or 0) > 59 or int(second or 0) > 59:
        return date
    zone = "Z" if zulu else f"{sign}{zone_hour}:{zone_minute or '00'}" if sign else ""
    return f"{date}T{hour}:{minute or '00'}:{second or '00'}{zone}"


def folded(title: str) -> str:
    """A heading or bookmark in the form in which the two are compared: letters and digits only."""
    return _NOT_WORD.sub("", title.casefold())


def outline(document: Any) -> dict[str, int]:
    """Levels of the headings that the bookmarks name, by their folded text; 1 = top."""
    levels: dict[str, int] = {}
    try:
        for count, bookmark in enumerate(document.get_toc(max_depth=8)):
            if count >= _MAX_BOOKMARKS:
                break
            title = folded(bookmark.get_title())
            if title:
                levels.setdefault(title, bookmark.level + 1)
    except (pypdfium2.PdfiumError, UnicodeDecodeError, RecursionError):
        return levels
    return levels


def attachments(document: Any) -> list[tuple[str, bytes]]:
    """Name and content of each file attached to the document; no content where it cannot be read."""
    found: list[tuple[str, bytes]] = []
    for index in range(document.count_attachments()):
        name, content = "", b""
        with suppress(pypdfium2.PdfiumError, UnicodeDecodeError):
            attachment = document.get_attachment(index)
            name = str(attachment.get_name())
            content = bytes(attachment.get_data())
        found.append((name, content))
    return found
