"""Cell formats of a workbook: number format codes, and white text on plain paper (ECMA-376 part 1, 18.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ingest.parse.ooxml import local
from ingest.parse.sheet_format import BUILTIN


@dataclass(frozen=True, slots=True)
class CellStyle:
    """What bears on reading of a cell format: number format code, and white text on plain paper."""

    code: str = ""
    hidden: bool = False


def cell_styles(root: Any | None) -> list[CellStyle]:
    """Cell formats of the styles part, by index."""
    if root is None:
        return []
    codes = dict(BUILTIN)
    fonts: list[bool] = []
    fills: list[bool] = []
    formats: list[Any] = []
    for section in root:
        name = local(section)
        if name == "numFmts":
            for item in section:
                number = item.get("numFmtId") or ""
                if number.isdigit() and len(number) < 9:
                    codes[int(number)] = item.get("formatCode") or ""
        elif name == "fonts":
            fonts = [_is_white(font) for font in section]
        elif name == "fills":
            fills = [_is_filled(fill) for fill in section]
        elif name == "cellXfs":
            formats = list(section)
    found: list[CellStyle] = []
    for item in formats:
        number, font, fill = (_index(item.get(k)) for k in ("numFmtId", "fontId", "fillId"))
        white = font < len(fonts) and fonts[font] and not (fill < len(fills) and fills[fill])
        code = codes.get(number, "")
        found.append(CellStyle("" if code in ("General", "@") else code, white))
    return found


def _index(text: str | None) -> int:
    return int(text) if text and text.isdigit() and len(text) < 9 else 0


def _is_white(font: Any) -> bool:
    return any(local(c) == "color" and (c.get("rgb") or "").upper() == "FFFFFFFF" for c in font)


def _is_filled(fill: Any) -> bool:
    return any(
        local(p) == "gradientFill" or (p.get("patternType") or "none") not in ("none", "gray125")
        for p in fill
    )
