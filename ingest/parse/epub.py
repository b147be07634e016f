"""EPUB: chapters in the order of the spine; navigation and covers left out, footnotes kept in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import regex

from core.errors import DocumentRejected
from ingest.parse.charset import decode
from ingest.parse.epub_package import Book, Entry, open_book
from ingest.parse.formats import EPUB
from ingest.parse.html import blocks_of_fragment, declared_encoding
from ingest.parse.members import Parts
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.zip_package import MemberDamaged, ZipPackage

_NOTE_MARK = regex.compile(
    r"""<a\b(?=[^<>]{0,400}?(?:epub:type|role)\s*=\s*["'](?:doc-)?noteref)[^<>]*+>(.{0,200}?)</a\s*>""",
    regex.IGNORECASE | regex.DOTALL,
)
_NAV = regex.compile(r"<nav[\s>]", regex.IGNORECASE)
_TAG = regex.compile(r"<[^<>]*+>")
_COVER_MAX_CHARS = 200
_HTML_TYPES = frozenset({"application/xhtml+xml", "text/html", "application/html", "text/x-oeb1-document"})


def parse_epub(content: bytes, options: ParseOptions, media_type: str = EPUB) -> ParsedDocument:
    """Read an e-book.

    Spine entries marked as not linear (notes, answers) come last. A chapter that cannot be read is left out
    and reported.

    Raises:
        DocumentRejected: `corrupt` (no readable package or no readable chapter), `encrypted` (its chapters
            are), `no_text` (pictures only), `too_big` or `refused`.
    """
    package = ZipPackage(content, options.limits, "EPUB file")
    book = open_book(package, options.limits)
    parts = Parts(options)
    read = 0
    for entry in book.spine:
        if entry.media_type not in _HTML_TYPES or entry.is_navigation:
            continue
        try:
            markup = _markup(package, entry)
        except MemberDamaged as error:
            parts.warn("chapter_unreadable", f"{_name_of(entry)} was left out: {error.detail}", partial=True)
            continue
        read += 1
        blocks, found = blocks_of_fragment(markup, keep_hidden=options.keep_hidden)
        if entry.is_cover and sum(len(b.text) for b in blocks) <= _COVER_MAX_CHARS:
            continue
        parts.add(_placed(blocks, entry), entry.path)
        parts.take(found, entry.path)
    if not parts.blocks:
        raise _without_text(read, book)
    return ParsedDocument(
        media_type,
        tuple(parts.blocks),
        title=book.title,
        warnings=tuple(parts.warnings),
        partial=parts.partial,
        properties=book.properties,
    )


def _without_text(read: int, book: Book) -> DocumentRejected:
    if read == 0 and book.spine:
        return DocumentRejected("corrupt", "No chapter of the e-book could be read; it is damaged.")
    return DocumentRejected(
        "no_text", "The e-book holds no text, only pictures or nothing at all; upload its pages as a PDF."
    )


def _name_of(entry: Entry) -> str:
    return f"Chapter {entry.title} ({entry.path})" if entry.title else f"Chapter {entry.path}"


def _markup(package: ZipPackage, entry: Entry) -> str:
    raw = package.read(entry.path)
    text = decode(raw, declared_encoding(raw)).text
    return _NOTE_MARK.sub(_bracketed, _without_nav(text))


def _bracketed(mark: Any) -> str:
    """`word<a epub:type="noteref">1</a>` would read `word1`."""
    label = _TAG.sub("", mark.group(1)).strip().strip("[]()")
    return f"[{label}]" + "\n" * mark.group().count("\n")


def _without_nav(text: str) -> str:
    """Drop `<nav>`: lists of contents and of pages inside a chapter. Line numbers stay."""
    kept: list[str] = []
    at = 0
    lower = text.lower()
    while begin := _NAV.search(text, at):
        end = lower.find("</nav>", begin.start())
        if end < 0:
            break
        kept.extend((text[at : begin.start()], "<br>", "\n" * text.count("\n", begin.start(), end)))
        at = end + len("</nav>")
    return "".join((*kept, text[at:]))


def _placed(blocks: list[Block], entry: Entry) -> Iterator[Block]:
    """The chapter under its entry in the table of contents.

    Books number headings by looks, and one file often starts with an `h3`: the first heading takes the depth
    that the contents give the chapter and the others follow it. Without any, the entry is the heading. A file
    that the contents do not name goes on from the one before.
    """
    first = next((b for b in blocks if b.kind is BlockKind.HEADING), None)
    if not entry.title or not blocks:
        yield from blocks
        return
    if first is None:
        yield Block(BlockKind.HEADING, (Fragment(entry.title, ""),), entry.depth)
        yield from blocks
        return
    shift = entry.depth - first.level
    for block in blocks:
        if block.kind is BlockKind.HEADING and shift:
            block = Block(block.kind, block.fragments, max(entry.depth, block.level + shift), block.paragraph)
        yield block
