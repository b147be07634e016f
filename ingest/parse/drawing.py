"""Charts and SmartArt of Office files: their titles, names and values as text (DrawingML)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ingest.parse.grid import Cell, Row, table_blocks
from ingest.parse.model import Block, BlockKind, Fragment
from ingest.parse.ooxml import A, OfficePackage, R, local
from ingest.parse.sheet_format import shown_number

C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_MAX_POINTS = 10_000
_MAX_LEVELS = 8


def drawn_blocks(
    package: OfficePackage, part: str, element: Any, table: int, page: int | None
) -> list[Block]:
    """Blocks of a `c:chart` or `dgm:relIds` reference in `part`; `table` numbers a chart's rows."""
    relations = package.relations(part)
    if element.tag == C + "chart":
        link = relations.get(element.get(R + "id") or "")
        root = None if link is None else package.optional(link.target)
        if link is not None and root is None and link.target not in package:
            package.findings.damaged(link.target)
        return [] if root is None else list(chart_blocks(root, table, page))
    link = relations.get(element.get(R + "dm") or "")
    root = None if link is None else package.optional(link.target)
    return [] if root is None else list(_diagram_blocks(root, page))


def drawing_text(element: Any) -> str:
    """All `a:t` under an element; a paragraph or a break ends a word."""
    parts = [(e.text or "") if e.tag == A + "t" else " " for e in element.iter(A + "t", A + "br", A + "p")]
    return " ".join("".join(parts).split())


def chart_blocks(root: Any, table: int, page: int | None) -> Iterator[Block]:
    """A chart as its title and a table: categories down, series across."""
    title = root.find(f".//{C}chart/{C}title")
    if title is not None and (text := drawing_text(title) or _cached(title)):
        yield Block(BlockKind.PARAGRAPH, (Fragment(text, "", page=page),))
    names: list[str] = []
    columns: list[dict[int, str]] = []
    categories: dict[int, str] = {}
    for series in root.iter(C + "ser"):
        name = series.find(C + "tx")
        names.append("" if name is None else _cached(name))
        for category in (series.find(C + "cat"), series.find(C + "xVal")):
            if category is not None:
                categories = {**_points(category), **categories}
        values = series.find(C + "val")
        values = series.find(C + "yVal") if values is None else values
        columns.append({} if values is None else _points(values))
    rows = [Row(tuple(Cell(n, i) for i, n in enumerate(["", *names])), 0, marked_header=True)]
    for index in sorted({*categories, *(i for c in columns for i in c)})[:_MAX_POINTS]:
        cells = [categories.get(index, ""), *(c.get(index, "") for c in columns)]
        rows.append(Row(tuple(Cell(text, i) for i, text in enumerate(cells)), 0))
    for block in table_blocks(rows, table, page=page, by_line=False, header=1 if any(names) else 0):
        yield Block(block.kind, block.fragments, table=table, is_table_header=block.is_table_header)


def _cached(element: Any) -> str:
    return " ".join(v.text.strip() for v in element.iter(C + "v") if v.text)


def _points(element: Any) -> dict[int, str]:
    """Texts by index. Of grouped categories each names its groups first: `Europe France`."""
    levels = element.findall(f".//{C}lvl")[:_MAX_LEVELS]
    if not levels:
        return _level_points(element)
    found = _level_points(levels[0])
    for level in levels[1:]:  # from the inner level out
        groups = _level_points(level)
        name = ""
        for index in range(max([*found, *groups], default=-1) + 1):
            name = groups.get(index, name)
            if index in found and name:
                found[index] = f"{name} {found[index]}"
    return found


def _level_points(element: Any) -> dict[int, str]:
    numeric = element.find(C + "numRef") is not None or element.find(C + "numLit") is not None
    code = next((f.text or "" for f in element.iter(C + "formatCode")), "")
    found: dict[int, str] = {}
    for point in element.iter(C + "pt"):
        index = point.get("idx") or ""
        value = point.find(C + "v")
        if index.isdigit() and int(index) < _MAX_POINTS and value is not None and value.text:
            text = value.text.strip()
            found[int(index)] = shown_number(text, point.get("formatCode") or code) if numeric else text
    return found


def _diagram_blocks(root: Any, page: int | None) -> Iterator[Block]:
    """SmartArt as a list: the points of its data model, by their parents."""
    texts: dict[str, str] = {}
    children: dict[str, list[tuple[int, str]]] = {}
    top: list[str] = []
    for point in root.iter(DGM + "pt"):
        key = point.get("modelId") or ""
        kind = point.get("type") or "node"
        if kind == "doc":
            top.append(key)
        elif kind in ("node", "asst"):
            body = point.find(DGM + "t")
            texts[key] = "" if body is None else drawing_text(body)
    for link in root.iter(DGM + "cxn"):
        if (link.get("type") or "parOf") == "parOf":
            rank = str(link.get("srcOrd") or "0")
            where = int(rank) if rank.isdigit() else 0
            children.setdefault(link.get("srcId") or "", []).append((where, link.get("destId") or ""))
    seen: set[str] = set()
    stack = [(key, -1) for key in reversed(top)]
    order: list[tuple[str, int]] = []
    while stack:
        key, depth = stack.pop()
        if key in seen:
            continue
        seen.add(key)
        order.append((key, depth))
        stack.extend((k, depth + 1) for _, k in sorted(children.get(key, ()), reverse=True))
    order.extend((key, 0) for key in texts if key not in seen)
    for key, depth in order:
        if texts.get(key):
            yield Block(BlockKind.LIST_ITEM, (Fragment(texts[key], "", page=page),), level=max(0, depth))


def is_drawn(element: Any) -> bool:
    """Whether an element refers to a chart or to SmartArt."""
    return element.tag in (C + "chart", DGM + "relIds") and local(element.getparent()) == "graphicData"
