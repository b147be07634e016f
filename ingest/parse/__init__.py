"""Bytes → blocks; one file per format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from core.errors import DocumentRejected
from ingest.parse import formats
from ingest.parse.formats import (
    ATOM,
    DOCX,
    EML,
    EPUB,
    HTML,
    MARKDOWN,
    MHTML,
    PDF,
    RSS,
    SRT,
    TEXT,
    VTT,
    XML,
)
from ingest.parse.model import ParsedDocument, ParseOptions
from ingest.parse.sniff import sniff

Parser = Callable[[bytes, ParseOptions, str], ParsedDocument]
"""A format's door: content, options and the sniffed media type in; blocks out."""

# By name, so that a process which reads only text loads neither pdfium nor lxml.
_PARSERS: dict[str, tuple[str, str]] = {
    PDF: ("pdf", "parse_pdf"),
    DOCX: ("docx", "parse_docx"),
    formats.XLSX: ("xlsx", "parse_xlsx"),
    formats.PPTX: ("pptx", "parse_pptx"),
    formats.ODT: ("odt", "parse_odt"),
    formats.ODS: ("ods", "parse_ods"),
    HTML: ("html", "parse_html"),
    MARKDOWN: ("markdown", "parse_markdown"),
    EPUB: ("epub", "parse_epub"),
    EML: ("eml", "parse_eml"),
    MHTML: ("mhtml", "parse_mhtml"),
    SRT: ("subtitles", "parse_subtitles"),
    VTT: ("subtitles", "parse_subtitles"),
    RSS: ("feed", "parse_feed"),
    ATOM: ("feed", "parse_feed"),
    XML: ("xml_text", "parse_xml"),
    formats.CSV: ("delimited", "parse_delimited"),
    formats.TSV: ("delimited", "parse_delimited"),
    formats.JSON: ("json_text", "parse_json"),
    formats.JSONL: ("json_text", "parse_json"),
    TEXT: ("text", "parse_text"),
    formats.RST: ("text", "parse_text"),
    **dict.fromkeys(formats.IMAGES, ("image", "parse_image")),
}


def parse_bytes(
    content: bytes, file_name: str, declared_type: str = "", options: ParseOptions | None = None
) -> ParsedDocument:
    """Read a document.

    Parsers of untrusted bytes run here in the calling process; `ingest.sandbox` runs this function in one
    that can be killed.

    Args:
        content: the whole file.
        file_name: as the client named it; a hint, never a path.
        declared_type: the client's media type; a weaker hint.
        options: caps and choices; the defaults when omitted.

    Raises:
        DocumentRejected: with the reason `empty`, `unsupported_format`, `type_mismatch`, `encrypted`,
            `corrupt`, `no_text`, `encoding`, `refused` or `too_big`, and a sentence on what to do.
    """
    media_type, corrections = sniff(content, file_name, declared_type)
    parsed = parser_of(media_type)(content, options or ParseOptions(), media_type)
    if corrections:
        parsed = replace(parsed, warnings=(*corrections, *parsed.warnings))
    if not parsed.blocks:
        raise DocumentRejected("empty", "The document holds no text; upload one with content.")
    return parsed


def parser_of(media_type: str) -> Parser:
    """The parser of a media type that `sniff` gives."""
    module, function = _PARSERS[media_type]
    return getattr(import_module(f"ingest.parse.{module}"), function)
