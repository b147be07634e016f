"""Office packages made on the spot, part by part."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

from tests.ingest.parsing import W

_OFFICE = "http://schemas.openxmlformats.org"
_REL = f"{_OFFICE}/officeDocument/2006/relationships"
S = f'xmlns="{_OFFICE}/spreadsheetml/2006/main" xmlns:r="{_REL}"'
P = (
    f'xmlns:p="{_OFFICE}/presentationml/2006/main" xmlns:a="{_OFFICE}/drawingml/2006/main" xmlns:r="{_REL}" '
    f'xmlns:mc="{_OFFICE}/markup-compatibility/2006" xmlns:m="{_OFFICE}/officeDocument/2006/math"'
)
ODF = (
    " ".join(
        f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for prefix, name in (
            ("office", "office"),
            ("text", "text"),
            ("table", "table"),
            ("style", "style"),
            ("draw", "drawing"),
            ("fo", "xsl-fo-compatible"),
            ("meta", "meta"),
        )
    )
    + ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
)
M = f'xmlns:m="{_OFFICE}/officeDocument/2006/math"'

Links = Mapping[str, tuple[str, str]]
"""Id → (kind, target)."""


def packed(members: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def rels(links: Links) -> str:
    inner = "".join(
        f'<Relationship Id="{key}" Type="{_REL}/{kind}" Target="{target}"/>'
        for key, (kind, target) in links.items()
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{inner}'
        "</Relationships>"
    )


def core(title: str = "", author: str = "", created: str = "", modified: str = "") -> str:
    return (
        '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/">'
        f"<dc:title>{title}</dc:title><dc:creator>{author}</dc:creator>"
        f"<dcterms:created>{created}</dcterms:created><dcterms:modified>{modified}</dcterms:modified>"
        "</cp:coreProperties>"
    )


def cell(reference: str, value: object, style: int = 0) -> str:
    """A cell of a worksheet: text inline, numbers as they are, None formatted but empty."""
    if value is None:
        return f'<c r="{reference}" s="{style}"/>'
    if isinstance(value, str):
        return f'<c r="{reference}" s="{style}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{reference}" s="{style}"><v>{value}</v></c>'


def column(index: int) -> str:
    name = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        name = chr(65 + rest) + name
    return name


def row(number: int, values: Sequence[object], attributes: str = "", first: int = 0) -> str:
    cells = "".join(cell(f"{column(first + i)}{number}", v) for i, v in enumerate(values) if v is not None)
    return f'<row r="{number}" {attributes}>{cells}</row>'


def sheet(rows: str, before: str = "", after: str = "") -> str:
    return f"<worksheet {S}>{before}<sheetData>{rows}</sheetData>{after}</worksheet>"


def xlsx(sheets: Mapping[str, str], states: Mapping[str, str] | None = None, **members: str) -> bytes:
    """A workbook of sheet name → XML; `members` by part name with `__` for the slash, without ending."""
    links = {f"rId{i}": ("worksheet", f"worksheets/sheet{i}.xml") for i in range(1, len(sheets) + 1)}
    listed = "".join(
        f'<sheet name="{name}" sheetId="{i}" state="{(states or {}).get(name, "visible")}" r:id="rId{i}"/>'
        for i, name in enumerate(sheets, start=1)
    )
    return packed(
        {
            "_rels/.rels": rels({"rId1": ("officeDocument", "xl/workbook.xml")}),
            "xl/workbook.xml": f"<workbook {S}><sheets>{listed}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": rels(links),
            **{f"xl/worksheets/sheet{i}.xml": xml for i, xml in enumerate(sheets.values(), start=1)},
            **{_part(name): content for name, content in members.items()},
        }
    )


def _part(name: str) -> str:
    name = name.replace("__", "/")
    return f"{name.replace('_rels/', '_rels/')}.xml" if not name.endswith("_rels") else name


def shape(text: str, kind: str = "", x: int = 0, y: int = 0, properties: str = "") -> str:
    """A shape of a slide: a placeholder of a kind, or a plain box at a place."""
    place = f'<p:ph type="{kind}"/>' if kind else ""
    body = "".join(
        line if line.startswith("<a:p>") else f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>"
        for line in text.split("\n")
    )
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="s" {properties}/><p:cNvSpPr/><p:nvPr>{place}</p:nvPr></p:nvSpPr>'
        f'<p:spPr><a:xfrm><a:off x="{x}" y="{y}"/><a:ext cx="1000" cy="1000"/></a:xfrm></p:spPr>'
        f"<p:txBody>{body}</p:txBody></p:sp>"
    )


def frame(inner: str, uri: str = "table") -> str:
    return (
        '<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="4" name="f"/><p:nvPr/></p:nvGraphicFramePr>'
        '<p:xfrm><a:off x="0" y="5000000"/><a:ext cx="9" cy="9"/></p:xfrm><a:graphic>'
        f'<a:graphicData uri="{_OFFICE}/drawingml/2006/{uri}">{inner}</a:graphicData></a:graphic></p:graphicFrame>'
    )


def pptx(slides: Sequence[str], shows: Sequence[str] = (), **members: str) -> bytes:
    """A presentation of slides given as the XML of their shapes."""
    links = {f"rId{i}": ("slide", f"slides/slide{i}.xml") for i in range(1, len(slides) + 1)}
    order = "".join(f'<p:sldId id="{255 + i}" r:id="rId{i}"/>' for i in range(1, len(slides) + 1))
    parts = {
        f"ppt/slides/slide{i}.xml": (
            f'<p:sld {P} show="{shows[i - 1] if shows else 1}"><p:cSld><p:spTree>{xml}</p:spTree></p:cSld></p:sld>'
        )
        for i, xml in enumerate(slides, start=1)
    }
    return packed(
        {
            "_rels/.rels": rels({"rId1": ("officeDocument", "ppt/presentation.xml")}),
            "ppt/presentation.xml": (
                f'<p:presentation {P}><p:sldIdLst>{order}</p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/>'
                "</p:presentation>"
            ),
            "ppt/_rels/presentation.xml.rels": rels(links),
            **parts,
            **{_part(name): content for name, content in members.items()},
        }
    )


def odt(body: str, styles: str = "", automatic: str = "", **members: str) -> bytes:
    """A text document around the XML of `office:text`."""
    return packed(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": (
                f"<office:document-content {ODF}><office:automatic-styles>{automatic}</office:automatic-styles>"
                f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
            ),
            "styles.xml": f"<office:document-styles {ODF}><office:styles>{styles}</office:styles>"
            "</office:document-styles>",
            **{_part(name): content for name, content in members.items()},
        }
    )


def ods(tables: str, automatic: str = "") -> bytes:
    """A spreadsheet around the XML of its tables."""
    return packed(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "content.xml": (
                f"<office:document-content {ODF}><office:automatic-styles>{automatic}</office:automatic-styles>"
                f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
                "</office:document-content>"
            ),
        }
    )


def word_part(inner: str, root: str) -> str:
    return f"<w:{root} {W}>{inner}</w:{root}>"
