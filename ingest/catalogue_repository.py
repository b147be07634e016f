"""The catalogue that names are linked with, out of its rows, and what a change of it sets off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, func, or_, select
from sqlalchemy.orm import Session

from core.db import QuickRead, plain_rows, utcnow
from core.jobs import add_job
from core.models import (
    EntityAliasRow,
    EntityEventRow,
    EntityRow,
)
from core.worker import Task
from ingest.catalogue import Alias, Catalogue, CatalogueEntity, alias_key
from ingest.entity_repository import active_events
from ingest.growth import GROWN
from ingest.nil_clusters import PERSON

_CLOCK_SLACK = timedelta(seconds=60)  # between the machines that write aliases


def catalogued(tenant_id: str) -> ColumnElement[bool]:
    """Entities that linking holds in memory: all but those that documents brought and nobody touched."""
    touched = select(EntityEventRow.entity_id).where(EntityEventRow.tenant_id == tenant_id)
    return and_(
        EntityRow.tenant_id == tenant_id,
        or_(EntityRow.provenance != GROWN, EntityRow.merged_into.is_not(None), EntityRow.id.in_(touched)),
    )


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


def catalogue_stamp(session: Session | QuickRead, tenant_id: str) -> tuple[int, int, int]:
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
