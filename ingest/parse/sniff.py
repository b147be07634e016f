"""What a file is, from its bytes first; the name and the declared type only decide between text formats."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import PurePosixPath

from core.errors import DocumentRejected
from ingest.parse.model import ParseWarning

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
HTML = "text/html"
MARKDOWN = "text/markdown"
TEXT = "text/plain"

_BY_SUFFIX = {
    ".pdf": PDF,
    ".docx": DOCX,
    ".docm": DOCX,
    ".html": HTML,
    ".htm": HTML,
    ".xhtml": HTML,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".mdown": MARKDOWN,
    ".txt": TEXT,
    ".text": TEXT,
    ".log": TEXT,
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".xml": "application/xml",
    ".srt": "application/x-subrip",
    ".rst": "text/x-rst",
}
_BINARY_SUFFIXES = frozenset({".doc", ".xls", ".ppt", ".xlsx", ".pptx", ".epub", ".odt", ".zip"})
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_FOREIGN = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"BM", "a BMP image"),
    (b"RIFF", "an audio, video or WebP file"),
    (b"ID3", "an audio file"),
    (b"OggS", "an audio file"),
    (b"fLaC", "an audio file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript document"),
)
_PRINTABLE_MAGIC = frozenset({b"BM", b"MZ", b"ID3", b"BZh", b"RIFF", b"OggS", b"fLaC", b"GIF8", b"Rar!"})
_HTML_START = re.compile(
    rb"^\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html[\s>])", re.I | re.S
)
_TAKEN = "TXT, Markdown, HTML, CSV, JSON, PDF and DOCX are read"


def sniff(content: bytes, file_name: str, declared_type: str = "") -> tuple[str, tuple[ParseWarning, ...]]:
    """Return the media type of `content`, and warnings where the name had to be corrected.

    Raises:
        DocumentRejected: nothing in it (`empty`), a format that is not read (`unsupported_format`), content
            and name contradict each other (`type_mismatch`), or an encrypted Office file (`encrypted`).
    """
    if not content:
        raise DocumentRejected("empty", "The file holds 0 bytes.")
    suffix = PurePosixPath(file_name.replace("\\", "/")).suffix.lower()
    named = _BY_SUFFIX.get(suffix) or _of_declared(declared_type)
    binary = _binary_type(content)
    if binary is not None:
        return _checked_binary(binary, named, suffix)
    if named in (PDF, DOCX) or suffix in _BINARY_SUFFIXES:
        _reject_text_under_binary_name(content, named or suffix, suffix)
    _reject_noise(content)
    if _HTML_START.match(content[:4096].lstrip(b"\xef\xbb\xbf")):
        if named in (HTML, None):
            return HTML, ()
        if named == TEXT:
            return HTML, (
                ParseWarning("type_corrected", f"{suffix or 'The file'} holds HTML and was read so."),
            )
    return named or TEXT, ()


def _of_declared(declared_type: str) -> str | None:
    plain = declared_type.split(";")[0].strip().lower()
    plain = {"application/xhtml+xml": HTML, "text/x-markdown": MARKDOWN, "text/xml": "application/xml"}.get(
        plain, plain
    )
    return plain if plain in _BY_SUFFIX.values() else None


def _binary_type(content: bytes) -> str | None:
    if b"%PDF-" in content[:1024]:
        return PDF
    if content.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_type(content)
    if content.startswith(_OLE):
        if "EncryptedPackage".encode("utf-16-le") in content:
            raise DocumentRejected(
                "encrypted", "The Office file is protected by a password; upload it without."
            )
        raise DocumentRejected(
            "unsupported_format",
            f"Old binary Office files (.doc, .xls, .ppt) are not read; {_TAKEN}. Save as .docx.",
        )
    for magic, what in _FOREIGN:
        if content.startswith(magic) and (magic not in _PRINTABLE_MAGIC or _looks_binary(content)):
            raise DocumentRejected("unsupported_format", f"The file is {what}; {_TAKEN}.")
    return None


def _zip_type(content: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise DocumentRejected("corrupt", "The file begins as a ZIP archive but cannot be opened.") from error
    if "word/document.xml" in names or any(n.startswith("word/document") for n in names):
        return DOCX
    kind = "a spreadsheet" if any(n.startswith("xl/") for n in names) else "a ZIP archive"
    kind = "a presentation" if any(n.startswith("ppt/") for n in names) else kind
    kind = "an e-book" if "META-INF/container.xml" in names else kind
    raise DocumentRejected("unsupported_format", f"The file is {kind}; {_TAKEN}.")


def _checked_binary(binary: str, named: str | None, suffix: str) -> tuple[str, tuple[ParseWarning, ...]]:
    if named in (None, binary) and suffix not in _BINARY_SUFFIXES:
        return binary, ()
    what = "a PDF" if binary == PDF else "a DOCX document"
    raise DocumentRejected(
        "type_mismatch",
        f"The name says {suffix or named}, the content is {what}; rename the file and upload it again.",
    )


def _reject_text_under_binary_name(content: bytes, named: str, suffix: str) -> None:
    if _looks_binary(content):
        raise DocumentRejected("corrupt", f"The file is named {suffix or named} but does not begin as one.")
    raise DocumentRejected(
        "type_mismatch",
        f"The name says {suffix or named}, the content is plain text; rename the file and upload it again.",
    )


def _looks_binary(content: bytes) -> bool:
    sample = content[: 64 * 1024]
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    controls = sum(sample.count(bytes([c])) for c in (*range(1, 9), *range(14, 27), *range(28, 32), 127))
    nul = sample.count(0)
    if nul and _nul_in_every_second(sample):
        nul = 0  # UTF-16 without a mark
    return (controls + nul) > max(8, 0.05 * len(sample))


def _nul_in_every_second(sample: bytes) -> bool:
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    return min(even, odd) <= 0.1 * max(even, odd)


def _reject_noise(content: bytes) -> None:
    if _looks_binary(content):
        raise DocumentRejected("unsupported_format", f"The content is binary and of no known kind; {_TAKEN}.")
