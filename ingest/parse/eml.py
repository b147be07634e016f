"""E-mail: a block of headers, the text that people read, attachments as parts of their own."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Callable
from dataclasses import replace
from email.message import Message

import regex

from core.errors import DocumentRejected
from ingest.parse import mail_headers as headers
from ingest.parse.dates import iso_date
from ingest.parse.formats import EML
from ingest.parse.mail_body import Body, children_of, payload_of
from ingest.parse.members import Parts
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions

# A mailbox in one file: a separator line after a blank one, and a header field after it.
_NEXT_MESSAGE = regex.compile(rb"(?<=\n\r?\n)(?=From [^\r\n]{1,400}\r?\n[A-Za-z-]{1,76}:)")
_SHOWN = (("from", "From"), ("to", "To"), ("cc", "Cc"))


def parse_eml(content: bytes, options: ParseOptions, media_type: str = EML) -> ParsedDocument:
    """Read a message, or a mailbox of several.

    Of alternatives the plain text is taken unless it is empty or says much less than the HTML. Quoted text
    stays under a heading that names its author. Pictures inside the text are left out; attachments and
    forwarded messages are read as parts with their own names.

    Raises:
        DocumentRejected: `corrupt`, `too_big`, or `encrypted` when nothing else is in it.
    """
    several = _NEXT_MESSAGE.split(content) if content.startswith(b"From ") else [content]
    if len(several) == 1:
        return replace(parse_message(message_of(content), options), media_type=media_type)
    parts = Parts(options)
    for number, one in enumerate(several, 1):
        message = message_of(one)
        name = headers.field(message, "subject") or f"Message {number}"
        parts.attach_parsed(_reader(message), len(one), name, level=1)
    return ParsedDocument(
        media_type, tuple(parts.blocks), warnings=tuple(parts.warnings), partial=parts.partial
    )


def message_of(content: bytes) -> Message:
    """The message as a tree of parts.

    Raises:
        DocumentRejected: `corrupt`, when its parts are nested past all reason.
    """
    try:
        return email.message_from_bytes(content, policy=email.policy.compat32)
    except (RecursionError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise DocumentRejected(
            "corrupt", "The message's parts cannot be told apart; save it again as .eml."
        ) from error


def parse_message(message: Message, options: ParseOptions) -> ParsedDocument:
    """Read a message that is parsed already; see `parse_eml`."""
    parts = Parts(options)
    subject = headers.field(message, "subject")
    author = headers.sender(message)
    parts.add(_header_blocks(message, subject))
    body = Body(message, options, str(author))
    parts.add(_numbered(body.blocks), deeper=1)
    parts.warnings.extend(body.warnings)
    parts.partial = body.partial
    for part, name in body.attachments:
        _attach(parts, part, name)
    if body.encrypted and not body.blocks and not body.attachments:
        raise DocumentRejected(
            "encrypted", "The message is encrypted; save its decrypted text from your mail program."
        )
    properties = {"author": str(author), "created": iso_date(headers.field(message, "date"))}
    return ParsedDocument(
        EML,
        tuple(parts.blocks),
        title=subject,
        encoding=body.encoding,
        encoding_confidence=body.encoding_confidence,
        warnings=tuple(parts.warnings),
        partial=parts.partial,
        properties={name: value for name, value in properties.items() if value},
    )


def _header_blocks(message: Message, subject: str) -> list[Block]:
    blocks = [Block(BlockKind.HEADING, (Fragment(subject, ""),), 1)] if subject else []
    told = [(label, headers.address_list(message, name)) for name, label in _SHOWN]
    told.append(("Date", headers.field(message, "date")))
    blocks.extend(
        Block(BlockKind.PARAGRAPH, (Fragment(f"{label}: {value}", ""),)) for label, value in told if value
    )
    return blocks


def _numbered(blocks: list[Block]) -> list[Block]:
    return [replace(block, paragraph=number) for number, block in enumerate(blocks)]


def _attach(parts: Parts, part: Message, name: str) -> None:
    if part.get_content_maintype() != "message":
        parts.attach(payload_of(part), name, part.get_content_type())
        return
    inner = children_of(part)
    if not inner or not inner[0].keys():  # not parsed: it was sent as base64
        parts.attach(payload_of(part), name or "Forwarded message.eml", EML)
        return
    subject = headers.field(inner[0], "subject")
    parts.attach_parsed(_reader(inner[0]), 0, name or subject or "Forwarded message")


def _reader(message: Message) -> Callable[[ParseOptions], ParsedDocument]:
    def read(options: ParseOptions) -> ParsedDocument:
        return parse_message(message, options)

    return read
