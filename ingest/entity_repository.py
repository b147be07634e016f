"""Rows of entities, aliases, overrides and mentions ↔ values. Entities belong to a tenant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, false, func, or_, select
from sqlalchemy.orm import Session

from core.errors import NotFound
from core.models import (
    DocumentRow,
    EntityAliasRow,
    EntityEventRow,
    EntityRow,
    MentionRow,
    PassageRow,
)
from core.types import Scope
from ingest.catalogue import MAX_ALIAS_CHARS, alias_key
from ingest.growth import GROWN
from ingest.nil_clusters import PERSON, SEPARATOR
from ingest.repository import in_scope
from ingest.values import Entity, EntityEvent

_BESIDE = 8  # organisations told of a person


def visible(scope: Scope) -> ColumnElement[bool]:
    """Entities of the tenant; an empty scope sees none.

    What documents brought is seen by those who may read one of them.
    """
    if not scope.tenant_id or scope.collection_ids == ():
        return false()
    if scope.collection_ids is None:
        return EntityRow.tenant_id == scope.tenant_id
    named = (
        select(MentionRow.id)
        .join(PassageRow, PassageRow.id == MentionRow.passage_id)
        .where(
            MentionRow.tenant_id == scope.tenant_id,
            MentionRow.entity_id == EntityRow.id,
            PassageRow.collection_id.in_(scope.collection_ids),
        )
        .exists()
    )
    return and_(EntityRow.tenant_id == scope.tenant_id, or_(EntityRow.provenance != GROWN, named))


def find_entity(session: Session, scope: Scope, entity_id: str, *, lock: bool = False) -> EntityRow:
    """A visible entity; raises `NotFound`."""
    query = select(EntityRow).where(visible(scope), EntityRow.id == entity_id)
    if lock:
        query = query.with_for_update().execution_options(populate_existing=True)
    row = session.scalar(query)
    if row is None:
        raise NotFound("No such entity.", entity_id=entity_id)
    return row


def entities_page(
    session: Session,
    scope: Scope,
    *,
    text: str | None,
    kind: str | None,
    merged: bool,
    cursor: str | None,
    limit: int,
) -> list[EntityRow]:
    """Up to `limit` entities after `cursor` whose alias contains `text` in folded form."""
    query = select(EntityRow).where(visible(scope))
    if not merged:
        query = query.where(EntityRow.merged_into.is_(None))
    if kind:
        query = query.where(EntityRow.type == kind)
    if text and alias_key(text):
        named = select(EntityAliasRow.entity_id).where(
            EntityAliasRow.tenant_id == scope.tenant_id,
            EntityAliasRow.folded.contains(alias_key(text), autoescape=True),
        )
        query = query.where(EntityRow.id.in_(named))
    if cursor is not None:
        query = query.where(EntityRow.id > cursor)
    return list(session.scalars(query.order_by(EntityRow.id).limit(limit)))


def entity_values(session: Session, scope: Scope, rows: Sequence[EntityRow]) -> tuple[Entity, ...]:
    """Rows to values; mentions are counted in the live documents that the scope may read."""
    ids = [r.id for r in rows]
    aliases: dict[str, list[str]] = {}
    for alias in session.scalars(
        select(EntityAliasRow)
        .where(EntityAliasRow.entity_id.in_(ids))
        .order_by(EntityAliasRow.weight.desc(), EntityAliasRow.alias)
    ):
        aliases.setdefault(alias.entity_id, []).append(alias.alias)
    counted = session.execute(
        select(MentionRow.entity_id, func.count())
        .join(PassageRow, PassageRow.id == MentionRow.passage_id)
        .join(
            DocumentRow,
            and_(DocumentRow.id == MentionRow.document_id, DocumentRow.live_version == MentionRow.version),
        )
        .where(
            MentionRow.tenant_id == scope.tenant_id,
            MentionRow.entity_id.in_(ids),
            in_scope(scope, PassageRow.tenant_id, PassageRow.collection_id),
        )
        .group_by(MentionRow.entity_id)
    )
    mentions = {entity_id: int(n) for entity_id, n in counted}
    beside = _beside(session, scope, [r.id for r in rows if r.type == PERSON])
    return tuple(
        Entity(
            id=r.id,
            type=r.type,
            name=r.name,
            description=r.description,
            same_as=tuple(r.same_as),
            aliases=tuple(aliases.get(r.id, ())),
            provenance=r.provenance,
            merged_into=r.merged_into,
            blocked=r.blocked,
            mentions=mentions.get(r.id, 0),
            created_at=r.created_at,
            beside=tuple(sorted(beside.get(r.id, ()))[:_BESIDE]),
        )
        for r in rows
    )


def _beside(session: Session, scope: Scope, ids: Sequence[str]) -> dict[str, set[str]]:
    """Person → organisations beside the name, in passages that the scope may read."""
    found: dict[str, set[str]] = {}
    if not ids:
        return found
    for entity_id, names in session.execute(
        select(MentionRow.entity_id, MentionRow.affiliations)
        .join(PassageRow, PassageRow.id == MentionRow.passage_id)
        .where(
            MentionRow.tenant_id == scope.tenant_id,
            MentionRow.entity_id.in_(ids),
            MentionRow.affiliations != "",
            in_scope(scope, PassageRow.tenant_id, PassageRow.collection_id),
        )
        .distinct()
        .limit(_BESIDE * len(ids))
    ):
        found.setdefault(entity_id or "", set()).update(names.split(SEPARATOR))
    return found


# -- aliases -----------------------------------------------------------------------------------


def add_alias(
    session: Session, entity: EntityRow, alias: str, *, lang: str = "und", weight: float = 1.0
) -> bool:
    """Add an alias; False when the entity has it in folded form already (its weight may grow)."""
    folded = alias_key(alias)
    if not folded:
        return False
    known = session.get(EntityAliasRow, (entity.id, folded))
    if known is not None:
        known.weight = max(known.weight, weight)
        return False
    session.add(
        EntityAliasRow(
            entity_id=entity.id,
            folded=folded,
            tenant_id=entity.tenant_id,
            alias=alias[:MAX_ALIAS_CHARS],
            lang=lang,
            weight=weight,
        )
    )
    session.flush()
    return True


def remove_alias(session: Session, entity_id: str, alias: str) -> None:
    """Remove an alias; absent ones are fine."""
    known = session.get(EntityAliasRow, (entity_id, alias_key(alias)))
    if known is not None:
        session.delete(known)
        session.flush()


# -- overrides ---------------------------------------------------------------------------------


def add_event(
    session: Session, scope: Scope, entity_id: str, action: str, payload: dict[str, Any]
) -> EntityEventRow:
    """Record an override."""
    row = EntityEventRow(
        tenant_id=scope.tenant_id,
        entity_id=entity_id,
        action=action,
        payload=payload,
        principal=scope.principal,
    )
    session.add(row)
    session.flush()
    return row


def events_page(
    session: Session, scope: Scope, entity_id: str, *, before: int | None, limit: int
) -> list[EntityEventRow]:
    """Overrides of an entity, newest first."""
    query = select(EntityEventRow).where(
        EntityEventRow.tenant_id == scope.tenant_id, EntityEventRow.entity_id == entity_id
    )
    if before is not None:
        query = query.where(EntityEventRow.id < before)
    return list(session.scalars(query.order_by(EntityEventRow.id.desc()).limit(limit)))


def active_events(session: Session, tenant_id: str, actions: Iterable[str]) -> list[EntityEventRow]:
    """Overrides in force, oldest first."""
    return list(
        session.scalars(
            select(EntityEventRow)
            .where(
                EntityEventRow.tenant_id == tenant_id,
                EntityEventRow.action.in_(list(actions)),
                EntityEventRow.undone.is_(False),
            )
            .order_by(EntityEventRow.id)
        )
    )


def event_value(row: EntityEventRow) -> EntityEvent:
    """Row to value."""
    return EntityEvent(
        row.id, row.entity_id, row.action, dict(row.payload), row.principal, row.undone, row.at
    )
