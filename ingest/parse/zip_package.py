"""The one door to ZIP-based formats: members inflated under caps, XML parsed without types or entities.

Nothing is ever written to disk by a member's name, so absolute names and `..` can do no harm; they are only
keys. Sizes that an archive declares are checked first, then the bytes that really come out, while they come.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, BinaryIO

from core.errors import DocumentRejected
from ingest.parse.model import Limits

_CHUNK = 1 << 16
# A small member may inflate this far whatever its ratio: a sheet of equal cells packs a thousandfold.
_FREE_BYTES = 1 << 20
_LOCAL_HEADER_BYTES = 30
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the only ones that office and e-book formats allow
_ENTITY_MARKS = tuple(m for w in ("<!DOCTYPE", "<!ENTITY") for m in (w.encode(), w.encode("utf-16-le")))
_READ_ERRORS = (
    zipfile.BadZipFile,
    NotImplementedError,
    EOFError,
    OSError,
    OverflowError,
    ValueError,
    struct.error,
    zlib.error,
)


class MemberDamaged(DocumentRejected):
    """One member cannot be read; the rest of the package may be. Uncaught, the document is `corrupt`.

    Attributes:
        member: its name.
    """

    def __init__(self, member: str, detail: str) -> None:
        super().__init__("corrupt", detail)
        self.member = member


class ZipPackage:
    """A ZIP archive in memory whose members are read on demand."""

    def __init__(self, content: bytes, limits: Limits, kind: str) -> None:
        """Open the archive and check what it declares.

        Args:
            content: the whole file.
            limits: caps on members, inflated bytes of all reads together, and ratio per member.
            kind: what the file is, for messages: `DOCX file`.

        Raises:
            DocumentRejected: `corrupt`, `too_big` when a cap is passed, or `refused` when members overlap.
        """
        self._limits = limits
        self.kind = kind
        self._inflated = 0
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        except _READ_ERRORS as error:
            raise DocumentRejected("corrupt", f"The {kind} is not a readable ZIP archive.") from error
        listed = self._archive.infolist()
        if len(listed) > limits.max_members:
            raise DocumentRejected(
                "too_big", f"The file has {len(listed):,} members; the cap is {limits.max_members:,}."
            )
        self._members = {_key(m.filename): m for m in listed if m.filename and not m.is_dir()}
        declared = sum(m.file_size for m in self._members.values())
        if declared > limits.max_inflated_bytes:
            raise self._bomb(declared)
        self._refuse_overlap(listed)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all members, without a leading slash, in the archive's order."""
        return tuple(self._members)

    def __contains__(self, name: str) -> bool:
        """Whether there is such a member."""
        return _key(name) in self._members

    def size(self, name: str) -> int:
        """Inflated bytes that a member declares; 0 when there is none."""
        member = self._members.get(_key(name))
        return member.file_size if member else 0

    def read(self, name: str) -> bytes:
        """Return a member's bytes.

        Raises:
            MemberDamaged: it is missing, or its bytes are broken.
            DocumentRejected: `too_big` past a cap, or `encrypted`.
        """
        parts: list[bytes] = []
        with self.open(name) as stream:
            while part := stream.read(_CHUNK):
                parts.append(part)
        return b"".join(parts)

    @contextmanager
    def open(self, name: str) -> Generator[BinaryIO]:
        """Give a member as a stream that keeps the caps, for parts too large to hold.

        Raises:
            MemberDamaged, DocumentRejected: as `read`, from here or from the stream's `read`.
        """
        member = self._members.get(_key(name))
        if member is None:
            raise MemberDamaged(name, f"{name} is missing in the {self.kind}.")
        if member.flag_bits & 1:
            raise DocumentRejected(
                "encrypted", f"The {self.kind} is encrypted; upload it without a password."
            )
        if member.compress_type not in _METHODS:
            raise self.damaged(member)
        try:
            raw = self._archive.open(member)
        except (*_READ_ERRORS, RuntimeError) as error:
            raise self.damaged(member) from error
        with raw:
            yield io.BufferedReader(_Capped(raw, member, self), _CHUNK)

    def xml(self, name: str, *, allow_doctype: bool = False) -> Any | None:
        """Parsed root of a member; None when there is no such member.

        Raises:
            MemberDamaged, DocumentRejected: as `read` and `safe_xml`.
        """
        if name not in self:
            return None
        return self.parse(self.read(name), name, allow_doctype=allow_doctype)

    def parse(self, content: bytes, name: str, *, allow_doctype: bool = False) -> Any:
        """Parse bytes that came from the member `name`; its name stands in the messages."""
        try:
            return safe_xml(content, self.kind, allow_doctype=allow_doctype)
        except ValueError as error:
            raise MemberDamaged(name, f"{name} in the {self.kind} is not well-formed XML.") from error

    def count(self, member: zipfile.ZipInfo, so_far: int, fresh: int) -> None:
        """Book inflated bytes of a member that is being read.

        Raises:
            DocumentRejected: `too_big`.
        """
        self._inflated += fresh
        ratio_room = max(_FREE_BYTES, int(member.compress_size * self._limits.max_inflation_ratio))
        if self._inflated > self._limits.max_inflated_bytes or so_far > ratio_room:
            raise self._bomb(max(so_far, self._inflated))

    def damaged(self, member: zipfile.ZipInfo) -> MemberDamaged:
        """The error for a member whose bytes are broken."""
        return MemberDamaged(member.filename, f"{member.filename} in the {self.kind} is damaged.")

    def _bomb(self, size: int) -> DocumentRejected:
        return DocumentRejected(
            "too_big", f"The file inflates past the cap (at {size:,} bytes); it may be a decompression bomb."
        )

    def _refuse_overlap(self, listed: list[zipfile.ZipInfo]) -> None:
        """Members that share stored bytes exist only in bombs (one kernel quoted by thousands of headers)."""
        end = -1
        for member in sorted(listed, key=lambda m: m.header_offset):
            if member.header_offset < end:
                raise DocumentRejected(
                    "refused",
                    f"Members of the {self.kind} overlap, as in a decompression bomb; save it anew.",
                )
            end = member.header_offset + _LOCAL_HEADER_BYTES + member.compress_size


class _Capped(io.RawIOBase):
    """A member's bytes, booked with the package as they come."""

    def __init__(self, raw: Any, member: zipfile.ZipInfo, package: ZipPackage) -> None:
        self._raw = raw
        self._member = member
        self._package = package
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            part = self._raw.read(len(buffer))
        except _READ_ERRORS as error:
            raise self._package.damaged(self._member) from error
        self._size += len(part)
        self._package.count(self._member, self._size, len(part))
        buffer[: len(part)] = part
        return len(part)


def _key(name: str) -> str:
    return name.replace("\\", "/").lstrip("/")


def xml_parser() -> Any:
    """An lxml parser that loads no type, expands no entity, fetches nothing and bounds depth and texts."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
    )


def safe_xml(content: bytes, kind: str = "file", *, allow_doctype: bool = False) -> Any:
    """Parse XML that nobody vouches for.

    Depth is bounded at 256 elements and one text at 10 MB (libxml2's own caps).

    Args:
        content: the whole XML text, in any encoding that it declares.
        kind: what the file is, for messages.
        allow_doctype: take a document type without a subset of its own (XHTML and NCX name one); it is
            never loaded.

    Returns:
        The root element; comments are left out.

    Raises:
        ValueError: not well-formed.
        DocumentRejected: `refused`, when it declares a type or entities.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

    # A type can only stand before the root. What the look misses, the parsed document's own record shows.
    if not allow_doctype and any(mark in content[: 1 << 12].upper() for mark in _ENTITY_MARKS):
        raise _declares_entities(kind)
    try:
        root = etree.fromstring(content, xml_parser())
    except (etree.XMLSyntaxError, UnicodeError) as error:
        raise ValueError(str(error)) from error
    internal = root.getroottree().docinfo.internalDTD
    if internal is not None and (not allow_doctype or next(iter(internal.iterentities()), None) is not None):
        raise _declares_entities(kind)
    return root


def _declares_entities(kind: str) -> DocumentRejected:
    return DocumentRejected("refused", f"The {kind} declares XML entities, which no such program writes.")
