"""Write `.env.example` from the settings: every variable, commented out, with its default and its meaning."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from core.settings import Settings

HEAD = """\
# Every setting with its default. Copy to .env and uncomment what you change; `geo` reads .env from the
# folder it is started in, and real environment variables win. Unknown names are refused.
"""
_FOLDERS = {"packs.folder": "~/.cache/geo-engine/packs"}  # a default that depends on the machine


def variables(
    model: type[BaseModel] = Settings, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, FieldInfo]]:
    """Every leaf setting as (variable name, field), in the order of the code."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from variables(kind, (*path, name))
        else:
            yield "GEO_" + "__".join((*path, name)).upper(), field


def _default(name: str, field: FieldInfo) -> str:
    dotted = name.removeprefix("GEO_").lower().replace("__", ".")
    value: Any = _FOLDERS.get(dotted) or field.get_default(call_default_factory=True)
    if value is None or value == ():
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def render() -> str:
    """The file's text."""
    lines, section = [HEAD], ""
    for name, field in variables():
        head = name.split("__")[0] if "__" in name else ""
        if head != section:
            section = head
            lines.append(f"\n# -- {head.removeprefix('GEO_').lower()} --")
        if field.description:
            lines.append(f"# {field.description}")
        lines.append(f"#{name}={_default(name, field)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
