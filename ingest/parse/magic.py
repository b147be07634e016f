"""Files with a signature: which readable format, or why not."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import NoReturn

from core.errors import DocumentRejected
from ingest.parse import formats
from ingest.parse.formats import refuse

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", formats.PNG),
    (b"\xff\xd8\xff", formats.JPEG),
    (b"GIF87a", formats.GIF),
    (b"GIF89a", formats.GIF),
    (b"II*\x00", formats.TIFF),
    (b"MM\x00*", formats.TIFF),
    (b"II+\x00", formats.TIFF),
    (b"MM\x00+", formats.TIFF),
)
_UNPACK = "Unpack it and upload the documents in it."
_AS_PDF = "Export it as PDF and upload that."
_TRANSCRIPT = "Upload a transcript or its subtitles."
# (offset, signature, what, advice)
_FOREIGN = (
    (0, b"{\\rtf", "an RTF document", "Save it as DOCX and upload that."),
    (0, b"%!PS", "a PostScript document", _AS_PDF),
    (0, b"AT&TFORM", "a DjVu document", _AS_PDF),
    (0, b"ITSF", "a compiled help file (CHM)", "Export its pages as HTML or PDF."),
    (60, b"BOOKMOBI", "a Kindle e-book", "Convert it to EPUB and upload that."),
    (0, b"8BPS", "a Photoshop image", "Export it as PNG or PDF."),
    (0, b"\x00\x00\x01\x00", "an icon", ""),
    (0, b"\x1f\x8b", "a gzip archive", _UNPACK),
    (0, b"BZh", "a bzip2 archive", _UNPACK),
    (0, b"\xfd7zXZ\x00", "an xz archive", _UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "a zstd archive", _UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (0, b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (0, b"MSCF", "a CAB archive", _UNPACK),
    (257, b"ustar", "a tar archive", _UNPACK),
    (32769, b"CD001", "a disk image", _UNPACK),
    (0, b"!BDN", "an Outlook mailbox", "Export its messages as .eml files."),
    (0, b"SQLite format 3\x00", "an SQLite database", "Export its tables as CSV."),
    (0, b"PAR1", "a Parquet file", "Export it as CSV or JSON Lines."),
    (0, b"\x89HDF", "an HDF5 file", "Export it as CSV."),
    (0, b"\x93NUMPY", "a NumPy array", "Export it as CSV."),
    (0, b"\x7fELF", "a program", ""),
    (0, b"MZ", "a program", ""),
    (0, b"\xca\xfe\xba\xbe", "a program", ""),
    (0, b"\xcf\xfa\xed\xfe", "a program", ""),
    (0, b"\xfe\xed\xfa\xcf", "a program", ""),
    (0, b"\x00asm", "a program", ""),
    (0, b"OTTO", "a font", ""),
    (0, b"\x00\x01\x00\x00\x00", "a font", ""),
    (0, b"ttcf", "a font", ""),
    (0, b"wOFF", "a font", ""),
    (0, b"wOF2", "a font", ""),
    (0, b"ID3", "an audio file", _TRANSCRIPT),
    (0, b"\xff\xfb", "an audio file", _TRANSCRIPT),
    (0, b"OggS", "an audio or video file", _TRANSCRIPT),
    (0, b"fLaC", "an audio file", _TRANSCRIPT),
    (0, b"#!AMR", "an audio file", _TRANSCRIPT),
    (0, b"FLV\x01", "a video", _TRANSCRIPT),
    (0, b"\x1aE\xdf\xa3", "a video", _TRANSCRIPT),
    (0, b"\x00\x00\x01\xba", "a video", _TRANSCRIPT),
    (0, b"RIFF", "an audio or video file", _TRANSCRIPT),
)
_ISO_MEDIA = {b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIC", b"avif": "AVIF"}
# What ZIP packages hold under a name of their own; the first that is there decides.
_PARTS = (
    ("word/document", formats.DOCX),
    ("xl/workbook.xml", formats.XLSX),
    ("ppt/presentation.xml", formats.PPTX),
    ("META-INF/container.xml", formats.EPUB),
)
_FOREIGN_PARTS = (
    ("xl/workbook.bin", "a binary spreadsheet (XLSB)", "Save it as XLSX and upload that."),
    ("OFD.xml", "an OFD document", _AS_PDF),
    ("FixedDocSeq.fdseq", "an XPS document", _AS_PDF),
    ("FixedDocumentSequence.fdseq", "an XPS document", _AS_PDF),
    ("Index/Document.iwa", "a Pages, Numbers or Keynote document", "Export it as DOCX, XLSX, PPTX or PDF."),
    ("AndroidManifest.xml", "an Android program", ""),
    ("META-INF/MANIFEST.MF", "a Java program", ""),
)
_BY_MIMETYPE = {
    "application/epub+zip": formats.EPUB,
    formats.ODT: formats.ODT,
    f"{formats.ODT}-template": formats.ODT,
    f"{formats.ODT}-master": formats.ODT,
    formats.ODS: formats.ODS,
    f"{formats.ODS}-template": formats.ODS,
}


def binary_type(content: bytes, suffix: str) -> str | None:
    """The readable media type of a file with a signature; None when it has none.

    Raises:
        DocumentRejected: a known format that is not read (`unsupported_format`), an Office file under a
            password (`encrypted`), a ZIP archive that does not open (`corrupt`).
    """
    if _is_pdf(content, suffix):
        return formats.PDF
    if content.startswith(_ZIP):
        return _zip_type(content, suffix)
    if content.startswith(_OLE):
        _refuse_ole(content, suffix)
    for signature, media_type in _IMAGES:
        if content.startswith(signature):
            return media_type
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return formats.WEBP
    if content.startswith(b"BM") and content[6:10] == bytes(4) and looks_binary(content[:64], least=4):
        return formats.BMP
    if content[4:8] == b"ftyp":
        _refuse_iso_media(content, suffix)
    for offset, signature, what, advice in _FOREIGN:
        if content.startswith(signature, offset) and (offset or _is_signature(signature, content)):
            refuse(what, advice, suffix)
    return None


_CONTROLS = bytes((*range(9), *range(14, 27), *range(28, 32), 127))


def looks_binary(content: bytes, least: int = 8) -> bool:
    """Whether control characters are more than stray ones. NULs count, so UTF-16 looks binary."""
    sample = content[: 64 * 1024]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return controls > max(least, 0.05 * len(sample))


def _is_signature(signature: bytes, content: bytes) -> bool:
    """A printable signature is one only before binary content; a text may begin with the same letters."""
    return not signature.isascii() or b"\x00" in signature or signature[:1] in b"{%" or looks_binary(content)


def _is_pdf(content: bytes, suffix: str) -> bool:
    """Readers allow junk before the header, but a text that mentions it is not a PDF."""
    if content[:64].lstrip(b"\xef\xbb\xbf \t\r\n\x00").startswith(b"%PDF-"):
        return True
    if b"%PDF-" not in content[:1024]:
        return False
    return suffix == ".pdf" or (b"%%EOF" in content[-2048:] and looks_binary(content))


def _zip_type(content: bytes, suffix: str) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            mimetype = _mimetype(archive)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, EOFError) as error:
        raise DocumentRejected(
            "corrupt",
            "The file begins as a ZIP package (DOCX, XLSX, EPUB and others are such) but cannot be opened; "
            "it is cut off or damaged. Upload it again from the original.",
        ) from error
    if mimetype in _BY_MIMETYPE:
        return _BY_MIMETYPE[mimetype]
    if mimetype.startswith("application/vnd.oasis.opendocument."):
        refuse("an OpenDocument presentation or drawing", _AS_PDF, suffix)
    held = {name.replace("\\", "/") for name in names}
    for part, media_type in _PARTS:
        if part in held or any(name.startswith(part) and name.endswith(".xml") for name in held):
            return media_type
    for part, what, advice in _FOREIGN_PARTS:
        if part in held:
            refuse(what, advice, suffix)
    refuse("a ZIP archive", _UNPACK, suffix)


def _mimetype(archive: zipfile.ZipFile) -> str:
    """The package's own statement of its type (EPUB, OpenDocument); empty when there is none."""
    try:
        member = archive.getinfo("mimetype")
        if member.file_size > 256:
            return ""
        with archive.open(member) as stream:
            return stream.read(256).decode("ascii", "replace").strip("\ufeff \t\r\n\x00")
    except (KeyError, ValueError, RuntimeError, EOFError, OSError, zipfile.BadZipFile, zlib.error):
        return ""


def _refuse_ole(content: bytes, suffix: str) -> NoReturn:
    def has(stream: str) -> bool:
        return stream.encode("utf-16-le") in content

    if has("EncryptedPackage"):
        raise DocumentRejected(
            "encrypted", "The Office file is protected by a password; upload it without the password."
        )
    if has("__properties_version1.0"):
        refuse("an Outlook message (MSG)", "Save it as .eml and upload that.", suffix)
    if has("WordDocument"):
        refuse("an old Word document (DOC)", "Save it as DOCX and upload that.", suffix)
    if has("Workbook") or has("Book"):
        refuse("an old Excel spreadsheet (XLS)", "Save it as XLSX and upload that.", suffix)
    if has("PowerPoint Document"):
        refuse("an old PowerPoint presentation (PPT)", "Save it as PPTX and upload that.", suffix)
    if has("HwpSummaryInformation"):
        refuse("a Hangul document (HWP)", _AS_PDF, suffix)
    refuse(
        "an old binary Office file (DOC, XLS, PPT or alike)",
        "Save it as DOCX, XLSX or PPTX and upload that.",
        suffix,
    )


def _refuse_iso_media(content: bytes, suffix: str) -> NoReturn:
    image = _ISO_MEDIA.get(content[8:12])
    if image:
        refuse(f"an image ({image})", "Save it as JPEG or PNG and upload that.", suffix)
    refuse("an audio or video file", _TRANSCRIPT, suffix)
