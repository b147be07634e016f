"""Filters as SQL over PassageRow joined with DocumentRow; the one meaning of a filter for every route.

Every condition is true or false, never NULL, so that NOT means what it says: conditions on JSON stand inside
EXISTS, those on a nullable column say that it is not NULL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, false, func, literal, not_, or_, select, true
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import aliased

from core.models import DocumentRow, MentionRow, PassageRow
from retrieval.filters import Field, Filters, Range, Scalar

Condition = ColumnElement[bool]
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le
}  # fmt: skip
_SQLITE_TYPES = {"number": ("integer", "real"), "string": ("text",), "true": ("true",), "false": ("false",)}


def passes(filters: Filters, *, tenant_id: str, dialect: str) -> Condition:
    """What lets a passage through.

    Args:
        filters: as parsed.
        tenant_id: whose mentions count.
        dialect: `sqlite` or `postgresql`.
    """
    document, passage = DocumentRow, PassageRow
    conditions: list[Condition] = []
    if filters.documents is not None:
        conditions.append(document.id.in_(filters.documents))
    if filters.trust is not None:
        conditions.append(document.trust.in_(filters.trust))
    if filters.lang is not None:
        conditions.append(passage.lang.in_([lang.value for lang in filters.lang]))
    if filters.tags is not None:
        conditions.append(_has_one(filters.tags, dialect))
    if filters.entities is not None:
        conditions.append(_mentions(filters.entities, tenant_id))
    for column, bounds in (
        (document.created_at, filters.created_at),
        (document.updated_at, filters.updated_at),
    ):
        conditions += _within(column, bounds)
    if filters.page is not None:
        conditions += [passage.page.is_not(None), *_within(passage.page, filters.page)]
    conditions += [_field(field, dialect) for field in filters.metadata]
    conditions += [passes(one, tenant_id=tenant_id, dialect=dialect) for one in filters.all]
    if filters.any is not None:
        inner = [passes(one, tenant_id=tenant_id, dialect=dialect) for one in filters.any]
        conditions.append(or_(false(), *inner))
    if filters.without is not None:
        conditions.append(not_(passes(filters.without, tenant_id=tenant_id, dialect=dialect)))
    return and_(true(), *conditions)


def _within(column: Any, bounds: Range | None) -> list[Condition]:
    return [_COMPARE[name](column, value) for name, value in bounds.bounds] if bounds else []


def _mentions(entities: tuple[str, ...], tenant_id: str) -> Condition:
    mention = aliased(MentionRow)  # the entity route looks at mentions in the statement around this
    return exists(
        select(mention.id).where(
            mention.passage_id == PassageRow.id,
            mention.tenant_id == tenant_id,
            mention.entity_id.in_(entities),
        )
    )


def _has_one(tags: tuple[str, ...], dialect: str) -> Condition:
    """Whether the document carries one of the tags; one look at them, however many are asked for."""
    if dialect == "postgresql":
        element = func.jsonb_array_elements_text(DocumentRow.tags.cast(postgresql.JSONB)).table_valued(
            "value"
        )
    else:
        element = func.json_each(DocumentRow.tags).table_valued("value")
    return exists(select(1).select_from(element).where(element.c.value.in_(tags)))


def _field(field: Field, dialect: str) -> Condition:
    """Each part by itself: a document has a field once, so EXISTS of both is both of one."""
    entry = _Entry(dialect)
    conditions: list[Condition] = []
    if field.values is not None:
        conditions.append(entry.holds(field.name, entry.is_one_of(field.values)))
    if field.range is not None:
        conditions.append(entry.holds(field.name, and_(*(entry.bound(*b) for b in field.range.bounds))))
    if field.exists is not None:
        present = entry.holds(field.name, entry.kind != "null")
        conditions.append(present if field.exists else not_(present))
    return and_(true(), *conditions)


class _Entry:
    """One name and value of a document's metadata, as a row of the database's own function."""

    def __init__(self, dialect: str) -> None:
        self._postgres = dialect == "postgresql"
        if self._postgres:
            meta = DocumentRow.meta.cast(postgresql.JSONB)
            self._row = func.jsonb_each(meta).table_valued("key", "value")
            self.kind: ColumnElement[Any] = func.jsonb_typeof(self._row.c.value)
        else:
            self._row = func.json_each(DocumentRow.meta).table_valued("key", "value", "type")
            self.kind = self._row.c.type

    def holds(self, name: str, condition: Condition) -> Condition:
        """Whether the field is there and meets the condition."""
        return exists(select(1).select_from(self._row).where(self._row.c.key == name, condition))

    def is_one_of(self, values: Sequence[Scalar]) -> Condition:
        """Whether it equals one of them, in type and value."""
        if self._postgres:
            return self._row.c.value.in_([literal(value, postgresql.JSONB) for value in values])
        truths = ["true" if value else "false" for value in values if isinstance(value, bool)]
        texts = [value for value in values if isinstance(value, str)]
        numbers = [
            value for value in values if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        kinds: list[Condition] = [self.kind.in_(truths)] if truths else []
        if texts:
            kinds.append(and_(self._is("string"), self._row.c.value.in_(texts)))
        if numbers:
            kinds.append(and_(self._is("number"), self._row.c.value.in_(numbers)))
        return or_(false(), *kinds)

    def bound(self, name: str, value: Scalar) -> Condition:
        """Numbers by value, strings by code point; a value of the other type is outside."""
        compare = _COMPARE[name]
        if not isinstance(value, str):
            number = literal(value, postgresql.JSONB) if self._postgres else value
            return and_(self._is("number"), compare(self._row.c.value, number))
        text: Any = self._row.c.value
        if self._postgres:  # the text of a JSON string, without its quotes
            text = func.jsonb_extract_path_text(func.jsonb_build_object("v", text), "v").collate("C")
        return and_(self._is("string"), compare(text, value))

    def _is(self, kind: str) -> Condition:
        return self.kind == kind if self._postgres else self.kind.in_(_SQLITE_TYPES[kind])
