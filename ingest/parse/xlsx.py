"""XLSX: each sheet's tables as people see them, with row numbers, titles and header rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from core.errors import DocumentRejected
from core.types import Lang
from ingest.lang import language_of
from ingest.parse.drawing import drawing_text
from ingest.parse.findings import comments_heading
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.office import finished
from ingest.parse.ooxml import A, OfficePackage, R, is_true, local
from ingest.parse.sheet_tables import sheet_blocks
from ingest.parse.sniff import XLSX
from ingest.parse.within import check_length
from ingest.parse.xlsx_sheet import PartialSheet, SharedStrings, Workbook, range_of, read_sheet, rich_text
from ingest.parse.xlsx_styles import cell_styles
from ingest.parse.xml_stream import stream_xml
from ingest.parse.zip_package import MemberDamaged

_XDR = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}"


def parse_xlsx(content: bytes, options: ParseOptions, media_type: str = XLSX) -> ParsedDocument:
    """Read a workbook: sheets in their order, one heading each.

    Hidden sheets, rows and columns are counted and left out unless `options.keep_hidden`.

    Raises:
        DocumentRejected: `corrupt`, `encrypted`, `refused`, `unsupported_format` (binary workbooks) or
            `too_big`.
    """
    package = OfficePackage(content, options.limits, "XLSX file")
    part = package.main_part("xl/workbook.xml")
    if part.endswith(".bin") or "xl/workbook.bin" in package:
        raise DocumentRejected("unsupported_format", "Binary workbooks (.xlsb) are not read; save as .xlsx.")
    root = package.required(part)
    book = Workbook(
        strings=_strings(package, part),
        styles=cell_styles(_linked(package, part, "styles")),
        from_1904=any(is_true(e.get("date1904", "0")) for e in root if local(e) == "workbookPr"),
        keep_hidden=options.keep_hidden,
    )
    blocks: list[Block] = []
    for name, sheet_part in _sheets(package, part, root, keep_hidden=options.keep_hidden):
        blocks.extend(_sheet(package, name, sheet_part, book, blocks, options.limits.max_chars))
        check_length(sum(len(b.text) for b in blocks), options.limits)
    return finished(package, media_type, blocks, options)


def _linked(package: OfficePackage, part: str, kind: str) -> Any | None:
    name = next(iter(package.related(part, kind)), f"xl/{kind}.xml")
    return package.optional(name)


def _strings(package: OfficePackage, part: str) -> list[str]:
    name = next(iter(package.related(part, "sharedStrings")), "xl/sharedStrings.xml")
    strings = SharedStrings()
    if name in package:
        try:
            with package.open(name) as stream:
                stream_xml(stream, strings)
        except (ValueError, MemberDamaged):
            package.findings.damaged(name)
    return strings.texts


def _sheets(package: OfficePackage, part: str, root: Any, *, keep_hidden: bool) -> Iterator[tuple[str, str]]:
    """Names and parts of the worksheets to read, in the order of their tabs."""
    relations = package.relations(part)
    for sheets in root:
        if local(sheets) != "sheets":
            continue
        for sheet in sheets:
            name = sheet.get("name") or ""
            link = relations.get(sheet.get(R + "id") or "")
            if link is None or link.target not in package:
                package.findings.damaged(f"sheet {name}")
            elif link.kind != "worksheet":
                package.findings.count("sheets_not_tables")
            elif (sheet.get("state") or "visible") != "visible" and not keep_hidden:
                package.findings.count("hidden_sheets")
            else:
                yield name, link.target


def _sheet(
    package: OfficePackage, name: str, part: str, book: Workbook, before: list[Block], max_chars: int
) -> list[Block]:
    try:
        with package.open(part) as stream:
            sheet = read_sheet(stream, name, book, package.findings, max_chars)
    except PartialSheet as error:
        sheet = error.sheet
        package.findings.damaged(f"sheet {name}")
    except MemberDamaged:
        package.findings.damaged(f"sheet {name}")
        return []
    sheet.headers.update(_table_headers(package, part))
    tables = max((b.table for b in before if b.table is not None), default=0)
    blocks = sheet_blocks(sheet, tables + 1)
    texts = [*_shapes(package, part, name), *_comments(package, part, name, blocks)]
    if texts and not blocks:
        blocks.append(Block(BlockKind.HEADING, (Fragment(name, ""),), level=1, member=name))
    return blocks + texts


def _table_headers(package: OfficePackage, part: str) -> Iterator[int]:
    """Header rows of the tables that the file defines on a sheet."""
    for name in package.related(part, "table"):
        root = package.optional(name)
        place = None if root is None else range_of(root.get("ref") or "")
        if place is not None and root is not None and root.get("headerRowCount") != "0":
            yield place[0]


def _shapes(package: OfficePackage, part: str, sheet: str) -> Iterator[Block]:
    """Text in boxes that lie on the sheet; pictures are counted."""
    for drawing in package.related(part, "drawing"):
        root = package.optional(drawing)
        if root is None:
            continue
        package.findings.count("images_not_read", sum(1 for _ in root.iter(_XDR + "pic")))
        for body in root.iter(_XDR + "txBody"):
            for paragraph in body.iter(A + "p"):
                if text := drawing_text(paragraph):
                    yield Block(BlockKind.PARAGRAPH, (Fragment(text, ""),), member=sheet)


def _comments(package: OfficePackage, part: str, sheet: str, blocks: list[Block]) -> list[Block]:
    """Notes and threaded comments under a heading, each with its cell."""
    notes = [*_threads(package, part)] or [*_plain_notes(package, part)]
    if not notes:
        return []
    chinese = language_of(" ".join(b.text for b in blocks[:200]) or notes[0][2]) is Lang.ZH
    heading = Fragment(comments_heading(chinese=chinese), "")
    found = [Block(BlockKind.HEADING, (heading,), level=2, member=sheet)]
    for cell, author, text in notes:
        place = range_of(cell)
        line = f"{cell} {author}{'：' if chinese else ': '}{text}" if author else f"{cell} {text}"
        fragment = Fragment(line, "", line=place[0] if place else None)
        found.append(Block(BlockKind.LIST_ITEM, (fragment,), member=sheet))
    return found


def _plain_notes(package: OfficePackage, part: str) -> Iterator[tuple[str, str, str]]:
    for name in package.related(part, "comments"):
        root = package.optional(name)
        authors: list[str] = []
        for element in () if root is None else root.iter():
            if local(element) == "author":
                authors.append((element.text or "").strip())
            elif local(element) == "comment":
                inner = next((c for c in element if local(c) == "text"), None)
                text = "" if inner is None else " ".join(rich_text(inner).split())
                index = element.get("authorId") or ""
                author = authors[int(index)] if index.isdigit() and int(index) < len(authors) else ""
                if text:
                    yield element.get("ref") or "", author, text.removeprefix(f"{author}:").strip()


def _threads(package: OfficePackage, part: str) -> Iterator[tuple[str, str, str]]:
    people: dict[str, str] = {}
    for name in package.names:
        if name.startswith("xl/persons/") and name.endswith(".xml"):
            root = package.optional(name)
            for person in () if root is None else root:
                people[person.get("id") or ""] = person.get("displayName") or ""
    for name in package.related(part, "threadedComment"):
        root = package.optional(name)
        for comment in () if root is None else root:
            text = " ".join(" ".join(t.text or "" for t in comment if local(t) == "text").split())
            if text:
                yield comment.get("ref") or "", people.get(comment.get("personId") or "", ""), text
