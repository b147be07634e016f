"""What an EPUB says of itself: metadata, spine, table of contents, encryption."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from core.errors import DocumentRejected
from ingest.parse.dates import iso_date
from ingest.parse.model import Limits
from ingest.parse.xml_tree import read_xml
from ingest.parse.zip_package import MemberDamaged, ZipPackage

_OPS_TYPE = "{http://www.idpf.org/2007/ops}type"
_OPF = "{http://www.idpf.org/2007/opf}"
# Scrambling of embedded fonts; texts under it stay readable.
_FONT_ALGORITHMS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the spine.

    Attributes:
        path: member of the package.
        title: its name in the table of contents; empty when that does not name it.
        depth: there, 1 = top.
    """

    path: str
    media_type: str
    title: str = ""
    depth: int = 1
    is_navigation: bool = False
    is_cover: bool = False


@dataclass(frozen=True, slots=True)
class Book:
    """The package document, read."""

    spine: tuple[Entry, ...]
    title: str = ""
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Item:
    path: str
    media_type: str
    properties: frozenset[str]


def open_book(package: ZipPackage, limits: Limits) -> Book:
    """Read the package document.

    Raises:
        DocumentRejected: `corrupt` when there is none, `encrypted` when chapters are.
    """
    path = _package_path(package, limits)
    root = _tree(package, path, limits)
    if root is None:
        raise DocumentRejected(
            "corrupt", "The e-book has no package document, so its chapters have no order."
        )
    items = _manifest(root, posixpath.dirname(path))
    references = _guide(root, posixpath.dirname(path))
    contents = _contents(package, root, items, limits)
    spine = tuple(
        Entry(
            item.path,
            item.media_type,
            *contents.get(item.path, ("", 1)),
            is_navigation="nav" in item.properties or references.get(item.path) == "toc",
            is_cover=references.get(item.path) == "cover",
        )
        for item in _spine(root, items)
    )
    _refuse_encrypted(package, {entry.path for entry in spine}, limits)
    title, properties = _metadata(root)
    return Book(spine, title, properties)


def _tree(package: ZipPackage, path: str, limits: Limits) -> Any | None:
    """A part of the package, read as far as it goes; None when there is none or it is beyond reading."""
    try:
        return read_xml(package.read(path), limits).root
    except MemberDamaged:
        return None
    except DocumentRejected as error:
        if error.code in ("corrupt", "encoding"):
            return None
        raise


def _package_path(package: ZipPackage, limits: Limits) -> str:
    container = _tree(package, "META-INF/container.xml", limits)
    if container is not None:
        for file in _named(container, "rootfile"):
            path = file.get("full-path") or ""
            if path in package:
                return path
    return next((name for name in package.names if name.lower().endswith(".opf")), "")


def _manifest(root: Any, folder: str) -> dict[str, _Item]:
    items: dict[str, _Item] = {}
    for item in _named(root, "item"):
        key, href = item.get("id"), item.get("href")
        if key and href:
            declared = (item.get("media-type") or "").strip().lower()
            properties = frozenset((item.get("properties") or "").split())
            items.setdefault(key, _Item(_resolved(folder, href), declared, properties))
    return items


def _spine(root: Any, items: dict[str, _Item]) -> list[_Item]:
    """Items in reading order, those off the line last; each once."""
    on_line: dict[str, _Item] = {}
    off_line: dict[str, _Item] = {}
    for reference in _named(root, "itemref"):
        item = items.get(reference.get("idref") or "")
        if item is not None:
            (off_line if reference.get("linear") == "no" else on_line).setdefault(item.path, item)
    return list({**on_line, **{p: i for p, i in off_line.items() if p not in on_line}}.values())


def _guide(root: Any, folder: str) -> dict[str, str]:
    return {
        _resolved(folder, reference.get("href") or ""): (reference.get("type") or "").lower()
        for reference in _named(root, "reference")
    }


def _contents(
    package: ZipPackage, root: Any, items: dict[str, _Item], limits: Limits
) -> dict[str, tuple[str, int]]:
    """Path → title and depth of its first entry, from the navigation document or else the NCX."""
    spine = next(iter(_named(root, "spine")), None)
    ncx = items.get(spine.get("toc") or "") if spine is not None else None
    nav = next((i for i in items.values() if "nav" in i.properties), None)
    ncx = ncx or next((i for i in items.values() if i.media_type == "application/x-dtbncx+xml"), None)
    for item, read in ((nav, _nav_points), (ncx, _ncx_points)):
        tree = _tree(package, item.path, limits) if item is not None else None
        if item is None or tree is None:
            continue
        found: dict[str, tuple[str, int]] = {}
        for href, title, depth in read(tree):
            if title:
                found.setdefault(_resolved(posixpath.dirname(item.path), href), (title, depth))
        if found:
            return found
    return {}


def _nav_points(tree: Any) -> Iterator[tuple[str, str, int]]:
    navs = list(_named(tree, "nav"))
    nav = next((n for n in navs if "toc" in (n.get(_OPS_TYPE) or "").split()), navs[0] if navs else None)
    for link in _named(nav, "a") if nav is not None else ():
        depth = sum(_local(a) == "ol" for a in link.iterancestors())
        yield link.get("href") or "", _text(link), min(max(1, depth), _MAX_DEPTH)


def _ncx_points(tree: Any) -> Iterator[tuple[str, str, int]]:
    for point in _named(tree, "navPoint"):
        depth = 1 + sum(_local(a) == "navPoint" for a in point.iterancestors())
        label = next((c for c in point if _local(c) == "navLabel"), None)
        target = next((c for c in point if _local(c) == "content"), None)
        if label is not None and target is not None:
            yield target.get("src") or "", _text(label), min(depth, _MAX_DEPTH)


def _refuse_encrypted(package: ZipPackage, chapters: set[str], limits: Limits) -> None:
    encryption = _tree(package, "META-INF/encryption.xml", limits)
    for data in _named(encryption, "EncryptedData") if encryption is not None else ():
        method = next(iter(_named(data, "EncryptionMethod")), None)
        if method is not None and (method.get("Algorithm") or "").startswith(_FONT_ALGORITHMS):
            continue
        for reference in _named(data, "CipherReference"):
            if _resolved("", reference.get("URI") or "") in chapters:
                raise DocumentRejected(
                    "encrypted", "The e-book is copy-protected (DRM); upload an edition without protection."
                )


def _metadata(root: Any) -> tuple[str, dict[str, str]]:
    said: dict[str, list[tuple[str, Any]]] = {}
    for element in _named(root, "metadata"):
        for field_ in element.iter():
            if isinstance(field_.tag, str) and (text := _text(field_)):
                said.setdefault(_local(field_), []).append((text, field_))
    properties: dict[str, str] = {}
    authors = [text for text, e in said.get("creator", []) if e.get(f"{_OPF}role") in (None, "aut")]
    _put(properties, "author", ", ".join(dict.fromkeys(authors)))
    _put(properties, "language", next((text for text, _ in said.get("language", [])), ""))
    _put(
        properties,
        "description",
        " ".join(_without_tags(said.get("description", [("", None)])[0][0]).split()),
    )
    for text, element in said.get("date", []):
        event = element.get(f"{_OPF}event") or "publication"
        _put(properties, "modified" if event == "modification" else "published", iso_date(text))
    for text, element in said.get("meta", []):
        if element.get("property") == "dcterms:modified":
            _put(properties, "modified", iso_date(text))
    return next((text for text, _ in said.get("title", [])), ""), properties


def _put(properties: dict[str, str], name: str, value: str) -> None:
    if value and value.lower() != "unknown" and name not in properties:
        properties[name] = value


def _without_tags(text: str) -> str:
    if "<" not in text:
        return text
    from ingest.parse.html import blocks_of_fragment

    return " ".join(block.text for block in blocks_of_fragment(text)[0])


def _resolved(folder: str, href: str) -> str:
    """The member that a link names; what points above the package stays a name that nothing has."""
    path = unquote(href.split("#", 1)[0].split("?", 1)[0])
    return posixpath.normpath(posixpath.join(folder, path)).lstrip("/") if path else ""


def _named(root: Any, name: str) -> Iterator[Any]:
    return (e for e in root.iter() if isinstance(e.tag, str) and _local(e) == name)


def _local(element: Any) -> str:
    tag = element.tag
    return tag.rsplit("}", 1)[-1] if isinstance(tag, str) else ""


def _text(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())
