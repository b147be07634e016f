"""Which parts of a message are its text, which are attachments, and which are neither."""

from __future__ import annotations

import binascii
from collections.abc import Iterable
from email.message import Message

import regex

from core.errors import DocumentRejected
from ingest.parse import mail_headers as headers
from ingest.parse.calendar_text import calendar_blocks
from ingest.parse.formats import FORMATS, HTML, of_declared
from ingest.parse.html import blocks_of_fragment
from ingest.parse.mail_text import (
    is_encrypted_text,
    plain_blocks,
    unplaced,
    with_attributions,
    with_quotes_marked,
)
from ingest.parse.model import Block, ParseOptions, ParseWarning
from ingest.parse.text_kinds import evident_type, is_fragment

_MAX_NESTING = 30
_SIGNATURES = frozenset(
    {
        "application/pkcs7-signature",
        "application/x-pkcs7-signature",
        "application/pgp-signature",
        "application/pgp-keys",
        "application/pgp-encrypted",
        "text/x-amp-html",
        "text/rfc822-headers",
        "message/delivery-status",
        "message/disposition-notification",
        "message/feedback-report",
    }
)
_ENCRYPTED_TYPES = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
# A plain text that says less than this share of the HTML beside it is a notice, not the message.
_MIN_SHARE = 0.5
_VISIBLE = regex.compile(r"[\p{L}\p{N}]")


class Body:
    """The text of a message in reading order, and what it carries.

    Attributes:
        blocks: headings, paragraphs, lists and tables of the text; none from attachments.
        attachments: parts that are files or messages of their own, with their names.
        warnings: what a person should know.
        partial: something could not be read.
        encrypted: some part is.
        encoding, encoding_confidence: of the first text, as decoded.
    """

    def __init__(self, message: Message, options: ParseOptions, author: str) -> None:
        self.blocks: list[Block] = []
        self.attachments: list[tuple[Message, str]] = []
        self.warnings: list[ParseWarning] = []
        self.partial = False
        self.encrypted = False
        self.encoding: str | None = None
        self.encoding_confidence: float | None = None
        self._options = options
        self._author = author
        self._walk(message, 0)

    def _walk(self, part: Message, nesting: int, *, files_only: bool = False) -> None:
        kind = part.get_content_type()
        if nesting > _MAX_NESTING:
            self._warn("part_unreadable", "Parts nested too deep were left out.")
        elif part.get_content_maintype() == "multipart" and part.is_multipart():
            self._multipart(part, nesting + 1, files_only)
        elif kind in _SIGNATURES:
            return
        elif kind in _ENCRYPTED_TYPES:
            self._sealed(part)
        elif kind in ("text/plain", "text/html") and not _is_file(part):
            if not files_only:
                self._text(part, kind)
        elif part.get_content_maintype() == "multipart":
            self._text(part, "text/plain")  # no part was found in it
        elif kind in ("text/calendar", "application/ics"):
            self._calendar(part)
        elif not _is_inside_text(part):
            name = headers.file_name(part)
            self.attachments.append((part, name or _name_for(part, len(self.attachments) + 1)))

    def _multipart(self, part: Message, nesting: int, files_only: bool) -> None:
        children = children_of(part)
        kind = part.get_content_subtype()
        if kind == "encrypted":
            self._seal("An encrypted part was left out; save the decrypted text from your mail program.")
        elif kind == "alternative":
            self._alternative(children, nesting, files_only)
        else:
            for child in children:
                self._walk(child, nesting, files_only=files_only)

    def _alternative(self, children: list[Message], nesting: int, files_only: bool) -> None:
        """One of several forms of the same text; files inside the others are kept."""
        plain = [c for c in children if c.get_content_type() == "text/plain" and not _is_file(c)]
        rich = [c for c in children if c.get_content_type() == "text/html" or c.is_multipart()]
        shown = rich[-1:] if not plain or (rich and self._says_less(plain, rich[-1])) else plain
        for child in children:
            other = child not in shown and (child in plain or child in rich)
            self._walk(child, nesting, files_only=files_only or other)

    def _says_less(self, plain: list[Message], rich: Message) -> bool:
        text = "\n".join(self._decoded(p, note=False) for p in plain)
        said = len(_VISIBLE.findall(text))
        pages = [p for p in rich.walk() if p.get_content_type() == "text/html" and not _is_file(p)]
        shown = sum(_visible(blocks_of_fragment(self._decoded(p, note=False))[0]) for p in pages)
        return shown > 0 and (said < _MIN_SHARE * shown or _is_markup(text.lstrip()[:4096]))

    def _text(self, part: Message, kind: str) -> None:
        text = self._decoded(part)
        if kind == "text/html":
            marked = with_quotes_marked(text, self._author)
            found, told = blocks_of_fragment(marked, keep_hidden=self._options.keep_hidden)
            self.warnings.extend(told)
            self.blocks.extend(with_attributions(unplaced(found)))
        elif is_encrypted_text(text):
            self._seal("An encrypted text was left out; save the decrypted text from your mail program.")
        else:
            flowed = headers.parameter(part, "content-type", "format").lower() == "flowed"
            self.blocks.extend(plain_blocks(text, self._options, self._author, flowed=flowed))

    def _calendar(self, part: Message) -> None:
        """An invitation; programs send it twice, as a form of the text and as a file."""
        found = calendar_blocks(self._decoded(part, note=False), description=not self.blocks)
        known = {block.text for block in self.blocks}
        self.blocks.extend(block for block in found if block.text not in known)

    def _decoded(self, part: Message, *, note: bool = True) -> str:
        data = payload_of(part)
        try:
            decoded = headers.decode_as(data, headers.parameter(part, "content-type", "charset"))
        except DocumentRejected as error:
            if note:
                self._warn("part_unreadable", f"A text of the message was left out: {error.detail}")
            return ""
        if note and self.encoding is None and data.strip():
            self.encoding, self.encoding_confidence = decoded.encoding, decoded.confidence
            self.warnings.extend(decoded.warnings)
        return decoded.text

    def _sealed(self, part: Message) -> None:
        kind = headers.parameter(part, "content-type", "smime-type").lower()
        if kind == "signed-data":
            self._warn("part_unreadable", "A signed part is packed so that only mail programs read it.")
        else:
            self._seal("An encrypted part was left out; save the decrypted text from your mail program.")

    def _seal(self, detail: str) -> None:
        self.encrypted = True
        self._warn("encrypted_part", detail)

    def _warn(self, code: str, detail: str) -> None:
        self.partial = True
        if (warning := ParseWarning(code, detail)) not in self.warnings:
            self.warnings.append(warning)


def children_of(part: Message) -> list[Message]:
    """The parts directly inside."""
    inner = part.get_payload()
    return [c for c in inner if isinstance(c, Message)] if isinstance(inner, list) else []


def payload_of(part: Message) -> bytes:
    """The bytes of a part, transfer encoding undone as far as it goes."""
    if part.get_content_maintype() == "message" and part.is_multipart():
        inner = children_of(part)  # the library has parsed it, also where it was wrongly sent as base64
        return payload_of(inner[0]) if inner else b""
    try:
        found = part.get_payload(decode=True)
    except (ValueError, LookupError, binascii.Error, TypeError, AttributeError):
        found = None
    return found if isinstance(found, bytes) else b""


def _is_markup(head: str) -> bool:
    return is_fragment(head) or evident_type(head) == HTML


def _is_file(part: Message) -> bool:
    return headers.disposition(part) == "attachment" or bool(headers.file_name(part))


def _is_inside_text(part: Message) -> bool:
    """A picture that the text shows: letterheads, signatures, smileys."""
    if part.get_content_maintype() not in ("image", "font", "audio", "video"):
        return False
    return headers.disposition(part) != "attachment" and (
        bool(headers.field(part, "content-id")) or not headers.file_name(part)
    )


def _name_for(part: Message, number: int) -> str:
    if part.get_content_maintype() == "message":
        return ""
    known = FORMATS.get(of_declared(part.get_content_type()) or "")
    return f"attachment {number}{known.suffixes[0] if known else ''}"


def _visible(blocks: Iterable[Block]) -> int:
    return sum(len(_VISIBLE.findall(block.text)) for block in blocks)
