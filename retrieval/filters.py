"""The filter algebra of a query: which documents and passages may answer it.

A filter is a JSON object; its keys are joined by AND and the values inside one key by OR:

| key | value | a passage passes when |
|---|---|---|
| `documents` | list of document ids | its document is one of them |
| `tags` | list of strings | its document carries at least one of them |
| `trust` | list of trust levels | its document's level is one of them |
| `metadata` | object of scalars | every named field of its document equals the value |
| `lang` | list of `en`, `zh`, `und` | its own language is one of them |
| `entities` | list of entity ids | it mentions at least one of them |

An absent or empty key filters nothing, except that an empty list matches nothing. Every route applies it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from core.errors import InvalidInput
from core.types import Lang

MAX_VALUES = 200  # values inside one key; keeps the SQL below every database's parameter limit

KEYS = ("documents", "tags", "trust", "metadata", "lang", "entities")

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Filters:
    """A parsed filter; None means the key was absent."""

    documents: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    trust: tuple[str, ...] | None = None
    metadata: tuple[tuple[str, Scalar], ...] = ()
    lang: tuple[Lang, ...] | None = None
    entities: tuple[str, ...] | None = None

    @property
    def empty(self) -> bool:
        """Whether every passage passes."""
        return (
            self.documents is None
            and self.tags is None
            and self.trust is None
            and not self.metadata
            and self.lang is None
            and self.entities is None
        )


def parse_filters(body: Mapping[str, Any]) -> Filters:
    """Read the JSON form.

    Raises:
        InvalidInput: an unknown key, a value of the wrong shape, or more than `MAX_VALUES` values.
    """
    unknown = sorted(set(body) - set(KEYS))
    if unknown:
        raise InvalidInput(f"Unknown filter {', '.join(unknown)}; known: {', '.join(KEYS)}.")
    langs = _strings(body, "lang")
    try:
        lang = None if langs is None else tuple(Lang(value) for value in langs)
    except ValueError as error:
        raise InvalidInput("filters.lang takes en, zh and und.") from error
    return Filters(
        _strings(body, "documents"),
        _strings(body, "tags"),
        _strings(body, "trust"),
        _metadata(body.get("metadata")),
        lang,
        _strings(body, "entities"),
    )


def _strings(body: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    raw = body.get(key)
    if raw is None:
        return None
    if not isinstance(raw, list | tuple) or not all(isinstance(v, str) for v in cast("list[Any]", raw)):
        raise InvalidInput(f"filters.{key} takes a list of strings.")
    values = cast("list[str]", raw)
    if len(values) > MAX_VALUES:
        raise InvalidInput(f"filters.{key} takes at most {MAX_VALUES} values.")
    return tuple(values)


def _metadata(raw: Any) -> tuple[tuple[str, Scalar], ...]:
    if raw is None:
        return ()
    if not isinstance(raw, dict):
        raise InvalidInput("filters.metadata takes an object.")
    fields = cast("dict[str, Any]", raw)
    if len(fields) > MAX_VALUES or not all(isinstance(v, str | int | float | bool) for v in fields.values()):
        raise InvalidInput(f"filters.metadata takes at most {MAX_VALUES} fields with scalar values.")
    return tuple(sorted(fields.items()))
