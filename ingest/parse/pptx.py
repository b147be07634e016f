"""PPTX: slides in the order of the show, each with its title, texts, tables, charts and notes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from core.types import Lang
from ingest.lang import language_of
from ingest.parse.drawing import drawing_text
from ingest.parse.formats import PPTX
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.office import finished
from ingest.parse.office_pictures import PictureReader
from ingest.parse.ooxml import OfficePackage, R, is_true, local
from ingest.parse.pptx_slide import P, Size, Slide, heading
from ingest.parse.pptx_text import TextReader
from ingest.parse.within import check_length
from ingest.parse.zip_package import MemberDamaged

_LABELS = {True: ("第 {} 页", "备注", "批注"), False: ("Slide {}", "Notes", "Comments")}


def parse_pptx(content: bytes, options: ParseOptions, media_type: str = PPTX) -> ParsedDocument:
    """Read a presentation; the page of a block is the number of its slide.

    Hidden slides are counted and left out unless `options.keep_hidden`. A slide without text is recognised
    from its pictures; other pictures are counted, and no alternative text is read: programs write most of
    them by themselves.

    Raises:
        DocumentRejected: `corrupt`, `encrypted`, `refused`, or `too_big` when it inflates past a cap.
    """
    package = OfficePackage(content, options.limits, "PPTX file")
    part = package.main_part("ppt/presentation.xml")
    root = package.required(part)
    show = _Show(package, list(_slide_parts(package, part, root)), _size(root), options)
    blocks: list[Block] = []
    chars = 0
    for page in range(1, len(show.parts) + 1):
        found = show.slide(page)
        chars += sum(len(b.text) for b in found)
        check_length(chars, options.limits)
        blocks.extend(found)
    return finished(package, media_type, blocks, options, pictures=show.pictures, pages=len(show.parts))


class _Show:
    """Reads the slides of a presentation, given by their parts in order; an empty name is a missing one."""

    def __init__(self, package: OfficePackage, parts: list[str], size: Size, options: ParseOptions) -> None:
        self.parts = parts
        self.pictures = PictureReader(package, package.findings, options)
        self._package = package
        self._size = size
        self._keep_hidden = options.keep_hidden
        self._tables = count(1)

    def slide(self, page: int) -> list[Block]:
        """Blocks of a slide; a damaged or hidden one has none and is noted."""
        name, findings = self.parts[page - 1], self._package.findings
        try:
            root = self._package.xml(name) if name else None
        except MemberDamaged:
            root = None
        if root is None:
            findings.damaged(f"slide {page}")
            return []
        if not self._keep_hidden and not is_true(root.get("show", "1")):
            findings.count("hidden_slides", 1, page)
            return []
        reader = TextReader(findings, page, self._keep_hidden)
        slide = Slide(self._package, name, reader, self._size)
        title, body = slide.blocks(root, lambda: next(self._tables))
        if not title and not body:
            body = self.pictures.blocks(slide.pictures, page, len(self.parts), page)
        return _sections(self._package, name, reader, title, body)


def _slide_parts(package: OfficePackage, part: str, root: Any) -> Iterator[str]:
    """Parts of the slides in their order; empty for one that is missing."""
    relations = package.relations(part)
    for entry in root.iter(P + "sldId"):
        link = relations.get(entry.get(R + "id") or "")
        yield link.target if link is not None and link.target in package else ""


def _size(root: Any) -> Size:
    size = root.find(P + "sldSz")
    edges = ("", "") if size is None else (size.get("cx") or "", size.get("cy") or "")
    return (int(edges[0]), int(edges[1])) if all(e.isdigit() and len(e) < 12 for e in edges) else (0, 0)


def _sections(
    package: OfficePackage, part: str, reader: TextReader, title: str, body: list[Block]
) -> list[Block]:
    """A slide's text, notes and comments under their headings."""
    notes = list(_notes(package, part, reader))
    comments = list(_comments(package, part, reader.page))
    if not (title or body or notes or comments):
        return []
    sample = " ".join([title, *(b.text for b in (body or notes)[:50])])
    untitled, notes_name, comments_name = _LABELS[language_of(sample) is Lang.ZH]
    # A slide without a title still begins a section: its text is not the last slide's.
    found = [heading(title or untitled.format(reader.page), 1, reader.page), *body]
    if notes:
        found += [heading(notes_name, 2, reader.page), *notes]
    if comments:
        found += [heading(comments_name, 2, reader.page), *comments]
    return found


def _notes(package: OfficePackage, part: str, reader: TextReader) -> Iterator[Block]:
    for name in package.related(part, "notesSlide"):
        root = package.optional(name)
        for shape in () if root is None else root.iter(P + "sp"):
            mark = next(shape.iter(P + "ph"), None)
            body = shape.find(P + "txBody")
            if mark is not None and mark.get("type") == "body" and body is not None:
                yield from reader.blocks(body, bulleted=False)


def _comments(package: OfficePackage, part: str, page: int) -> Iterator[Block]:
    """Comments of both generations: plain ones (`p:cm`) and threads (`p188:cm` with replies)."""
    names = package.related(part, "comments")
    if not names:
        return
    authors = _authors(package)
    for name in names:
        root = package.optional(name)
        for comment in () if root is None else root.iter():
            if local(comment) not in ("cm", "reply"):
                continue
            plain = next((c.text for c in comment if local(c) == "text"), None)
            body = next((c for c in comment if local(c) == "txBody"), None)
            text = " ".join((plain or ("" if body is None else drawing_text(body))).split())
            author = authors.get(comment.get("authorId") or "", "")
            if text:
                line = f"{author}: {text}" if author else text
                yield Block(BlockKind.LIST_ITEM, (Fragment(line, "", page=page),))


def _authors(package: OfficePackage) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in ("ppt/commentAuthors.xml", "ppt/authors.xml"):
        root = package.optional(name)
        for author in () if root is None else root:
            found[author.get("id") or ""] = author.get("name") or ""
    return found
