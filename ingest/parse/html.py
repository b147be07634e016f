"""HTML: the main content as blocks; menus, banners, cookie bars, footers and hidden text are left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import regex

from core.errors import DocumentRejected
from ingest.parse.charset import decode
from ingest.parse.html_blocks import blocks_of
from ingest.parse.html_furniture import drop_furniture, drop_menus, is_thread, show_comments
from ingest.parse.html_hidden import sheets_of, take_out_hidden
from ingest.parse.html_inline import write_out_inline
from ingest.parse.html_main import headline_of, main_nodes
from ingest.parse.html_meta import byline_of, document_title, facts_of
from ingest.parse.html_page import PageText
from ingest.parse.html_tree import body_of, drop_never_shown, tree_of
from ingest.parse.model import Block, BlockKind, ParsedDocument, ParseOptions, ParseWarning
from ingest.parse.sniff import HTML
from ingest.parse.within import check_length

_META_CHARSET = regex.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", regex.IGNORECASE
)
_XML_ENCODING = regex.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{2,40})")
# Below this share of the visible text the "main content" is a guess that went wrong.
_MIN_SHARE = 0.08
_MIN_CHARS = 40


def parse_html(content: bytes, options: ParseOptions, media_type: str = HTML) -> ParsedDocument:
    """Read an HTML page.

    Raises:
        DocumentRejected: `empty`, `no_text` (everything is hidden) or `corrupt`.
    """
    decoded = decode(content, declared_encoding(content))
    check_length(len(decoded.text), options.limits)
    root = tree_of(decoded.text)
    facts = facts_of(root)
    hidden = _prepare(root, options.keep_hidden)
    if not any(text.strip() for text in body_of(root).itertext()):
        raise _without_text(hidden)
    if is_thread(decoded.text):
        show_comments(root)
    headline = headline_of(root, facts.title)
    byline = byline_of(body_of(root))
    blocks, is_found = _main_blocks(root)
    if not is_found:
        blocks = _everything(decoded.text, options.keep_hidden)
    elif headline is not None:
        blocks = _with_headline(headline, blocks)
    return ParsedDocument(
        media_type=media_type,
        blocks=tuple(blocks),
        title=document_title(facts.title, _first_heading(blocks), facts.site),
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        warnings=(*decoded.warnings, *_warnings(hidden, options.keep_hidden, is_found)),
        properties={**byline, **facts.properties},
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
        root = tree_of(html_text)
    except DocumentRejected:
        return [], ()
    hidden = _prepare(root, keep_hidden)
    return blocks_of(body_of(root)), tuple(_warnings(hidden, keep_hidden, is_found=True))


def declared_encoding(content: bytes) -> str | None:
    """The encoding that the page itself names, which may be a lie."""
    head = content[:8192]
    found = _XML_ENCODING.search(head) or _META_CHARSET.search(head)
    return found.group(1).decode("ascii") if found else None


def _prepare(root: Any, keep_hidden: bool) -> int:
    """Leave only text that may be read; returns how many characters of it are hidden."""
    sheets = sheets_of(root)
    drop_never_shown(root)
    hidden = take_out_hidden(root, sheets, keep=keep_hidden)
    write_out_inline(root)
    return hidden


def _without_text(hidden: int) -> DocumentRejected:
    if hidden:
        return DocumentRejected("no_text", "People see no text on this page: its styles hide all of it.")
    return DocumentRejected("empty", "The page holds no text; save it after it has been shown in a browser.")


def _main_blocks(root: Any) -> tuple[list[Block], bool]:
    """The content's blocks, and whether content was recognised at all."""
    head = root.find("head")
    if head is not None:  # read by now; the less the library copies, the sooner it is done
        root.remove(head)
    drop_furniture(root)
    body = body_of(root)
    page = PageText(body)
    with_menus = page.chars(body)
    drop_menus(page)
    chosen = main_nodes(root, page)
    size, whole = page.size(chosen), page.chars(body)
    if size < max(1, min(_MIN_CHARS, whole / 2), _MIN_SHARE * whole):
        return [], False
    if size < min(_MIN_CHARS, _MIN_SHARE * with_menus):  # a page of links
        return [], False
    page.keep(chosen)
    return blocks_of(body), True


def _everything(text: str, keep_hidden: bool) -> list[Block]:
    """All blocks but those in what is furniture by its tag; those too when there are no others."""
    root = tree_of(text)
    _prepare(root, keep_hidden)
    drop_furniture(root)
    if blocks := blocks_of(body_of(root)):
        return blocks
    root = tree_of(text)
    _prepare(root, keep_hidden)
    return blocks_of(body_of(root))


def _warnings(hidden: int, keep_hidden: bool, is_found: bool) -> list[ParseWarning]:
    warnings: list[ParseWarning] = []
    if hidden:
        outcome = "kept" if keep_hidden else "left out"
        warnings.append(
            ParseWarning("hidden_text", f"{hidden} characters that people cannot see were {outcome}.")
        )
    if not is_found:
        detail = "No main content was recognised, so the whole page was taken."
        warnings.append(ParseWarning("main_content_not_found", detail))
    return warnings


def _first_heading(blocks: list[Block]) -> str:
    return next((b.text for b in blocks if b.kind is BlockKind.HEADING and b.level == 1), "")


def _with_headline(headline: Block, blocks: list[Block]) -> list[Block]:
    """Put the page's headline first when it stands outside the content."""
    if any(b.kind is BlockKind.HEADING and (b.level == 1 or b.text == headline.text) for b in blocks):
        return blocks
    return [replace(block, paragraph=number) for number, block in enumerate((headline, *blocks))]
