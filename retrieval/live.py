"""Live passages by id, as every question reads them: scoped, live versions only, one statement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, bindparam, select, type_coerce
from sqlalchemy.orm import Session
from sqlalchemy.sql.expression import UnaryExpression
from sqlalchemy.sql.operators import custom_op

from core.among import SQLITE, among, bound
from core.db import QuickRead, plain_rows
from core.models import DocumentRow, PassageRow
from core.types import DocumentStatus, Lang, Passage, Scope, Span
from retrieval.filter_sql import passes
from retrieval.filters import Filters

_KNOWN_LANGS = {lang.value: lang for lang in Lang}
_LANG, _ID = 8, 0  # places in a row


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A live passage with what is shown of its document."""

    passage: Passage
    collection_id: str
    document_name: str
    trust: str


class LivePassages(Mapping[int, StoredPassage]):
    """Live passages by id. A row becomes a passage when it is looked at: of a hundred recalled ten are shown.

    Args:
        rows: of `_by_ids`.
    """

    def __init__(self, rows: Iterable[Sequence[Any]] = ()) -> None:
        self._rows = {row[_ID]: row for row in rows}
        self._made: dict[int, StoredPassage] = {}

    def __getitem__(self, passage_id: int) -> StoredPassage:
        """The passage; `KeyError` when it is not among the live ones."""
        made = self._made.get(passage_id)
        if made is None:
            made = self._made[passage_id] = _stored(self._rows[passage_id])
        return made

    def __iter__(self) -> Iterator[int]:
        """Ids, in no order."""
        return iter(self._rows)

    def __len__(self) -> int:
        """How many."""
        return len(self._rows)

    def keys(self) -> KeysView[int]:
        """The ids; set operations run on the dictionary's own."""
        return self._rows.keys()

    def langs(self) -> dict[int, Lang]:
        """Language by id."""
        return {i: _lang(row[_LANG]) for i, row in self._rows.items()}


def live_passages(
    session: Session | QuickRead, scope: Scope, passage_ids: Iterable[int], filters: Filters | None = None
) -> LivePassages:
    """The passages among `passage_ids` that this scope may see now, by id; all others are left out."""
    dialect = session.get_bind().dialect.name
    statement = _by_ids(dialect, limited=scope.collection_ids is not None)
    if filters is not None and not filters.empty:
        statement = statement.where(passes(filters, tenant_id=scope.tenant_id, dialect=dialect))
    given: dict[str, Any] = {"tenant": scope.tenant_id, "ids": bound(sorted(set(passage_ids)), dialect)}
    if scope.collection_ids is not None:
        given["collections"] = bound(scope.collection_ids, dialect)
    return LivePassages(plain_rows(session, statement, given))


def visible(scope: Scope, filters: Filters, *, dialect: str) -> ColumnElement[bool]:
    """What every route applies to PassageRow joined with DocumentRow: scope, live version, filters."""
    conditions = [*_live(scope.tenant_id)]
    if scope.collection_ids is not None:
        conditions.append(DocumentRow.collection_id.in_(scope.collection_ids))
    return and_(*conditions, passes(filters, tenant_id=scope.tenant_id, dialect=dialect))


def live_languages(
    session: Session, scope: Scope, passage_ids: Iterable[int], filters: Filters
) -> dict[int, Lang]:
    """The ids among `passage_ids` that this scope and filter may see now, with their languages."""
    dialect = session.get_bind().dialect.name
    statement = (
        select(PassageRow.id, PassageRow.lang)
        .join(DocumentRow, DocumentRow.id == PassageRow.document_id)
        .where(among(PassageRow.__table__.c.id, "ids", dialect), visible(scope, filters, dialect=dialect))
    )
    rows = plain_rows(session, statement, {"ids": bound(sorted(set(passage_ids)), dialect)})
    return {passage_id: _lang(lang) for passage_id, lang in rows}


@lru_cache(maxsize=4)
def _by_ids(dialect: str, *, limited: bool) -> Select[*tuple[Any, ...]]:
    """Live passages by ids, inside a tenant and, when `limited`, inside collections.

    Every question runs it, and putting a statement together costs half as much as running it.
    """
    p, d = PassageRow.__table__.c, DocumentRow.__table__.c
    tenant = bindparam("tenant")
    statement = (
        select(
            p.id, p.document_id, p.version, p.ordinal, p.start, p.end, p.page,
            type_coerce(p.heading_path, Text), p.lang, p.text, type_coerce(p.page_breaks, Text),
            d.collection_id, d.name, d.trust,
        )
        .select_from(PassageRow.__table__.join(DocumentRow.__table__, d.id == p.document_id))
        .where(
            among(p.id, "ids", dialect),
            p.version == d.live_version, d.status != DocumentStatus.DELETING.value,
            *(_beside_the_index(column, dialect) == tenant for column in (d.tenant_id, p.tenant_id)),
        )
    )  # fmt: skip
    if limited:
        statement = statement.where(among(d.collection_id, "collections", dialect))
    return statement


def _beside_the_index(column: ColumnElement[str], dialect: str) -> ColumnElement[str]:
    """A column for which no index is used: SQLite would look a tenant up before it looks at a row."""
    return UnaryExpression(column, operator=custom_op("+")) if dialect == SQLITE else column


def _live(tenant: Any) -> tuple[ColumnElement[bool], ...]:
    return (
        DocumentRow.tenant_id == tenant,
        PassageRow.tenant_id == tenant,
        PassageRow.version == DocumentRow.live_version,
        DocumentRow.status != DocumentStatus.DELETING.value,
    )


def _stored(row: Sequence[Any]) -> StoredPassage:
    """A row of `_by_ids`; unpacked by place, which costs half of reading it by name."""
    (
        passage_id, document_id, version, ordinal, start, end, page, heading_path, lang, text,
        page_breaks, collection_id, name, trust,
    ) = row  # fmt: skip
    passage = Passage(
        id=passage_id,
        document_id=document_id,
        version=version,
        ordinal=ordinal,
        span=Span(start, end),
        page=page,
        heading_path=tuple(_listed(heading_path)),
        lang=_lang(lang),
        text=text,
        page_breaks=tuple((at, number) for at, number in _listed(page_breaks)),
    )
    return StoredPassage(passage, collection_id, name, trust)


def _listed(column: Any) -> Sequence[Any]:
    """A JSON column: text from SQLite, read already by PostgreSQL's driver; mostly empty."""
    if column in (None, "[]", "null"):
        return ()
    return json.loads(column) if isinstance(column, str) else column


def _lang(value: str) -> Lang:
    return _KNOWN_LANGS.get(value, Lang.UND)
