"""XML of any encoding as a tree: no entity is ever expanded, nothing is fetched, damage costs only itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html.entities import html5
from typing import Any

import regex

from core.errors import DocumentRejected
from ingest.parse.charset import Decoded, decode
from ingest.parse.html import declared_encoding
from ingest.parse.model import Limits, ParseWarning
from ingest.parse.within import check_length
from ingest.parse.zip_package import safe_xml

_DECLARATION = regex.compile(r"^\s*<\?xml\s[^>]*\?>")
_CDATA = "<![CDATA["
_NAMED = regex.compile(r"&([A-Za-z][A-Za-z0-9]{1,31});")
_BARE = regex.compile(r"&(?!#\d{1,7};|#[xX][0-9A-Fa-f]{1,6};|(?:amp|lt|gt|quot|apos);)")
_FORBIDDEN = regex.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OWN = frozenset({"amp", "lt", "gt", "quot", "apos"})
_FEW = 100  # the mapping of attributes searches all of them for each, so it is quadratic
_TYPE = regex.compile(
    r"((?:\s++|<\?(?:(?!\?>).)*+\?>|<!--(?:(?!-->).)*+-->)*+)"
    r"""(<!DOCTYPE(?:[^\[>"']++|"[^"]*+"|'[^']*+')*+"""
    r"""(?:\[(?:[^\]"'<]++|"[^"]*+"|'[^']*+'|<!--(?:(?!-->).)*+-->|<(?!!--))*+\]\s*+)?>)""",
    regex.DOTALL | regex.IGNORECASE,
)
_GENERAL_ENTITY = regex.compile(r"<!ENTITY\s++(?!%)", regex.IGNORECASE)
_FIRST_TAG = regex.compile(r"<[A-Za-z_]")


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed document.

    Attributes:
        partial: it is not well-formed and some of it may be missing; `warnings` say where.
    """

    root: Any
    decoded: Decoded
    warnings: tuple[ParseWarning, ...] = ()
    partial: bool = False


def read_xml(content: bytes, limits: Limits) -> Tree:
    """Parse XML; what is not well-formed is read as far as it goes.

    The names that HTML gives to characters (`&nbsp;`) are known without a document type, which is never
    loaded.

    Raises:
        DocumentRejected: `refused` when entities are declared, `corrupt` when no element can be read,
            `encoding`, or `too_big`.
    """
    decoded = decode(content, declared_encoding(content))
    check_length(len(decoded.text), limits)
    text = _DECLARATION.sub(lambda m: "\n" * m.group().count("\n"), decoded.text)
    text = _outside_cdata(_without_type(text), _with_characters)
    try:
        return Tree(_strict(text), decoded, decoded.warnings)
    except ValueError as error:
        problem = str(error).split("\n")[0].split(" (<string>")[0]
    mended = _outside_cdata(_FORBIDDEN.sub(" ", text), lambda part: _BARE.sub("&amp;", part))
    if mended.rfind(_CDATA) > mended.rfind("]]>"):
        mended += "]]>"  # cut off inside; without an end the parser drops all of it
    try:
        return Tree(_strict(mended), decoded, decoded.warnings)
    except ValueError:
        root = _recovered(mended)
    if root is None:
        raise DocumentRejected("corrupt", f"The XML file cannot be read: {problem}.")
    warning = ParseWarning("xml_malformed", f"Not well-formed, so parts may be missing: {problem}.")
    return Tree(root, decoded, (*decoded.warnings, warning), partial=True)


def local_name(element: Any) -> str:
    """An element's name without its namespace; empty for comments and instructions."""
    tag = element.tag
    return tag.rsplit("}", 1)[-1] if isinstance(tag, str) else ""


def children(element: Any) -> list[Any]:
    """Child elements, without comments and instructions."""
    return [child for child in element if isinstance(child.tag, str)]


def text_of(element: Any) -> str:
    """All text under an element, white space folded."""
    return " ".join("".join(element.itertext()).split())


def attributes(element: Any) -> list[tuple[str, str]]:
    """Attributes with their namespaced names, in order."""
    if len(element.attrib) <= _FEW:
        return [(str(name), str(value)) for name, value in element.attrib.items()]
    return [(str(value.attrname), str(value)) for value in element.xpath("@*")]


def _outside_cdata(text: str, change: Callable[[str], str]) -> str:
    parts: list[str] = []
    at = 0
    while (begin := text.find(_CDATA, at)) >= 0 and (end := text.find("]]>", begin)) >= 0:
        parts.extend((change(text[at:begin]), text[begin : end + 3]))
        at = end + 3
    return "".join((*parts, change(text[at:])))


def _without_type(text: str) -> str:
    """Drop the document type. Feeds name lists of characters in it, which are known without.

    Raises:
        DocumentRejected: `refused`, when it declares entities that the text may use.
    """
    found = _TYPE.match(text)
    before_root = _FIRST_TAG.search(text)
    head = found.group(2) if found else text[: before_root.start() if before_root else len(text)]
    if _GENERAL_ENTITY.search(head):
        raise DocumentRejected(
            "refused",
            "The XML file declares entities, which are never expanded; save it with them written out.",
        )
    if found is None:
        return text
    return found.group(1) + "\n" * found.group(2).count("\n") + text[found.end() :]


def _with_characters(text: str) -> str:
    def character(name: Any) -> str:
        known = None if name.group(1) in _OWN else html5.get(f"{name.group(1)};")
        return name.group() if known is None or known in "<>&" else known

    return _NAMED.sub(character, text)


def _strict(text: str) -> Any:
    return safe_xml(text.encode("utf-8", "replace"), "XML file", allow_doctype=True)


def _recovered(text: str) -> Any | None:
    """What a forgiving parser makes of it; where even the first tag is broken, the one for HTML."""
    from lxml import etree, html  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

    safe = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
    forgiving = (
        etree.XMLParser(recover=True, remove_comments=True, **safe),
        html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True),
    )
    for parser in forgiving:
        try:
            root = etree.fromstring(text.encode("utf-8", "replace"), parser)
        except (etree.XMLSyntaxError, ValueError):
            continue
        if root is not None and (text_of(root) or any(e.attrib for e in root.iter("*"))):
            return root
    return None
