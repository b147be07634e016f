"""Any XML: prose (DocBook, TEI, JATS and their like) by its sections, all else as records with names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import regex

from ingest.parse.formats import XML
from ingest.parse.members import Parts
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.xml_tree import Tree, attributes, children, local_name, read_xml, text_of

_PARAGRAPHS = frozenset(
    [
        "p",
        "para",
        "simpara",
        "formalpara",
        "l",
        "line",
        "ab",
        "quote",
        "blockquote",
        "dd",
        "dt",
        "li",
        "item",
        "abstract_p",
    ]
)
_TITLES = frozenset(["title", "head", "heading", "article-title", "bridgehead"])
_SECTIONS = regex.compile(
    r"(?:.*section|sect\d|sec|div\d?|chapter|part|book|article|appendix|preface|topic|concept|task|reference|glossary"
    r"|document|doc|manual|text|body|front|back|abstract|title-?group|.*info|title-?stmt|page|set)",
    regex.IGNORECASE,
)
_ITEMS = frozenset({"item", "li", "listitem"})
_ROWS = frozenset({"tr", "row"})
_CELLS = frozenset({"td", "th", "entry", "cell"})
_CODE = frozenset(["programlisting", "screen", "literallayout", "pre", "codeblock", "synopsis"])
_SKIPPED = frozenset({"script", "style"})
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
# Attributes of these namespaces say how to read the file, not what it says.
_ABOUT_THE_FILE = ("{http://www.w3.org/",)
_PROSE_SHARE = 0.5
# Pictures and fonts inside XML: one long run of base64, in lines or not.
_BLOB_MIN = 256
_BLOB = regex.compile(r"(?:[A-Za-z0-9+/]{40,}+\s*+)+[A-Za-z0-9+/]*={0,2}\s*")


def parse_xml(content: bytes, options: ParseOptions, media_type: str = XML) -> ParsedDocument:
    """Read an XML document.

    Raises:
        DocumentRejected: as `read_xml`.
    """
    return parse_tree(read_xml(content, options.limits), options, media_type)


def parse_tree(tree: Tree, options: ParseOptions, media_type: str) -> ParsedDocument:
    """Read a tree that is parsed already; see `parse_xml`."""
    parts = Parts(options, warnings=list(tree.warnings), partial=tree.partial)
    prose = _is_prose(tree.root)
    parts.add(_Prose().blocks(tree.root, 0) if prose else _records(tree.root, ""))
    headings = (b.text for b in parts.blocks if b.kind is BlockKind.HEADING)
    language = tree.root.get(_LANG)
    return ParsedDocument(
        media_type,
        tuple(parts.blocks),
        title=next(headings, ""),
        encoding=tree.decoded.encoding,
        encoding_confidence=tree.decoded.confidence,
        warnings=tuple(parts.warnings),
        partial=parts.partial,
        properties={"language": language} if language else {},
    )


def _is_prose(root: Any) -> bool:
    """Whether most text stands in paragraphs or between inline elements."""
    total = running = 0
    inside: set[Any] = set()
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        is_running = element.getparent() in inside or local_name(element) in _PARAGRAPHS or _is_mixed(element)
        if is_running:
            inside.add(element)
        own = len((element.text or "").strip()) + sum(len((c.tail or "").strip()) for c in element)
        total += own
        running += own if is_running else 0
    return total > 0 and running >= _PROSE_SHARE * total


def _is_mixed(element: Any) -> bool:
    """Whether text stands beside child elements."""
    if not len(element):
        return False
    return bool((element.text or "").strip()) or any((c.tail or "").strip() for c in element)


class _Prose:
    """Walks sections, paragraphs, lists, tables and code."""

    def __init__(self) -> None:
        self._tables = 0

    def blocks(self, element: Any, level: int) -> Iterator[Block]:
        name = local_name(element)
        if not name or name in _SKIPPED:
            return
        inner = children(element)
        if name in _CODE:
            yield from _code(element)
        elif (
            name in _ROWS and inner and all(local_name(c) in _CELLS for c in inner) and not _is_mixed(element)
        ):
            yield self._row(element, inner)
        elif name in _TITLES and level and _SECTIONS.fullmatch(local_name(element.getparent())):
            yield from _block(element, BlockKind.HEADING, level)
        elif not inner or name in _PARAGRAPHS or _is_mixed(element):
            is_item = name in _ITEMS or local_name(element.getparent()) in _ITEMS if level else False
            yield from _block(element, BlockKind.LIST_ITEM if is_item else BlockKind.PARAGRAPH, 0)
        else:
            self._tables += name in ("table", "informaltable")
            titled = bool(_SECTIONS.fullmatch(name)) and any(_holds_title(c) for c in inner)
            for child in inner:
                yield from self.blocks(child, level + titled if level else 1)

    def _row(self, row: Any, cells: list[Any]) -> Block:
        head = any(local_name(a) == "thead" for a in row.iterancestors())
        header = head or (len(cells) > 1 and all(local_name(c) == "th" for c in cells))
        fragments = tuple(Fragment(text_of(c), " | ", line=c.sourceline) for c in cells)
        return Block(BlockKind.TABLE_ROW, fragments, table=self._tables, is_table_header=header)


def _holds_title(element: Any) -> bool:
    return local_name(element) in _TITLES


def _readable(element: Any) -> str:
    """All text under an element, but for files that are packed into it."""
    text = text_of(element)
    return "" if len(text) >= _BLOB_MIN and _BLOB.fullmatch(text) else text


def _block(element: Any, kind: BlockKind, level: int) -> Iterator[Block]:
    if text := _readable(element):
        yield Block(kind, (Fragment(text, "", line=element.sourceline),), level)


def _code(element: Any) -> Iterator[Block]:
    for number, line in enumerate("".join(element.itertext()).split("\n")):
        if line.strip():
            fragment = Fragment(line.rstrip(), "", line=(element.sourceline or 1) + number)
            yield Block(BlockKind.CODE, (fragment,))


def _records(element: Any, path: str) -> Iterator[Block]:
    """Leaves as `path: value`; an element of several named leaves is one block: they belong together."""
    inner = children(element)
    values = [(n, v, element) for n, v in _attributes(element)]
    leaves = [c for c in inner if not children(c) and not c.attrib]
    if not inner or _is_mixed(element):
        inner = []
        values.append(("", _readable(element), element))
    elif len(leaves) == len(inner) and len({local_name(c) for c in inner}) * 2 > len(inner):
        values.extend((local_name(c), _readable(c), c) for c in inner)
        inner = []
    yield from _named_values(path, [v for v in values if v[1]])
    for child in inner:
        below = f"{path}.{local_name(child)}" if path else local_name(child)
        yield from _records(child, below)


def _named_values(path: str, values: list[tuple[str, str, Any]]) -> Iterator[Block]:
    fragments: list[Fragment] = []
    for name, value, holder in values:
        label = f"{name}: {value}" if name else value
        if not fragments and path:
            label = f"{path}: {label}"
        fragments.append(Fragment(label, " | ", line=holder.sourceline))
    if fragments:
        yield Block(BlockKind.PARAGRAPH, tuple(fragments))


def _attributes(element: Any) -> Iterator[tuple[str, str]]:
    for name, value in attributes(element):
        if not name.startswith(_ABOUT_THE_FILE) and value.strip():
            yield name.rsplit("}", 1)[-1], " ".join(value.split())
