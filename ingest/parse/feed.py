"""News feeds (RSS, Atom): a heading for each entry, its date, author and link, its content as HTML blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import regex

from ingest.parse.dates import iso_date
from ingest.parse.formats import RSS
from ingest.parse.html import blocks_of_fragment
from ingest.parse.members import Parts
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions, ParseWarning
from ingest.parse.xml_text import parse_tree
from ingest.parse.xml_tree import Tree, children, local_name, read_xml, text_of

_ENTRIES = frozenset({"item", "entry"})
_DATES = ("pubDate", "published", "issued", "date", "updated", "modified", "lastBuildDate")
_AUTHORS = ("creator", "author", "managingEditor")
_CONTENTS = ("encoded", "content", "description", "summary")
# Titles and descriptions of pictures and sound, not of the entry.
_MEDIA = ("http://search.yahoo.com/mrss", "http://www.itunes.com")
_MARKUP = regex.compile(r"</?[A-Za-z][^<>]*>|&(?:#\w+|\w+);")
_Read = tuple[list[Block], tuple[ParseWarning, ...]]
_EMAIL_AND_NAME = regex.compile(r"\S+@\S+\s+\((.+)\)")


def parse_feed(content: bytes, options: ParseOptions, media_type: str = RSS) -> ParsedDocument:
    """Read a feed; one without entries is read as any XML.

    Raises:
        DocumentRejected: as `read_xml`.
    """
    tree = read_xml(content, options.limits)
    entries = [_Fields(e) for e in tree.root.iter("{*}item", "{*}entry") if not _inside_entry(e)]
    if not entries:
        return parse_tree(tree, options, media_type)
    top = next((e for e in children(tree.root) if local_name(e) == "channel"), tree.root)
    channel = _Fields(top if local_name(top) not in _ENTRIES else None)
    parts = Parts(options, warnings=list(tree.warnings), partial=tree.partial)
    title = _plain(channel, "title")
    parts.add(_heading(channel, title, 1))
    parts.add(_content(channel, ("description", "subtitle", "tagline"), options)[0])
    parts.add(_picture_of(channel, title))
    for entry in entries:
        parts.add(_heading(entry, _plain(entry, "title"), 2))
        parts.add(_line_about(entry))
        blocks, hidden = _content(entry, _CONTENTS, options)
        parts.add(blocks, deeper=2)
        parts.take(hidden, _plain(entry, "title"))
    return ParsedDocument(
        media_type,
        tuple(parts.blocks),
        title=title or _plain(entries[0], "title"),
        encoding=tree.decoded.encoding,
        encoding_confidence=tree.decoded.confidence,
        warnings=tuple(parts.warnings),
        partial=parts.partial,
        properties=_properties(tree, channel),
    )


class _Fields:
    """The children of an entry by name, those of the entry's own namespace first.

    Attributes:
        line: of the entry.
    """

    def __init__(self, element: Any | None) -> None:
        self.line: int | None = None if element is None else element.sourceline
        self._by_name: dict[str, list[Any]] = {}
        if element is None:
            return
        space = element.tag.rpartition("}")[0]
        for child in sorted(children(element), key=lambda c: c.tag.rpartition("}")[0] != space):
            if not child.tag[1:].startswith(_MEDIA):
                self._by_name.setdefault(local_name(child), []).append(child)

    def all(self, name: str) -> list[Any]:
        """Children of that name."""
        return self._by_name.get(name, [])

    def first(self, name: str) -> Any | None:
        """The first child of that name."""
        return next(iter(self.all(name)), None)


def _inside_entry(element: Any) -> bool:
    parent = element.getparent()
    return parent is not None and local_name(parent) in _ENTRIES


def _heading(entry: _Fields, title: str, level: int) -> Iterator[Block]:
    if title:
        yield Block(BlockKind.HEADING, (Fragment(title, "", line=entry.line),), level)


def _picture_of(channel: _Fields, title: str) -> Iterator[Block]:
    """What the feed's picture is called, unless that is the feed's own title."""
    image = channel.first("image")
    if image is None:
        return
    if (called := _plain(_Fields(image), "title")) and called != title:
        yield Block(BlockKind.PARAGRAPH, (Fragment(called, "", line=image.sourceline),))


def _line_about(entry: _Fields) -> Iterator[Block]:
    told = [_date(entry), _author(entry), _link(entry)]
    subjects = [text_of(c) or c.get("term") or "" for c in entry.all("category")]
    told.append(", ".join(s for s in subjects if s))
    fragments = tuple(Fragment(t, " | ", line=entry.line) for t in told if t)
    if fragments:
        yield Block(BlockKind.PARAGRAPH, fragments)


def _content(entry: _Fields, names: tuple[str, ...], options: ParseOptions) -> _Read:
    """The first of `names` that has text, as blocks with the lines of the feed."""
    for name in names:
        found = entry.first(name)
        if found is None:
            continue
        read = _as_html(found, options) if _holds_markup(found) else (list(_as_plain(found)), ())
        if read[0]:
            return read
    return [], ()


def _holds_markup(element: Any) -> bool:
    return bool(children(element)) or _MARKUP.search(element.text or "") is not None


def _as_html(element: Any, options: ParseOptions) -> _Read:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

    markup = (element.text or "") + "".join(etree.tostring(c, encoding="unicode") for c in element)
    blocks, told = blocks_of_fragment(markup, keep_hidden=options.keep_hidden)
    above = (element.sourceline or 1) - 1
    placed = [
        replace(
            block,
            paragraph=None,
            fragments=tuple(
                replace(f, start=None, line=None if f.line is None else f.line + above)
                for f in block.fragments
            ),
        )
        for block in blocks
    ]
    return placed, told


def _as_plain(element: Any) -> Iterator[Block]:
    line = element.sourceline
    for paragraph in regex.split(r"\n\s*\n", element.text or ""):
        if text := " ".join(paragraph.split()):
            yield Block(BlockKind.PARAGRAPH, (Fragment(text, "", line=line),))
        line = None if line is None else line + paragraph.count("\n") + 2


def _plain(entry: _Fields, name: str) -> str:
    found = entry.first(name)
    if found is None:
        return ""
    if _MARKUP.search(text := text_of(found)):
        return " ".join(block.text for block in blocks_of_fragment(text)[0])
    return text


def _date(entry: _Fields) -> str:
    for name in _DATES:
        if said := _plain(entry, name):
            return iso_date(said) or said
    return ""


def _author(entry: _Fields) -> str:
    for name in _AUTHORS:
        found = entry.first(name)
        if found is None:
            continue
        inner = _Fields(found).first("name")
        text = text_of(found if inner is None else inner)
        named = _EMAIL_AND_NAME.fullmatch(text)
        if text:
            return named.group(1) if named else text
    return ""


def _link(entry: _Fields) -> str:
    for link in entry.all("link"):
        if link.get("rel", "alternate") == "alternate" and (link.get("href") or text_of(link)):
            return link.get("href") or text_of(link)
    return ""


def _properties(tree: Tree, channel: _Fields) -> dict[str, str]:
    language = (
        _plain(channel, "language") or tree.root.get("{http://www.w3.org/XML/1998/namespace}lang") or ""
    )
    found = {
        "author": _author(channel),
        "modified": iso_date(_date(channel)),
        "description": _plain(channel, "description") or _plain(channel, "subtitle"),
        "language": language,
    }
    return {name: value for name, value in found.items() if value}
