"""JSON and JSON Lines: every value with the path that leads to it, escapes decoded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ingest.parse.charset import Decoded, decode
from ingest.parse.model import Block, BlockKind, Fragment, ParsedDocument, ParseOptions
from ingest.parse.text import lines_of, parse_text
from ingest.parse.within import check_length

_MAX_DEPTH = 60


def parse_json(content: bytes, options: ParseOptions, media_type: str) -> ParsedDocument:
    """Read JSON of any encoding; what is not JSON after all is read as plain text."""
    decoded = decode(content)
    check_length(len(decoded.text), options.limits)
    blocks = _whole(decoded) or _by_line(decoded)
    if not blocks:
        return parse_text(content, options, media_type)
    return ParsedDocument(
        media_type=media_type,
        blocks=tuple(blocks),
        encoding=decoded.encoding,
        encoding_confidence=decoded.confidence,
        warnings=decoded.warnings,
    )


def _whole(decoded: Decoded) -> list[Block]:
    try:
        return list(_blocks(json.loads(decoded.text), None))
    except (ValueError, RecursionError):
        return []


def _by_line(decoded: Decoded) -> list[Block]:
    blocks: list[Block] = []
    for line in lines_of(decoded.text):
        if not line.text.strip():
            continue
        try:
            blocks.extend(_blocks(json.loads(line.text), line.number))
        except (ValueError, RecursionError):
            return []
    return blocks


def _blocks(value: Any, line: int | None) -> Iterator[Block]:
    for path, text in _leaves(value, ""):
        label = f"{path}: {text}" if path else text
        yield Block(BlockKind.PARAGRAPH, (Fragment(label, "", line=line),))


def _leaves(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    if depth > _MAX_DEPTH:
        yield path, json.dumps(value, ensure_ascii=False)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, path, depth + 1)
    elif isinstance(value, str):
        yield path, value
    elif value is not None:
        yield path, json.dumps(value)
