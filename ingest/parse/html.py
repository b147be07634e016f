"""HTML: the main content as blocks; menus, banners, cookie bars, footers and hidden text are left out."""

from __future__ import annotations

from typing import Any

import regex

from core.errors import DocumentRejected
from ingest.parse.charset import decode
from ingest.parse.html_blocks import blocks_of
from ingest.parse.html_main import find_main, prune
from ingest.parse.model import Block, BlockKind, ParsedDocument, ParseOptions, ParseWarning
from ingest.parse.sniff import HTML
from ingest.parse.within import check_length

_META_CHARSET = regex.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", regex.IGNORECASE
)
_XML_ENCODING = regex.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{2,40})")
_XML_DECLARATION = regex.compile(r"^\s*<\?xml[^>]*\?>")
# Below this share of the visible text the "main content" is a guess that went wrong.
_MIN_SHARE = 0.08
_MIN_CHARS = 40


def parse_html(content: bytes, options: ParseOptions, media_type: str = HTML) -> ParsedDocument:
    """Read an HTML page.

    Raises:
        DocumentRejected: `empty` or `corrupt`.
    """
    decoded = decode(content, declared_encoding(content))
    check_length(len(decoded.text), options.limits)
    root = _tree(decoded.text)
    title = _title(root)
    prune(root, hidden_only=True)
    everything = blocks_of(root)
    main = find_main(root)
    blocks = blocks_of(main)
    warnings = list(decoded.warnings)
    if _size(blocks) < max(_MIN_CHARS, _MIN_SHARE * _size(everything)) and _size(everything) > _size(blocks):
        blocks = everything
        warnings.append(
            ParseWarning(
                "main_content_not_found", "No main content was recognised, so the whole page was taken."
            )
        )
    return ParsedDocument(
        media_type=media_type,
        blocks=tuple(_with_headline(blocks, everything)),
        title=title,
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        warnings=tuple(warnings),
    )


def blocks_of_fragment(
    html_text: str, *, keep_hidden: bool = False
) -> tuple[list[Block], tuple[ParseWarning, ...]]:
    """The whole body as blocks, without guessing which part is the content.

    For HTML inside other formats (chapters of a book, bodies of a message, feed entries): a fragment, a page
    or XHTML, already decoded. Scripts and other active content are never kept.

    Args:
        html_text: markup; entity-encoded markup stays text.
        keep_hidden: also take text that people cannot see.

    Returns:
        Blocks in reading order, lines counted from 1 in `html_text`, and what a person should know. Empty
        when there is no text; never raises for bad markup.
    """
    try:
        root = _tree(html_text)
    except DocumentRejected:
        return [], ()
    if not keep_hidden:
        prune(root, hidden_only=True)
    return blocks_of(root), ()


def declared_encoding(content: bytes) -> str | None:
    """The encoding that the page itself names, which may be a lie."""
    head = content[:8192]
    found = _XML_ENCODING.search(head) or _META_CHARSET.search(head)
    return found.group(1).decode("ascii") if found else None


def _tree(text: str) -> Any:
    from lxml import etree, html  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

    text = _XML_DECLARATION.sub("", text).replace("\x00", "")
    if not text.strip():
        raise DocumentRejected("empty", "The page holds no text.")
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        return html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except etree.ParserError as error:  # lxml's word for a tree without elements
        raise DocumentRejected("empty", "The page holds no text.") from error
    except (etree.XMLSyntaxError, ValueError) as error:
        raise DocumentRejected("corrupt", "The page could not be read as HTML.") from error


def _title(root: Any) -> str:
    found = root.find(".//title")
    return (found.text or "").strip() if found is not None else ""


def _size(blocks: list[Block]) -> int:
    return sum(len(block.text.strip()) for block in blocks)


def _with_headline(blocks: list[Block], everything: list[Block]) -> list[Block]:
    """Put the page's only top heading first when it stands outside the main content."""
    headlines = [b for b in everything if b.kind is BlockKind.HEADING and b.level == 1]
    if len(headlines) != 1 or any(b.kind is BlockKind.HEADING and b.level == 1 for b in blocks):
        return blocks
    return [headlines[0], *blocks]
