"""Rows of entities, aliases, overrides and mentions ↔ values. Entities belong to a tenant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, false, func, or_, select, update
from sqlalchemy.orm import Session

from core.db import affected, plain_rows, utcnow
from core.errors import NotFound
from core.jobs import add_job
from core.models import (
    DocumentRow,
    EntityAliasRow,
    EntityEventRow,
    EntityRow,
    MentionRow,
    PassageRow,
)
from core.types import Scope
from core.worker import Task
from ingest.catalogue import MAX_ALIAS_CHARS, Alias, Catalogue, CatalogueEntity, alias_key
from ingest.growth import GROWN
from ingest.nil_clusters import PERSON, SEPARATOR
from ingest.repository import in_scope
from ingest.values import Entity, EntityEvent, EntityMention

_BESIDE = 8  # organisations told of a person
_CLOCK_SLACK = timedelta(seconds=60)  # between the machines that write aliases


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


def catalogued(tenant_id: str) -> ColumnElement[bool]:
    """Entities that linking holds in memory: all but those that documents brought and nobody touched."""
    touched = select(EntityEventRow.entity_id).where(EntityEventRow.tenant_id == tenant_id)
    return and_(
        EntityRow.tenant_id == tenant_id,
        or_(EntityRow.provenance != GROWN, EntityRow.merged_into.is_not(None), EntityRow.id.in_(touched)),
    )


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


# -- mentions ----------------------------------------------------------------------------------


def move_mentions(
    session: Session,
    tenant_id: str,
    source: str,
    target: str | None,
    note: str,
    *,
    document_ids: Sequence[str] | None = None,
) -> int:
    """Re-link mentions of `source` to `target` (None: NIL) and append `note` to their reasons."""
    query = update(MentionRow).where(MentionRow.tenant_id == tenant_id, MentionRow.entity_id == source)
    if document_ids is not None:
        query = query.where(MentionRow.document_id.in_(document_ids))
    return affected(session.execute(query.values(entity_id=target, reason=MentionRow.reason + f";{note}")))


def move_mentions_back(session: Session, tenant_id: str, holder: str | None, original: str, note: str) -> int:
    """Undo `move_mentions`: those that `holder` got by `note` return to `original`."""
    held = MentionRow.entity_id.is_(None) if holder is None else MentionRow.entity_id == holder
    return affected(
        session.execute(
            update(MentionRow)
            .where(
                MentionRow.tenant_id == tenant_id,
                held,
                MentionRow.reason.contains(f";{note}", autoescape=True),
            )
            .values(entity_id=original, reason=func.replace(MentionRow.reason, f";{note}", ""))
        )
    )


def mentions_page(
    session: Session, scope: Scope, entity_id: str, *, after: int | None, limit: int
) -> list[EntityMention]:
    """Mentions of an entity in the live documents that the scope may read, oldest first."""
    query = (
        select(MentionRow, PassageRow, DocumentRow.name)
        .join(PassageRow, PassageRow.id == MentionRow.passage_id)
        .join(
            DocumentRow,
            and_(DocumentRow.id == MentionRow.document_id, DocumentRow.live_version == MentionRow.version),
        )
        .where(
            MentionRow.tenant_id == scope.tenant_id,
            MentionRow.entity_id == entity_id,
            in_scope(scope, PassageRow.tenant_id, PassageRow.collection_id),
        )
    )
    if after is not None:
        query = query.where(MentionRow.id > after)
    return [
        EntityMention(
            id=mention.id,
            document_id=mention.document_id,
            document_name=name,
            passage_id=passage.id,
            version=mention.version,
            start=mention.start,
            end=mention.end,
            surface=mention.surface,
            score=mention.score,
            reason=mention.reason,
            passage_start=passage.start,
            text=passage.text,
        )
        for mention, passage, name in session.execute(query.order_by(MentionRow.id).limit(limit))
    ]


def documents_naming(session: Session, tenant_id: str, entity_id: str) -> list[str]:
    """Ids of the documents with a mention of the entity."""
    return list(
        session.scalars(
            select(MentionRow.document_id)
            .where(MentionRow.tenant_id == tenant_id, MentionRow.entity_id == entity_id)
            .distinct()
        )
    )


def mentions_named(session: Session, tenant_id: str, alias: str) -> list[MentionRow]:
    """Mentions whose surface folds like `alias`."""
    rows = session.scalars(
        select(MentionRow).where(
            MentionRow.tenant_id == tenant_id,
            (MentionRow.surface == alias) | (func.lower(MentionRow.surface) == alias.lower()),
        )
    )
    return [r for r in rows if alias_key(r.surface) == alias_key(alias)]


def ask_relink(session: Session, tenant_id: str, change: str, entity_ids: Sequence[str] = ()) -> str:
    """Queue a re-link of the documents that aliases changed in this transaction concern.

    Args:
        session: the write session that changes them.
        tenant_id: whose catalogue it is.
        change: a name for the change; asking twice for one queues one job.
        entity_ids: entities whose mentions are linked anew as well, because an alias of theirs went.

    Returns:
        The job's id.
    """
    since = utcnow() - _CLOCK_SLACK
    return add_job(
        session,
        Task.RELINK,
        tenant_id=tenant_id,
        subject_kind="catalogue",
        subject_id=tenant_id,
        attempt_key=change[:40],
        gives_way=True,
        since=since.isoformat(),
        entity_ids=list(entity_ids),
    )


# -- catalogue ---------------------------------------------------------------------------------


def catalogue_stamp(session: Session, tenant_id: str) -> tuple[int, int, int]:
    """Changes whenever the tenant's catalogue does; every change is an event or the undoing of one."""
    ((newest, undone, entities),) = plain_rows(session, _stamp(), {"tenant": tenant_id})
    return int(newest or 0), int(undone or 0), int(entities or 0)


@lru_cache(maxsize=1)
def _stamp() -> Select[*tuple[Any, ...]]:
    tenant = bindparam("tenant")
    entities = (
        select(func.count())
        .select_from(EntityRow)
        .where(EntityRow.tenant_id == tenant, EntityRow.provenance != GROWN)
        .scalar_subquery()
    )
    undone = func.sum(case((EntityEventRow.undone, 1), else_=0))
    return select(func.max(EntityEventRow.id), undone, entities).where(EntityEventRow.tenant_id == tenant)


def load_catalogue(session: Session, tenant_id: str) -> Catalogue:
    """The tenant's catalogue with every override in force applied."""
    rows = session.execute(
        select(
            EntityRow.id,
            EntityRow.type,
            EntityRow.name,
            EntityRow.description,
            EntityRow.merged_into,
            EntityRow.provenance,
        ).where(catalogued(tenant_id), EntityRow.blocked.is_(False))
    ).all()
    merged: dict[str, str | None] = {r.id: r.merged_into for r in rows}
    target = _merge_targets(merged)
    aliases = session.execute(
        select(EntityAliasRow.entity_id, EntityAliasRow.folded, EntityAliasRow.alias, EntityAliasRow.weight)
        .join(EntityRow, EntityRow.id == EntityAliasRow.entity_id)
        .where(EntityAliasRow.tenant_id == tenant_id, catalogued(tenant_id))
    )
    pins: dict[str, str] = {}
    splits: dict[tuple[str, str], str] = {}
    for event in active_events(session, tenant_id, ["pin_alias", "split"]):
        if event.action == "pin_alias":
            pins[alias_key(event.payload["alias"])] = target.get(event.entity_id) or event.entity_id
            continue
        for ids, entity_id in (
            (event.payload["kept_document_ids"], event.entity_id),
            (event.payload["document_ids"], event.payload["entity_id"]),
        ):
            final = target.get(entity_id) or entity_id
            splits.update({(event.entity_id, document_id): final for document_id in ids})
    # A name alone never means a person whom documents brought (ADR 0019), whatever was decided about them,
    # unless somebody pinned a name to the person or split them in two.
    by_name = {*pins.values(), *(i for i, _ in splits)}
    unnamed = {r.id for r in rows if r.provenance == GROWN and r.type == PERSON} - by_name
    return Catalogue.build(
        (CatalogueEntity(r.id, r.type, r.name, r.description) for r in rows if r.merged_into is None),
        (
            Alias(
                target[a.entity_id],
                a.folded,
                a.alias,
                a.weight,
                "" if target[a.entity_id] == a.entity_id else a.entity_id,
            )
            for a in aliases
            if a.entity_id in target and a.entity_id not in unnamed
        ),
        pins,
        splits,
    )


def _merge_targets(merged_into: Mapping[str, str | None]) -> dict[str, str]:
    """Follow merges to their end; an entity whose target is blocked drops out."""
    targets: dict[str, str] = {}
    for entity_id in merged_into:
        at: str | None = entity_id
        seen: set[str] = set()
        while at is not None and at in merged_into and merged_into[at] is not None and at not in seen:
            seen.add(at)
            at = merged_into[at]
        if at is not None and at in merged_into and at not in seen:
            targets[entity_id] = at
    return targets
