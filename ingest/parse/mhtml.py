"""A web page saved as one file (MHTML): its root page, read as HTML."""

from __future__ import annotations

from dataclasses import replace
from email.message import Message

from core.errors import DocumentRejected
from ingest.parse import mail_headers as headers
from ingest.parse.eml import message_of
from ingest.parse.formats import HTML, MHTML
from ingest.parse.html import declared_encoding, parse_html
from ingest.parse.mail_body import payload_of
from ingest.parse.model import ParsedDocument, ParseOptions


def parse_mhtml(content: bytes, options: ParseOptions, media_type: str = MHTML) -> ParsedDocument:
    """Read the page; pictures, style sheets and frames of the package are left out.

    Raises:
        DocumentRejected: `corrupt` when there is no page in it; else as `parse_html`.
    """
    message = message_of(content)
    pages = [p for p in message.walk() if p.get_content_type() in ("text/html", "application/xhtml+xml")]
    if not pages:
        raise DocumentRejected(
            "corrupt", "The saved page holds no HTML part; save it again from the browser."
        )
    page = _root(message, pages)
    data = payload_of(page)
    charset = headers.parameter(page, "content-type", "charset") or declared_encoding(data)
    decoded = headers.decode_as(data, charset)
    parsed = parse_html(decoded.text.encode("utf-8", "replace"), options, HTML)
    return replace(
        parsed,
        media_type=media_type,
        title=parsed.title or headers.field(message, "subject"),
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        warnings=(*decoded.warnings, *parsed.warnings),
    )


def _root(message: Message, pages: list[Message]) -> Message:
    start = headers.parameter(message, "content-type", "start")
    place = headers.field(message, "snapshot-content-location")
    for page in pages:
        if start and headers.field(page, "content-id") == start:
            return page
        if place and headers.field(page, "content-location") == place:
            return page
    return pages[0]
