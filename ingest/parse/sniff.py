"""What a file is: from its bytes first; the name and the declared type only decide between text formats."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NoReturn

from core.errors import DocumentRejected
from ingest.parse.formats import (
    BINARY,
    BY_SUFFIX,
    CSV,
    DOCX,
    EML,
    EPUB,
    FOREIGN_SUFFIXES,
    FORMATS,
    HTML,
    MARKDOWN,
    MHTML,
    ODS,
    ODT,
    PDF,
    PPTX,
    RST,
    TEXT,
    TSV,
    XLSX,
    XML,
    family_of,
    of_declared,
    refuse,
)
from ingest.parse.magic import binary_type
from ingest.parse.model import ParseWarning
from ingest.parse.text_kinds import (
    begins_as_message,
    evident_type,
    guessed_type,
    is_fragment,
    is_tab_table,
    text_head,
)

__all__ = ["DOCX", "EPUB", "HTML", "MARKDOWN", "ODS", "ODT", "PDF", "PPTX", "TEXT", "XLSX", "sniff"]

_Sniffed = tuple[str, tuple[ParseWarning, ...]]
# Programs save these as .doc and .xls, knowingly, and open them so.
_UNDER_OLD_OFFICE_NAMES = frozenset({HTML, MHTML, XML, CSV, TSV})


def sniff(content: bytes, file_name: str, declared_type: str = "") -> _Sniffed:
    """Return the media type of `content`, and warnings where the name had to be corrected.

    Raises:
        DocumentRejected: nothing in it (`empty`), a format that is not read (`unsupported_format`), content
            and name contradict each other (`type_mismatch`), a damaged package (`corrupt`), or an encrypted
            Office file (`encrypted`).
    """
    if not content:
        raise DocumentRejected("empty", "The file holds 0 bytes; upload one with content.")
    suffix = PurePosixPath(file_name.replace("\\", "/")).suffix.lower()
    named = BY_SUFFIX.get(suffix)
    binary = binary_type(content, suffix)
    if binary is not None:
        return _as_binary(binary, named, suffix, of_declared(declared_type))
    head = text_head(content)
    if head is None:
        _refuse_noise(named, suffix)
    if named in BINARY or suffix in FOREIGN_SUFFIXES:
        return _text_under_binary_name(head, named, suffix)
    if named is None:
        named = of_declared(declared_type)
        named = None if named in BINARY else named
    return _as_text(content, head, named, suffix)


def _as_binary(found: str, named: str | None, suffix: str, declared: str | None) -> _Sniffed:
    if named == found:
        return found, ()
    if named is None and suffix not in FOREIGN_SUFFIXES:
        contradicted = declared is not None and declared != found
        return found, (_corrected(found, f"declared as {declared}"),) if contradicted else ()
    if FORMATS[found].family and FORMATS[found].family == family_of(named, suffix):
        return found, (_corrected(found, f"named {suffix}"),)
    _refuse_mismatch(found, suffix)


def _text_under_binary_name(head: str, named: str | None, suffix: str) -> _Sniffed:
    found = evident_type(head) or (TSV if is_tab_table(head) else None)
    if named is None and found in _UNDER_OLD_OFFICE_NAMES and FOREIGN_SUFFIXES[suffix]:
        return found, (_corrected(found, f"named {suffix}"),)
    _refuse_mismatch(found or TEXT, suffix)


def _as_text(content: bytes, head: str, named: str | None, suffix: str) -> _Sniffed:
    found = evident_type(head)
    if found is None and named in (None, TEXT) and is_fragment(head):
        found = HTML
    if found is not None:
        return _evident(found, named, suffix)
    if named == EML and not begins_as_message(head):
        return TEXT, (_corrected(TEXT, "named .eml but without a message header"),)
    if named is None:
        return guessed_type(content, head), ()
    if named == TEXT and is_tab_table(head):
        return TSV, ()
    return named, ()


def _evident(found: str, named: str | None, suffix: str) -> _Sniffed:
    """What the first bytes say outweighs the name; where the two are one thing, nobody needs to know."""
    same = named is None or named == found
    same = same or (named == XML and found != MHTML) or (named == EML and found == MHTML)
    same = same or (FORMATS[found].family != "" and FORMATS[found].family == family_of(named, suffix))
    if same:
        return found, ()
    if named in (MARKDOWN, RST) and found not in (HTML, MHTML):
        return named, ()  # prose about such files quotes them
    return found, (_corrected(found, f"named {suffix or 'or declared otherwise'}"),)


def _corrected(found: str, given: str) -> ParseWarning:
    what = FORMATS[found].what
    return ParseWarning("type_corrected", f"The file was {given} and is {what}; it was read as that.")


def _refuse_mismatch(found: str, suffix: str) -> NoReturn:
    right = FORMATS[found].suffixes[0]
    raise DocumentRejected(
        "type_mismatch",
        f"The name says {suffix}, the content is {FORMATS[found].what}. If that is what you meant to upload, "
        f"rename it to {right} and upload it again.",
    )


def _refuse_noise(named: str | None, suffix: str) -> NoReturn:
    if named in BINARY:
        raise DocumentRejected(
            "corrupt",
            f"The file is named {suffix} but does not begin as one; it is damaged or something else. "
            "Upload it again from the original.",
        )
    refuse("binary and of no known kind", "", suffix)
