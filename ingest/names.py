"""Names, tags and metadata that a client sent, made safe to store and to show."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from core.errors import InvalidInput

MAX_NAME_CHARS = 200
MAX_TAGS = 64
MAX_TAG_CHARS = 64
MAX_METADATA_BYTES = 16_384
_SEPARATORS = re.compile(r"[/\\]")
# C0 and C1 controls, bidi overrides (a name must not read as another), zero-width marks, lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def clean_text(value: str) -> str:
    """Drop NUL, other controls and lone surrogates, which no database takes; keep tab and newlines."""
    return _CONTROLS.sub("", value)


def display_name(file_name: str) -> str:
    """The last part of what a client called its file, free of controls; `document` when nothing is left."""
    last = _SEPARATORS.split(_UNSAFE.sub("", file_name))[-1]
    last = unicodedata.normalize("NFC", last).strip()
    if not last.strip(". "):
        return "document"
    if len(last) > MAX_NAME_CHARS:
        stem, dot, suffix = last.rpartition(".")
        keep = dot + suffix if dot and len(suffix) <= 16 else ""
        last = (stem if keep else last)[: MAX_NAME_CHARS - len(keep)] + keep
    return last


def title_of(value: str, what: str) -> str:
    """A required short name in one line; raises `InvalidInput` when blank or too long."""
    cleaned = " ".join(_UNSAFE.sub(" ", value).split())
    if not cleaned:
        raise InvalidInput(f"The {what} is blank.")
    if len(cleaned) > MAX_NAME_CHARS:
        raise InvalidInput(f"The {what} is longer than {MAX_NAME_CHARS} characters.")
    return cleaned


def clean_tags(tags: Iterable[str]) -> list[str]:
    """Trimmed, without blanks and repeats, in the given order."""
    cleaned = list(dict.fromkeys(t for t in (_UNSAFE.sub("", tag).strip() for tag in tags) if t))
    if len(cleaned) > MAX_TAGS or any(len(t) > MAX_TAG_CHARS for t in cleaned):
        raise InvalidInput(f"At most {MAX_TAGS} tags of {MAX_TAG_CHARS} characters each.")
    return cleaned


def clean_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """JSON metadata without control characters in keys or texts; raises `InvalidInput` above 16 kB."""
    cleaned: dict[str, Any] = _clean_json(dict(metadata))
    try:
        size = len(json.dumps(cleaned, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise InvalidInput("The metadata must be a JSON object of finite values.") from error
    if size > MAX_METADATA_BYTES:
        raise InvalidInput(f"The metadata is larger than {MAX_METADATA_BYTES} bytes.")
    return cleaned


def _clean_json(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(k)): _clean_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean_json(v) for v in value]
    return value
