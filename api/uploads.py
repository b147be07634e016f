"""A multipart upload read once, straight to the blob store's staging area.

The framework would spool the whole body before the handler runs and the store would copy it again;
here each chunk goes to its final disk as it arrives, and every cap is checked on the way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import python_multipart as multipart
from anyio.to_thread import run_sync
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import Request

from core.errors import InvalidInput, TooLarge, UnsupportedFormat
from ingest.service import BlobStore, BlobWriter, StagedBlob

MAX_FIELDS = 16
MAX_FIELD_BYTES = 16 * 1024
_MAX_HEADER_BYTES = 8 * 1024
_BATCH_BYTES = 1 << 20  # hashing and writing happen on a thread, in pieces worth the hop


@dataclass(slots=True)
class Upload:
    """One file, safely staged, and the text fields beside it."""

    blob: StagedBlob
    file_name: str
    declared_type: str
    fields: dict[str, str]


@dataclass(slots=True)
class _Part:
    disposition: bytes = b""
    content_type: bytes = b""
    name: str = ""
    file_name: str | None = None
    text: bytearray = field(default_factory=bytearray)


async def read_upload(request: Request, store: BlobStore, cap: int) -> Upload:
    """Read `multipart/form-data` with exactly one file part named `file`.

    Raises:
        UnsupportedFormat: another content type. TooLarge: a cap was passed; nothing stays on disk.
        InvalidInput: no file, two files, an empty file, too many fields. DiskFull: no space left.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise UnsupportedFormat("Send the file as multipart/form-data, in a part named `file`.")
    writer = await run_sync(store.writer, cap)
    try:
        form = _Form(options[b"boundary"])
        async for batch in form.read(request.stream()):
            await run_sync(writer.write, batch)
        if form.file is None:
            raise InvalidInput("The upload has no part named `file`.")
        blob = await run_sync(_finish, writer)
    except BaseException:
        writer.abort()  # not awaited: a cancelled request must clean up as well
        raise
    if blob.size_bytes == 0:
        blob.discard()
        raise InvalidInput("The file is empty (0 bytes).")
    name = form.file.file_name or ""
    return Upload(blob, name, form.file.content_type.decode("latin-1")[:120], form.fields)


def _finish(writer: BlobWriter) -> StagedBlob:
    return writer.finish()


class _Form:
    """State of one multipart body. Parser callbacks collect; `read` hands file bytes on in batches."""

    def __init__(self, boundary: bytes) -> None:
        self.fields: dict[str, str] = {}
        self.file: _Part | None = None
        self._part = _Part()
        self._header = (bytearray(), bytearray())
        self._header_bytes = 0
        self._pending = bytearray()
        callbacks: Any = {
            "on_part_begin": self._part_begin,
            "on_header_field": lambda b, s, e: self._add_header(0, b[s:e]),
            "on_header_value": lambda b, s, e: self._add_header(1, b[s:e]),
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": lambda b, s, e: self._data(b[s:e]),
            "on_part_end": self._part_end,
        }
        self._parser = multipart.MultipartParser(boundary, callbacks)
        self._ended = False
        self._parser.callbacks["on_end"] = self._end

    async def read(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Parse the body; yield the file's bytes as they come."""
        try:
            async for chunk in body:
                self._parser.write(chunk)
                if len(self._pending) >= _BATCH_BYTES:
                    yield self._take()
            self._parser.finalize()
        except FormParserError as error:
            raise HTTPException(400, f"The multipart body is malformed: {error}") from error
        if not self._ended:
            raise HTTPException(400, "The multipart body ends before its closing boundary.")
        if self._pending:
            yield self._take()

    def _take(self) -> bytes:
        taken, self._pending = bytes(self._pending), bytearray()
        return taken

    def _part_begin(self) -> None:
        self._part, self._header_bytes = _Part(), 0

    def _add_header(self, which: int, piece: bytes) -> None:
        self._header_bytes += len(piece)
        if self._header_bytes > _MAX_HEADER_BYTES:
            raise TooLarge(f"The headers of a part are larger than {_MAX_HEADER_BYTES} bytes.")
        self._header[which].extend(piece)

    def _header_end(self) -> None:
        name, value = (bytes(b) for b in self._header)
        self._header = (bytearray(), bytearray())
        if name.lower() == b"content-disposition":
            self._part.disposition = value
        elif name.lower() == b"content-type":
            self._part.content_type = value

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._part.disposition)
        self._part.name = _decode(options.get(b"name", b""))
        if b"filename" not in options:
            if len(self.fields) >= MAX_FIELDS:
                raise TooLarge(f"The form has more than {MAX_FIELDS} fields.")
            return
        if self._part.name != "file" or self.file is not None:
            raise InvalidInput("Send exactly one file, in a part named `file`.")
        self._part.file_name = _decode(options[b"filename"])
        self.file = self._part

    def _data(self, piece: bytes) -> None:
        if self._part.file_name is not None:
            self._pending += piece
            return
        if len(self._part.text) + len(piece) > MAX_FIELD_BYTES:
            raise TooLarge(f"The field `{self._part.name[:40]}` is larger than {MAX_FIELD_BYTES} bytes.")
        self._part.text += piece

    def _part_end(self) -> None:
        if self._part.file_name is None:
            self.fields[self._part.name] = _decode(bytes(self._part.text))

    def _end(self) -> None:
        self._ended = True


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
