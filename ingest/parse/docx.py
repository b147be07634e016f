"""DOCX, read from its XML: what a reader sees once all tracked changes are accepted.

Insertions count and deletions do not; comments stand apart, under a heading of their own after the body.
"""

from __future__ import annotations

from typing import Any

from core.types import Lang
from ingest.lang import language_of
from ingest.parse.docx_body import Body
from ingest.parse.docx_headings import with_headings
from ingest.parse.docx_numbering import Numbering
from ingest.parse.docx_styles import Styles, W
from ingest.parse.docx_text import TextReader
from ingest.parse.findings import comment_line, comments_heading
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.office import finished
from ingest.parse.office_pictures import PictureReader
from ingest.parse.ooxml import A, OfficePackage, R
from ingest.parse.sniff import DOCX

_REVISIONS = tuple(W + name for name in ("ins", "del", "moveFrom", "moveTo", "cellIns", "cellDel"))
_IMAGE_DATA = "{urn:schemas-microsoft-com:vml}imagedata"
_LANGUAGE_SAMPLE = 200  # blocks


def parse_docx(content: bytes, options: ParseOptions, media_type: str = DOCX) -> ParsedDocument:
    """Read a DOCX document: body with lists and tables, notes, text boxes, charts, then comments.

    Headers and footers are page furniture, taken only when there is nothing else.

    Raises:
        DocumentRejected: `corrupt`, `encrypted`, `refused`, or `too_big` when it inflates past a cap.
    """
    package = OfficePackage(content, options.limits, "DOCX file")
    part = package.main_part("word/document.xml", *(n for n in package.names if _is_numbered_main(n)))
    root = package.required(part)
    styles = Styles(_linked(package, part, "styles"))
    dark_paper = root.find(W + "background") is not None
    reader = TextReader(package, styles, keep_hidden=options.keep_hidden, dark_paper=dark_paper)
    body = Body(package, part, styles, Numbering(_linked(package, part, "numbering")), reader, options)
    blocks = list(body.blocks(next(iter(root.iter(W + "body")), root)))
    blocks = with_headings(blocks, body.looks)
    blocks.extend(body.left_over_notes())
    blocks.extend(_comments(package, part, body, reader, blocks))
    if body.contents and blocks:
        package.findings.count("contents_list_left_out", len(body.contents))
    blocks = blocks or body.contents
    pictures = PictureReader(package, package.findings, options)
    if not blocks:
        names = _pictures(package, part, root)
        blocks = pictures.blocks(names, 1, len(names))
    blocks = _furniture(package, part, body, blocks)
    if next(root.iter(*_REVISIONS), None) is not None:
        package.findings.count("has_revisions")
    return finished(package, media_type, blocks, options, pictures=pictures)


def _is_numbered_main(name: str) -> bool:
    """Some programs number the document part."""
    return name.startswith("word/document") and name.endswith(".xml")


def _linked(package: OfficePackage, part: str, kind: str) -> Any | None:
    return package.optional(next(iter(package.related(part, kind)), f"word/{kind}.xml"))


def _comments(
    package: OfficePackage, part: str, body: Body, reader: TextReader, blocks: list[Block]
) -> list[Block]:
    """Comments under a heading in the document's language: who, on which words, what."""
    name = next(iter(package.related(part, "comments")), "word/comments.xml")
    root = package.optional(name)
    if root is None:
        return []
    sample = " ".join(b.text for b in blocks[:_LANGUAGE_SAMPLE])
    chinese = language_of(sample) is Lang.ZH
    found: list[Block] = []
    for comment in root.iter(W + "comment"):
        inner = body.story(comment, name)
        text = " ".join(b.text.strip() for b in inner)
        if not text:
            continue
        author = (comment.get(W + "author") or "").strip()
        quoted = " ".join("".join(reader.commented.get(comment.get(W + "id") or "", ())).split())
        line = comment_line(author, quoted, text, chinese=chinese)
        number = inner[0].paragraph
        found.append(Block(BlockKind.LIST_ITEM, (Fragment(line, ""),), paragraph=number))
    if found:
        heading = Fragment(comments_heading(chinese=chinese), "")
        found.insert(0, Block(BlockKind.HEADING, (heading,), level=1, paragraph=found[0].paragraph))
    return found


def _pictures(package: OfficePackage, part: str, root: Any) -> list[str]:
    """Picture parts in the order in which the document shows them."""
    relations = package.relations(part)
    ids = [e.get(R + "embed") or e.get(R + "id") or "" for e in root.iter(A + "blip", _IMAGE_DATA)]
    links = [relations[i] for i in dict.fromkeys(ids) if i in relations]
    return [link.target for link in links if not link.external and link.target in package]


def _furniture(package: OfficePackage, part: str, body: Body, blocks: list[Block]) -> list[Block]:
    """Headers and footers, when they are the only text; else they are counted."""
    found: list[Block] = []
    parts = 0
    for name in (*package.related(part, "header"), *package.related(part, "footer")):
        root = package.optional(name)
        if root is None:
            continue
        if blocks:
            parts += any((t.text or "").strip() for t in root.iter(W + "t"))
        else:
            found.extend(body.story(root, name))
    package.findings.count("headers_footers_left_out", parts)
    return blocks or found
