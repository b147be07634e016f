"""The formats that are read: media type, name for people, file name endings. This list stands once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from core.errors import DocumentRejected

_OOXML = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"

PDF = "application/pdf"
DOCX = f"{_OOXML}.wordprocessingml.document"
XLSX = f"{_OOXML}.spreadsheetml.sheet"
PPTX = f"{_OOXML}.presentationml.presentation"
ODT = f"{_OPEN_DOCUMENT}.text"
ODS = f"{_OPEN_DOCUMENT}.spreadsheet"
EPUB = "application/epub+zip"
PNG = "image/png"
JPEG = "image/jpeg"
TIFF = "image/tiff"
WEBP = "image/webp"
BMP = "image/bmp"
GIF = "image/gif"
EML = "message/rfc822"
MHTML = "multipart/related"
HTML = "text/html"
XML = "application/xml"
RSS = "application/rss+xml"
ATOM = "application/atom+xml"
MARKDOWN = "text/markdown"
RST = "text/x-rst"
TEXT = "text/plain"
CSV = "text/csv"
TSV = "text/tab-separated-values"
JSON = "application/json"
JSONL = "application/jsonl"
SRT = "application/x-subrip"
VTT = "text/vtt"


@dataclass(frozen=True, slots=True)
class Format:
    """A readable format.

    Attributes:
        name: short, for lists.
        what: with its article, for sentences.
        suffixes: endings of file names, lower case.
        family: formats of one family are mistaken for each other without harm (a PNG named `.jpg`).
    """

    name: str
    what: str
    suffixes: tuple[str, ...]
    family: str = ""


FORMATS: dict[str, Format] = {
    PDF: Format("PDF", "a PDF document", (".pdf",)),
    DOCX: Format("DOCX", "a Word document (DOCX)", (".docx", ".docm", ".dotx", ".dotm"), "writer"),
    XLSX: Format("XLSX", "a spreadsheet (XLSX)", (".xlsx", ".xlsm", ".xltx", ".xltm"), "sheet"),
    PPTX: Format("PPTX", "a presentation (PPTX)", (".pptx", ".pptm", ".ppsx", ".potx"), "slides"),
    ODT: Format("ODT", "an OpenDocument text (ODT)", (".odt", ".ott"), "writer"),
    ODS: Format("ODS", "an OpenDocument spreadsheet (ODS)", (".ods", ".ots"), "sheet"),
    EPUB: Format("EPUB", "an e-book (EPUB)", (".epub",)),
    PNG: Format("PNG", "a PNG image", (".png",), "image"),
    JPEG: Format("JPEG", "a JPEG image", (".jpg", ".jpeg", ".jfif", ".jpe"), "image"),
    TIFF: Format("TIFF", "a TIFF image", (".tif", ".tiff"), "image"),
    WEBP: Format("WebP", "a WebP image", (".webp",), "image"),
    BMP: Format("BMP", "a BMP image", (".bmp", ".dib"), "image"),
    GIF: Format("GIF", "a GIF image", (".gif",), "image"),
    EML: Format("EML", "an e-mail message", (".eml",)),
    MHTML: Format("MHTML", "a saved web page (MHTML)", (".mht", ".mhtml")),
    HTML: Format("HTML", "an HTML page", (".html", ".htm", ".xhtml", ".shtml", ".xht")),
    XML: Format("XML", "an XML document", (".xml",)),
    RSS: Format("RSS", "an RSS feed", (".rss", ".rdf")),
    ATOM: Format("Atom", "an Atom feed", (".atom",)),
    MARKDOWN: Format("Markdown", "a Markdown text", (".md", ".markdown", ".mdown", ".mkd")),
    RST: Format("reStructuredText", "a reStructuredText", (".rst",)),
    TEXT: Format("TXT", "a plain text", (".txt", ".text", ".log")),
    CSV: Format("CSV", "a CSV table", (".csv",)),
    TSV: Format("TSV", "a TSV table", (".tsv", ".tab")),
    JSON: Format("JSON", "a JSON document", (".json",)),
    JSONL: Format("JSON Lines", "a JSON Lines document", (".jsonl", ".ndjson")),
    SRT: Format("SRT", "subtitles (SRT)", (".srt",), "subtitles"),
    VTT: Format("VTT", "subtitles (WebVTT)", (".vtt",), "subtitles"),
}
IMAGES = frozenset({PNG, JPEG, TIFF, WEBP, BMP, GIF})
BINARY = frozenset({PDF, DOCX, XLSX, PPTX, ODT, ODS, EPUB}) | IMAGES
BY_SUFFIX = {suffix: media_type for media_type, f in FORMATS.items() for suffix in f.suffixes}
# Files that other programs made under these endings; none of them is read as such.
FOREIGN_SUFFIXES = {
    ".doc": "writer",
    ".dot": "writer",
    ".wps": "writer",
    ".rtf": "writer",
    ".xls": "sheet",
    ".xlt": "sheet",
    ".xlsb": "sheet",
    ".et": "sheet",
    ".ppt": "slides",
    ".pps": "slides",
    ".dps": "slides",
    ".odp": "slides",
    ".zip": "",
    ".rar": "",
    ".7z": "",
    ".tar": "",
    ".gz": "",
    ".tgz": "",
    ".msg": "",
    ".exe": "",
    ".mp3": "",
    ".mp4": "",
}
_ALIASES = {
    "application/xhtml+xml": HTML,
    "text/x-markdown": MARKDOWN,
    "text/xml": XML,
    "application/rdf+xml": RSS,
    "text/json": JSON,
    "application/x-ndjson": JSONL,
    "application/x-jsonlines": JSONL,
    "image/jpg": JPEG,
    "image/pjpeg": JPEG,
    "image/x-ms-bmp": BMP,
    "application/x-mimearchive": MHTML,
    "application/x-pdf": PDF,
    "text/srt": SRT,
    "application/vnd.ms-word.document.macroenabled.12": DOCX,
    "application/vnd.ms-excel.sheet.macroenabled.12": XLSX,
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": PPTX,
}
READABLE = ", ".join(f.name for f in FORMATS.values())


def of_declared(declared_type: str) -> str | None:
    """The readable media type that a client's `Content-Type` names, if it names one."""
    plain = declared_type.split(";")[0].strip().lower()
    plain = _ALIASES.get(plain, plain)
    return plain if plain in FORMATS else None


def family_of(media_type: str | None, suffix: str) -> str:
    """The family that a name belongs to; empty when it has none."""
    if media_type is not None:
        return FORMATS[media_type].family
    return FOREIGN_SUFFIXES.get(suffix, "")


def refuse(what: str, advice: str = "", suffix: str = "") -> NoReturn:
    """Refuse a format that is not read.

    Args:
        what: the file, with its article.
        advice: what a person can do about it, as a sentence.
        suffix: the ending of its name, where that promised something else.

    Raises:
        DocumentRejected: `unsupported_format`, always.
    """
    named = f"is named {suffix} but " if suffix in BY_SUFFIX else ""
    told = f"{advice} " if advice else ""
    raise DocumentRejected(
        "unsupported_format", f"The file {named}is {what}, which is not read. {told}Readable: {READABLE}."
    )
