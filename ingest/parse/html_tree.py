"""HTML text → a tree without anything that is not text: scripts, styles, forms' controls, pictures."""

from __future__ import annotations

import re
from typing import Any

import regex

from core.errors import DocumentRejected

_XML_DECLARATION = regex.compile(r"^\s*<\?xml[^>]*\?>")
_XHTML = regex.compile(
    r"^\s*<\?xml|<html[^>]{0,500}\sxmlns\s*=\s*[\"']http://www\.w3\.org/1999/xhtml", regex.IGNORECASE
)
# Characters that XML forbids, and references to them: trees may be parsed with them, not written to.
_FORBIDDEN = bytes(n for n in range(32) if n not in b"\t\n\r")
_NON_CHARACTERS = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")
_FORBIDDEN_REFERENCE = re.compile(
    rb"&#(?:[xX]0*(?:[0-8bBcCeEfF]|1[0-9a-fA-F]|[fF]{3}[eEfF]|[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|0*(?:[0-8]|1[124-9]|2\d|3[01]|6553[45]))(?![0-9a-fA-F]);?"
)
_VOID = "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
_SELF_CLOSED = regex.compile(
    rf"<(?!(?:{_VOID})\b)([A-Za-z][\w:.-]*)((?:\s+[^<>\"']*(?:\"[^\"]*\"|'[^']*'))*\s*)/>"
)
_CDATA = regex.compile(r"<!\[CDATA\[(.*?)\]\]>", regex.DOTALL)
# Elements that libxml2 may nest beyond its limit; text and line ends stay when the tags go.
_NESTABLE = regex.compile(
    r"</?(?:div|span|font|b|i|u|em|strong|big|small|section|article|main|center|blockquote|table|tbody|tr|ul|ol|dl"
    r"|sub|sup|a|ins|del|code|label|fieldset|form|header|nav|aside|footer|custom|[a-z]+-[a-z-]+)\b[^<>]*>",
    regex.IGNORECASE,
)
_NEVER_TEXT = (
    "script style template noscript noembed svg iframe object embed applet canvas audio video button select "
    "input textarea datalist map rt rp rtc"
)
_NEVER_TAGS = tuple(_NEVER_TEXT.split())


def tree_of(text: str) -> Any:
    """Parse decoded HTML or XHTML, however broken.

    Raises:
        DocumentRejected: `empty` when there is no element, `corrupt` when nothing could be read.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

    if _XHTML.search(text[:2000]):
        text = _as_html(text)
    if not text.strip():
        raise DocumentRejected("empty", "The page holds no text.")
    try:
        root, is_cut = _parse(text)
        if is_cut:  # deeper than the parser goes: the text matters more than how it is nested
            root, _ = _parse(_NESTABLE.sub(lambda tag: " " + "\n" * tag.group().count("\n"), text))
    except etree.ParserError as error:  # lxml's word for a tree without elements
        raise DocumentRejected("empty", "The page holds no text.") from error
    except (etree.XMLSyntaxError, ValueError) as error:
        raise DocumentRejected("corrupt", "The page could not be read as HTML.") from error
    return root


def _parse(text: str) -> tuple[Any, bool]:
    from lxml import html  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

    parser = html.HTMLParser(encoding="utf-8", remove_pis=True, huge_tree=True)
    root = html.document_fromstring(_allowed(text), parser=parser)
    return root, any("depth" in entry.message for entry in parser.error_log)


def _allowed(text: str) -> bytes:
    content = text.encode("utf-8", "replace").translate(None, _FORBIDDEN)
    for character in _NON_CHARACTERS:
        content = content.replace(character, b"")
    return _FORBIDDEN_REFERENCE.sub(b"", content) if b"&#" in content else content


def _as_html(text: str) -> str:
    """XHTML as an HTML parser understands it; lines stay where they were."""
    text = _XML_DECLARATION.sub(lambda found: "\n" * found.group().count("\n"), text)
    if "<![CDATA[" in text:
        text = _CDATA.sub(_escaped, text)
    return _SELF_CLOSED.sub(r"<\1\2></\1>", text)


def _escaped(found: regex.Match[str]) -> str:
    return found.group(1).replace("&", "&amp;").replace("<", "&lt;")


def body_of(root: Any) -> Any:
    """The body; the frames' replacement text for a page of frames; the root when there is neither."""
    body = root.find("body")
    if body is None:
        body = root.find(".//noframes")
    return root if body is None else body


def drop_never_shown(root: Any) -> None:
    """Remove comments, scripts, styles, controls, pictures, readings above characters. Changes `root`."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled, without stubs

    for element in list(root.iter(etree.Comment, *_NEVER_TAGS)):
        drop(element)


def empty(element: Any) -> None:
    """Leave the element without content; the text after it stays where it is."""
    lines = sum(text.count("\n") for text in element.itertext())
    tail = "\n" * lines + (element.tail or "")
    element.clear()
    element.tail = tail or None


def drop(element: Any) -> None:
    """Remove an element but keep the text after it, and its line ends, by which lines are counted."""
    parent = element.getparent()
    if parent is None:
        return
    texts = element.itertext() if len(element) else (element.text or "",)
    lines = sum(text.count("\n") for text in texts)
    tail = "\n" * lines + (element.tail or "")
    if tail:
        before = element.getprevious()
        if before is not None:
            before.tail = (before.tail or "") + tail
        else:
            parent.text = (parent.text or "") + tail
    parent.remove(element)
