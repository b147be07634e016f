"""Header fields of messages as people read them, whatever a mail program made of them.

The standard library's structured header parser raises on hostile fields and gives up on bytes that are not
ASCII, which Chinese mail programs write all the time; so fields are taken raw and decoded here.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from email.message import Message
from email.utils import getaddresses, parseaddr

import regex

from core.errors import DocumentRejected
from ingest.parse.charset import Decoded, decode

_FIELD_MAX = 20_000
_ADDRESSES_SHOWN = 20
_WORD = regex.compile(r"=\?([^?\s*]{1,40})(?:\*[^?]*+)?\?([bBqQ])\?([^?]*+)\?=")
_FOLD = regex.compile(r"\r?\n[ \t]*|[\r\n]+")
_SURROGATE = regex.compile(r"[\udc80-\udcff]")
# Their bytes are all ASCII, so they must be tried as declared or not at all.
_STATEFUL = ("iso-2022", "iso2022", "hz", "utf-7", "utf7")
_WESTERN = frozenset(
    ("ascii", "us-ascii", "iso-8859-1", "iso8859-1", "latin1", "latin-1", "windows-1252", "cp1252")
)
_MANY = 0.1
# The library's address parser calls itself for each open bracket.
_ADDRESS_ERRORS = (ValueError, IndexError, TypeError, RecursionError)


def field(message: Message, name: str) -> str:
    """The first field of that name, decoded, on one line; empty when there is none."""
    return decoded_words(_raw(message, name))


def fields(message: Message, name: str) -> list[str]:
    """All fields of that name, decoded."""
    return [decoded_words(v[:_FIELD_MAX]) for n, v in _items(message) if n.lower() == name.lower()]


def parameter(message: Message, header: str, name: str) -> str:
    """A parameter of a field (`charset`, `filename`), in RFC 2231, RFC 2047 or bare bytes; empty without."""
    value = _raw(message, header)
    if not value:
        return ""
    alone = Message()
    alone[header] = _from_bytes(value)
    try:
        found = alone.get_param(name, header=header)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError):
        return ""  # the library's parser trips over some hostile fields
    if isinstance(found, tuple):
        charset, _, text = found
        return _as_text(text.encode("latin-1", "replace"), charset or None)
    return decoded_words(found) if isinstance(found, str) else ""


def file_name(part: Message) -> str:
    """The name that a part gives its file; empty when it gives none."""
    return parameter(part, "content-disposition", "filename") or parameter(part, "content-type", "name")


def disposition(part: Message) -> str:
    """`attachment`, `inline` or empty."""
    return _raw(part, "content-disposition").split(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class Address:
    """Who a message is from: the display name, and the address in angle brackets."""

    name: str
    address: str

    def __str__(self) -> str:
        """The name, or the address when there is none."""
        return self.name or self.address


def sender(message: Message) -> Address:
    """The first author."""
    try:
        return Address(*parseaddr(field(message, "from")))
    except _ADDRESS_ERRORS:
        return Address("", "")


def address_list(message: Message, name: str) -> str:
    """Addresses of a field for people; a long list is cut."""
    told = ", ".join(v for v in fields(message, name) if v)[:_FIELD_MAX]
    try:
        found = [f"{n} <{a}>" if n else a for n, a in getaddresses([told]) if n or a]
    except _ADDRESS_ERRORS:
        return told
    if len(found) <= _ADDRESSES_SHOWN:
        return ", ".join(found) or told
    return f"{', '.join(found[:_ADDRESSES_SHOWN])} and {len(found) - _ADDRESSES_SHOWN} more"


def decoded_words(raw: str) -> str:
    """Decode RFC 2047 words and bare bytes.

    Words that follow each other in one charset are joined before decoding: programs cut them anywhere, also
    inside a character.
    """
    text = _FOLD.sub(" ", _from_bytes(raw))
    out: list[str] = []
    pending: list[bytes] = []
    charset = ""
    at = 0
    for word in _WORD.finditer(text):
        between = text[at : word.start()]
        data = _word_bytes(word.group(2), word.group(3))
        if data is None:
            continue
        if between.strip() or (pending and word.group(1).lower() != charset):
            out.append(_as_text(b"".join(pending), charset))
            pending = []
        if between.strip() or not at:
            out.append(between)
        pending.append(data)
        charset = word.group(1).lower()
        at = word.end()
    out.extend((_as_text(b"".join(pending), charset), text[at:]))
    return " ".join("".join(out).split())


def decode_as(data: bytes, charset: str | None) -> Decoded:
    """Decode bytes that a message says to be in `charset`, which may be a lie.

    Raises:
        DocumentRejected: `encoding`.
    """
    label = (charset or "").strip().lower()
    if label.startswith(_STATEFUL):
        try:
            return Decoded(data.decode(label), label, 0.95)
        except (UnicodeDecodeError, LookupError):
            return decode(data)
    high = sum(b > 0x7F for b in data[: 1 << 16])
    if label in _WESTERN and high > _MANY * min(len(data), 1 << 16):
        label = ""  # what older programs write above any text at all
    return decode(data, label or None)


def _as_text(data: bytes, charset: str | None) -> str:
    if not data:
        return ""
    try:
        return decode_as(data, charset).text
    except DocumentRejected:
        return data.decode("utf-8", "replace")


def _from_bytes(raw: str) -> str:
    if not _SURROGATE.search(raw):
        return raw
    return _as_text(raw.encode("utf-8", "surrogateescape"), None)


def _raw(message: Message, name: str) -> str:
    return next((v[:_FIELD_MAX] for n, v in _items(message) if n.lower() == name.lower()), "")


def _items(message: Message) -> list[tuple[str, str]]:
    return [(str(name), str(value)) for name, value in message.raw_items()]


def _word_bytes(kind: str, payload: str) -> bytes | None:
    raw = payload.encode("utf-8", "replace")
    try:
        if kind in "qQ":
            return binascii.a2b_qp(raw, header=True)
        letters = regex.sub(rb"[^A-Za-z0-9+/]", b"", raw)
        if len(letters) % 4 == 1:
            letters = letters[:-1]
        return base64.b64decode(letters + b"=" * (-len(letters) % 4))
    except (binascii.Error, ValueError):
        return None
