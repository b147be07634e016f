"""Front matter of a Markdown file: YAML between `---` or TOML between `+++`."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import regex
import yaml

_FRONT_MATTER = regex.compile(
    r"\A(?P<fence>---|\+\+\+)[ \t]*(?:\r\n?|\n)(?P<body>(?:.*?(?:\r\n?|\n))??)"
    r"(?:(?P=fence)|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)",
    regex.DOTALL,
)
_NOT_LINE_END = regex.compile(r"[^\r\n]")
_MAX_CHARS = 65_536
_MAX_VALUE = 1000
# What authors call the things that a document says of itself, in order of preference.
_NAMES = {
    "author": ("author", "authors", "作者"),
    "published": ("published", "pubdate", "date", "发布日期", "日期"),
    "created": ("created", "created_at"),
    "modified": ("modified", "updated", "lastmod", "last_modified_at", "更新日期"),
    "description": ("description", "summary", "abstract", "excerpt", "摘要"),
    "language": ("language", "lang", "locale"),
}


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """Title and properties, and the text with the front matter blanked out, so that offsets stay."""

    body: str
    title: str = ""
    properties: Mapping[str, str] = field(default_factory=dict[str, str])


def read_front_matter(text: str) -> FrontMatter:
    """Read the front matter, if `text` begins with one; what is none is left in the body."""
    found = _FRONT_MATTER.match(text[:_MAX_CHARS])
    values = _values(found.group("fence"), found.group("body")) if found else None
    if found is None or values is None:
        return FrontMatter(text)
    properties = {
        name: value
        for name, keys in _NAMES.items()
        if (value := next((v for k in keys if (v := _written(values.get(k)))), ""))
    }
    body = _NOT_LINE_END.sub(" ", found.group()) + text[found.end() :]
    return FrontMatter(body, _written(values.get("title") or values.get("标题")), properties)


def _values(fence: str, body: str) -> dict[str, Any] | None:
    try:
        read: Any = tomllib.loads(body) if fence == "+++" else yaml.safe_load(body)
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError, RecursionError):
        return None
    if read is None:
        return {}
    if not isinstance(read, dict):
        return None
    return {str(key).lower(): value for key, value in read.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _written(value: Any) -> str:
    """A scalar, a date in ISO 8601, or several names; nothing else."""
    if isinstance(value, datetime.date):  # datetimes too
        return value.isoformat()
    if isinstance(value, list):
        names = [_written(item) for item in value[:20]]  # pyright: ignore[reportUnknownVariableType]
        return ", ".join(name for name in names if name)
    if isinstance(value, dict):
        return _written(value.get("name"))  # pyright: ignore[reportUnknownMemberType]
    return str(value)[:_MAX_VALUE] if isinstance(value, str | int | float) else ""
