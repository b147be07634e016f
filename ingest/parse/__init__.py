"""Bytes → blocks; one file per format."""

from __future__ import annotations

from core.errors import DocumentRejected
from ingest.parse.model import Limits, ParsedDocument
from ingest.parse.sniff import DOCX, HTML, MARKDOWN, PDF, sniff


def parse_bytes(
    content: bytes, file_name: str, declared_type: str = "", limits: Limits | None = None
) -> ParsedDocument:
    """Read a document.

    Parsers of untrusted bytes run here in the calling process; `ingest.sandbox` runs this function in one
    that can be killed.

    Args:
        content: the whole file.
        file_name: as the client named it; a hint, never a path.
        declared_type: the client's media type; a weaker hint.
        limits: caps; the defaults when omitted.

    Raises:
        DocumentRejected: with the reason `empty`, `unsupported_format`, `type_mismatch`, `encrypted`,
            `corrupt`, `no_text`, `encoding` or `too_big`, and a sentence on what to do.
    """
    limits = limits or Limits()
    media_type, corrections = sniff(content, file_name, declared_type)
    parsed = _parser_output(content, media_type, limits)
    if corrections:
        from dataclasses import replace

        parsed = replace(parsed, warnings=(*corrections, *parsed.warnings))
    if not parsed.blocks:
        raise DocumentRejected("empty", "The document holds no text; upload one with content.")
    return parsed


def _parser_output(content: bytes, media_type: str, limits: Limits) -> ParsedDocument:
    # Imports are local so that a process which reads only text loads neither pdfium nor lxml.
    if media_type == PDF:
        from ingest.parse.pdf import parse_pdf

        return parse_pdf(content, limits)
    if media_type == DOCX:
        from ingest.parse.docx import parse_docx

        return parse_docx(content, limits)
    if media_type == HTML:
        from ingest.parse.html import parse_html

        return parse_html(content, limits)
    if media_type == MARKDOWN:
        from ingest.parse.markdown import parse_markdown

        return parse_markdown(content, limits)
    from ingest.parse import delimited, json_text
    from ingest.parse.text import parse_text

    if media_type in delimited.TYPES:
        return delimited.parse_delimited(content, limits, media_type)
    if media_type in json_text.TYPES:
        return json_text.parse_json(content, limits, media_type)

    return parse_text(content, limits, media_type)
