"""What DOCX, XLSX and PPTX share: parts, relationships, strict namespaces, properties (ECMA-376)."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import regex

from core.errors import DocumentRejected
from ingest.parse.findings import Findings
from ingest.parse.model import Limits
from ingest.parse.zip_package import MemberDamaged, ZipPackage

_OFFICE = "http://schemas.openxmlformats.org/"
R = "{" + _OFFICE + "officeDocument/2006/relationships}"
A = "{" + _OFFICE + "drawingml/2006/main}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_STRICT_MARK = b"http://purl.oclc.org/ooxml/"
# Strict OOXML (ISO 29500) names the same vocabularies under addresses of its own.
_STRICT = regex.compile(
    rb"http://purl\.oclc\.org/ooxml/(?:(officeDocument)/(relationships|math|customProperties|extendedProperties"
    rb"|docPropsVTypes)|drawingml/(\w+)|(wordprocessingml|spreadsheetml|presentationml)/main)"
)
_LOCAL_STRICT = {b"customProperties": b"custom-properties", b"extendedProperties": b"extended-properties"}
_DATE = regex.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d))?[\d.]*(Z|[+-]\d\d:\d\d)?)?)?)?"
)
# What programs write by themselves says nothing of the document.
_EMPTY_TITLE = regex.compile(
    r"(?:microsoft (?:word|excel|powerpoint) - .*|powerpoint[ -]?(?:presentation|演示文稿|簡報)|word document"
    r"|(?:presentation|document|workbook|演示文稿|文档|工作簿)\s?\d*|slide 1|幻灯片 ?1|untitled|无标题)",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Relation:
    """A link from a part: `kind` is the last word of its type (`image`), `target` the name of a part."""

    kind: str
    target: str
    external: bool = False


class OfficePackage(ZipPackage):
    """An OOXML package. A damaged part is noted in `findings`, so that the rest can still be read."""

    def __init__(self, content: bytes, limits: Limits, kind: str) -> None:
        super().__init__(content, limits, kind)
        self.findings = Findings()
        self._relations: dict[str, dict[str, Relation]] = {}

    def parse(self, content: bytes, name: str, *, allow_doctype: bool = False) -> Any:
        """Parse a part; strict namespaces become the transitional ones."""
        return super().parse(transitional(content), name, allow_doctype=allow_doctype)

    def main_part(self, *usual: str) -> str:
        """Name of the part that the package is about: as it says, else the first usual name that exists."""
        for relation in self.relations("").values():
            if relation.kind == "officeDocument" and relation.target in self:
                return relation.target
        return next((name for name in usual if name in self), "")

    def required(self, name: str) -> Any:
        """Root of the main part.

        Raises:
            DocumentRejected: `corrupt`, when it is missing or damaged.
        """
        root = self.xml(name) if name else None
        if root is None:
            raise DocumentRejected("corrupt", f"The {self.kind} holds no document part.")
        return root

    def optional(self, name: str) -> Any | None:
        """Root of another part; None when it is missing, or damaged (which is noted)."""
        try:
            return self.xml(name)
        except MemberDamaged:
            self.findings.damaged(name)
            return None

    def relations(self, part: str) -> dict[str, Relation]:
        """Links from a part by id; from the package itself for the empty name."""
        if part not in self._relations:
            folder, name = posixpath.split(part)
            root = self.optional(posixpath.join(folder, "_rels", f"{name}.rels"))
            self._relations[part] = {} if root is None else _relations(root, folder)
        return self._relations[part]

    def related(self, part: str, kind: str) -> list[str]:
        """Names of existing parts that `part` links to with this kind, in the order of the links."""
        return [
            r.target
            for r in self.relations(part).values()
            if r.kind == kind and not r.external and r.target in self
        ]

    def properties(self) -> tuple[str, dict[str, str]]:
        """Title and properties of `docProps/core.xml`, as `ParsedDocument` names them."""
        name = next(iter(self.related("", "core-properties")), "docProps/core.xml")
        root = self.optional(name)
        found: dict[str, str] = {}
        title = ""
        for element in () if root is None else root:
            text = " ".join((element.text or "").split())
            word = local(element)
            if not text:
                continue
            if word == "title" and not _EMPTY_TITLE.fullmatch(text):
                title = text
            elif word in ("description", "language"):
                found[word] = text
            elif word == "creator":
                found["author"] = text
            elif word in ("created", "modified") and (date := iso_date(text)):
                found[word] = date
        return title, found


def transitional(content: bytes) -> bytes:
    """XML with strict namespaces renamed to the transitional ones that every reader knows."""
    if _STRICT_MARK not in content:
        return content
    return _STRICT.sub(_renamed, content)


def _renamed(match: regex.Match[bytes]) -> bytes:
    base = _OFFICE.encode()
    if match.group(1):
        word = match.group(2)
        return base + b"officeDocument/2006/" + _LOCAL_STRICT.get(word, word)
    if match.group(3):
        return base + b"drawingml/2006/" + match.group(3)
    return base + match.group(4) + b"/2006/main"


def _relations(root: Any, folder: str) -> dict[str, Relation]:
    found: dict[str, Relation] = {}
    for link in root:
        if local(link) != "Relationship":
            continue
        external = link.get("TargetMode") == "External"
        target = link.get("Target") or ""
        if not external:
            target = posixpath.normpath(posixpath.join("/", folder, unquote(target))).lstrip("/")
        found[link.get("Id") or ""] = Relation((link.get("Type") or "").rpartition("/")[2], target, external)
    return found


def local(element: Any) -> str:
    """Tag without its namespace; empty for a processing instruction."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def iso_date(text: str) -> str:
    """A W3C date or time in ISO 8601, empty when it is none."""
    match = _DATE.match(text.strip())
    if not match:
        return ""
    year, month, day, hour, minute, second, zone = match.groups()
    date = "-".join(p for p in (year, month, day) if p)
    return f"{date}T{hour}:{minute}:{second or '00'}{zone or ''}" if hour else date


def chosen(element: Any) -> list[Any]:
    """The children that a reader of `mc:AlternateContent` takes: the first choice with content, once."""
    for branch in (*element.findall(MC + "Choice"), *element.findall(MC + "Fallback")):
        if len(branch):
            return list(branch)
    return []


def is_true(value: str | None) -> bool:
    """An OOXML on/off attribute that is present; a toggle element without a value is on."""
    return value is None or value.lower() in ("1", "true", "on")
