"""The filter algebra of a query: which documents and passages may answer it; see `docs/filters.md`.

A filter is a JSON object; its keys are joined by AND and the values inside one list by OR:

| key | value | a passage passes when |
|---|---|---|
| `documents` | list of document ids | its document is one of them |
| `tags` | list of strings | its document carries at least one of them |
| `trust` | list of trust levels | its document's level is one of them |
| `metadata` | object: field → scalar, or conditions | every named field of its document meets its condition |
| `lang` | list of `en`, `zh`, `und` | its own language is one of them |
| `entities` | list of entity ids | it mentions at least one of them |
| `created_at`, `updated_at` | range of RFC 3339 times | its document was made, or last changed, inside |
| `page` | range of integers | it stands on a page inside; one without pages never passes |
| `all` | list of filters | it passes each of them |
| `any` | list of filters | it passes at least one of them |
| `not` | a filter | it does not pass it |

An absent key and an empty object filter nothing; an empty list matches nothing, except in `all`. Every
condition is true or false, never unknown: a field that is missing equals nothing, so `not` lets it through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

from core.errors import InvalidInput
from core.types import Lang

MAX_VALUES = 200  # values inside one list
MAX_NODES = 64  # filters inside one filter, itself included; keeps the SQL below every database's limits
MAX_DEPTH = 6
MAX_TERMS = 1000  # values and fields in all: each is a term of the statement that every route runs
BOUNDS = ("gt", "gte", "lt", "lte")
KEYS = (
    "documents", "tags", "trust", "metadata", "lang", "entities", "created_at", "updated_at", "page", "all",
    "any", "not",
)  # fmt: skip
_CONDITIONS = ("in", "exists", *BOUNDS)

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds by name (`gt`, `gte`, `lt`, `lte`), all of which hold."""

    bounds: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A condition on one field of a document's metadata; those that are given all hold.

    Attributes:
        values: the field equals one of them, in type and value; numbers are one type.
        range: numbers compare with numbers by value, strings with strings by code point.
        exists: whether the field is there; null counts as absent.
    """

    name: str
    values: tuple[Scalar, ...] | None = None
    range: Range | None = None
    exists: bool | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """A parsed filter; None means the key was absent, `without` is what `not` names."""

    documents: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    trust: tuple[str, ...] | None = None
    metadata: tuple[Field, ...] = ()
    lang: tuple[Lang, ...] | None = None
    entities: tuple[str, ...] | None = None
    created_at: Range | None = None
    updated_at: Range | None = None
    page: Range | None = None
    all: tuple[Filters, ...] = ()
    any: tuple[Filters, ...] | None = None
    without: Filters | None = None

    @property
    def empty(self) -> bool:
        """Whether every passage passes."""
        return self == Filters()

    @property
    def by_document(self) -> bool:
        """Whether a document's passages pass together or not at all."""
        own = self.lang is None and self.entities is None and self.page is None
        inner = (*self.all, *(self.any or ()), *([self.without] if self.without else []))
        return own and all(one.by_document for one in inner)


def parse_filters(body: Mapping[str, Any]) -> Filters:
    """Read the JSON form.

    Raises:
        InvalidInput: an unknown key, a value of the wrong shape, or more than the limits allow.
    """
    return _Parser().filters(body, "filters", 1)


class _Parser:
    """One parse; counts filters, values and fields as it goes down."""

    def __init__(self) -> None:
        self._nodes = 0
        self._terms = 0

    def filters(self, body: Any, at: str, depth: int) -> Filters:
        if not isinstance(body, Mapping):
            raise InvalidInput(f"{at} takes an object.")
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise InvalidInput(f"A filter takes at most {MAX_NODES} filters inside, {MAX_DEPTH} deep.")
        keys = cast("Mapping[str, Any]", body)
        if unknown := sorted(set(keys) - set(KEYS)):
            raise InvalidInput(f"Unknown filter {', '.join(unknown)} in {at}; known: {', '.join(KEYS)}.")
        negated = keys.get("not")
        own = Filters(
            documents=_strings(keys.get("documents"), f"{at}.documents"),
            tags=_strings(keys.get("tags"), f"{at}.tags"),
            trust=_strings(keys.get("trust"), f"{at}.trust"),
            metadata=_metadata(keys.get("metadata"), f"{at}.metadata"),
            lang=_langs(keys.get("lang"), f"{at}.lang"),
            entities=_strings(keys.get("entities"), f"{at}.entities"),
            created_at=_range(keys.get("created_at"), f"{at}.created_at", _time),
            updated_at=_range(keys.get("updated_at"), f"{at}.updated_at", _time),
            page=_range(keys.get("page"), f"{at}.page", _page),
        )
        self._terms += _terms(own)
        if self._terms > MAX_TERMS:
            raise InvalidInput(f"A filter takes at most {MAX_TERMS} values and fields in all.")
        return replace(
            own,
            all=self._several(keys.get("all"), f"{at}.all", depth) or (),
            any=self._several(keys.get("any"), f"{at}.any", depth),
            without=None if negated is None else self.filters(negated, f"{at}.not", depth + 1),
        )

    def _several(self, raw: Any, at: str, depth: int) -> tuple[Filters, ...] | None:
        if raw is None:
            return None
        if not isinstance(raw, list | tuple):
            raise InvalidInput(f"{at} takes a list of filters.")
        several = cast("list[Any]", raw)
        return tuple(self.filters(one, f"{at}[{n}]", depth + 1) for n, one in enumerate(several))


def _terms(own: Filters) -> int:
    lists = (own.documents, own.tags, own.trust, own.entities)
    values = sum(len(one) for one in lists if one is not None)
    return values + sum(1 + len(field.values or ()) for field in own.metadata)


def _strings(raw: Any, at: str) -> tuple[str, ...] | None:
    if raw is None:
        return None
    if not isinstance(raw, list | tuple) or not all(map(_is_text, cast("list[Any]", raw))):
        raise InvalidInput(f"{at} takes a list of strings.")
    return tuple(cast("list[str]", _limited(raw, at)))


def _langs(raw: Any, at: str) -> tuple[Lang, ...] | None:
    values = _strings(raw, at)
    try:
        return None if values is None else tuple(Lang(value) for value in values)
    except ValueError as error:
        raise InvalidInput(f"{at} takes en, zh and und.") from error


def _metadata(raw: Any, at: str) -> tuple[Field, ...]:
    if raw is None:
        return ()
    if not isinstance(raw, Mapping) or len(cast("Mapping[str, Any]", raw)) > MAX_NODES:
        raise InvalidInput(f"{at} takes an object of at most {MAX_NODES} fields.")
    fields = cast("Mapping[str, Any]", raw)
    if not all(map(_is_text, fields)):
        raise InvalidInput(f"{at} takes names without NUL.")
    return tuple(_field(name, fields[name], f"{at}.{name}") for name in sorted(fields))


def _field(name: str, raw: Any, at: str) -> Field:
    if _is_scalar(raw):
        return Field(name, (raw,))
    if not isinstance(raw, Mapping) or not raw or set(cast("Mapping[str, Any]", raw)) - set(_CONDITIONS):
        raise InvalidInput(f"{at} takes a scalar, or an object with {', '.join(_CONDITIONS)}.")
    conditions = cast("Mapping[str, Any]", raw)
    if unset := [key for key in _CONDITIONS if key in conditions and conditions[key] is None]:
        # Left out, it would let through what the caller meant to keep out.
        raise InvalidInput(f"{at}.{unset[0]} is null; give it a value or leave it out.")
    values, exists = conditions.get("in"), conditions.get("exists")
    if values is not None and (
        not isinstance(values, list | tuple) or not all(map(_is_scalar, cast("list[Any]", values)))
    ):
        raise InvalidInput(f"{at}.in takes a list of scalars.")
    if exists is not None and not isinstance(exists, bool):
        raise InvalidInput(f"{at}.exists takes true or false.")
    bounds = {key: conditions[key] for key in BOUNDS if key in conditions}
    return Field(
        name,
        None if values is None else tuple(_limited(values, at)),
        _range(bounds, at, _bound) if bounds else None,
        exists,
    )


def _is_scalar(value: Any) -> bool:
    """Whether databases can compare with it: whole numbers of 64 bits, finite numbers, text without NUL."""
    if isinstance(value, str):
        return _is_text(value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and abs(value) < 1 << 63


def _is_text(value: Any) -> bool:
    """A string that every database can store: no NUL, no half of a surrogate pair."""
    if not isinstance(value, str) or "\x00" in value:
        return False
    return not any("\ud800" <= c <= "\udfff" for c in value)


def _limited(values: Any, at: str) -> list[Any]:
    found = list(cast("list[Any]", values))
    if len(found) > MAX_VALUES:
        raise InvalidInput(f"{at} takes at most {MAX_VALUES} values.")
    return found


def _range(raw: Any, at: str, read: Callable[[Any, str], Any]) -> Range | None:
    if raw is None:
        return None
    if not isinstance(raw, Mapping) or not raw or set(cast("Mapping[str, Any]", raw)) - set(BOUNDS):
        raise InvalidInput(f"{at} takes an object with {', '.join(BOUNDS)}.")
    bounds = cast("Mapping[str, Any]", raw)
    return Range(tuple((key, read(bounds[key], f"{at}.{key}")) for key in BOUNDS if key in bounds))


def _bound(raw: Any, at: str) -> str | int | float:
    if isinstance(raw, bool) or not _is_scalar(raw):
        raise InvalidInput(f"{at} takes a number or a string.")
    return raw


def _page(raw: Any, at: str) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or abs(raw) >= 1 << 31:
        raise InvalidInput(f"{at} takes an integer.")
    return raw


def _time(raw: Any, at: str) -> datetime:
    try:
        found = datetime.fromisoformat(raw)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (
        TypeError,
        ValueError,
        OverflowError,
    ) as error:  # overflow: in UTC it is before year 1 or after 9999
        raise InvalidInput(f"{at} takes a time as RFC 3339 has it, such as 2026-01-31T09:00:00Z.") from error
