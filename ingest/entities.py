"""Entities: search, read, and the overrides of a person (rename, block, pin, merge, split, undo).

Each override is an event. Its effect on present mentions is applied at once and noted in their reasons, so
that undo finds them; linking replays the events, so a reprocess keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.orm import Session

from core.errors import Conflict, InvalidInput
from core.ids import new_id
from core.models import EntityEventRow, EntityRow
from core.types import Scope
from ingest import entity_repository as store
from ingest import mention_repository as mentions
from ingest import repository
from ingest.catalogue_repository import ask_relink
from ingest.growth import serialise
from ingest.names import clean_text, title_of
from ingest.values import Entity, EntityEvent, EntityMention, Page

RENAME, DESCRIBE, BLOCK, UNBLOCK, PIN, MERGE, SPLIT = (
    "rename", "describe", "block", "unblock", "pin_alias", "merge", "split",
)  # fmt: skip
PINNED_WEIGHT = 1000.0


def search_entities(
    session: Session,
    scope: Scope,
    *,
    text: str | None = None,
    type: str | None = None,
    include_merged: bool = False,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[Entity]:
    """Entities with an alias that contains `text`, whatever its width, case or script variant."""
    rows = store.entities_page(
        session, scope, text=text, kind=type, merged=include_merged, cursor=cursor, limit=limit + 1
    )
    values = store.entity_values(session, scope, rows[:limit])
    return Page(values, values[-1].id if len(rows) > limit else None)


def get_entity(session: Session, scope: Scope, *, entity_id: str) -> Entity:
    """One entity, merged ones included; raises `NotFound`."""
    return _value(session, scope, store.find_entity(session, scope, entity_id))


def entity_events(
    session: Session, scope: Scope, *, entity_id: str, cursor: str | None = None, limit: int = 50
) -> Page[EntityEvent]:
    """Overrides of an entity, newest first."""
    store.find_entity(session, scope, entity_id)
    if cursor is not None and not cursor.isdecimal():
        raise InvalidInput("The cursor is not one that this list gave.")
    rows = store.events_page(
        session, scope, entity_id, before=int(cursor) if cursor else None, limit=limit + 1
    )
    values = tuple(store.event_value(r) for r in rows[:limit])
    return Page(values, str(values[-1].id) if len(rows) > limit else None)


def entity_mentions(
    session: Session, scope: Scope, *, entity_id: str, cursor: str | None = None, limit: int = 50
) -> Page[EntityMention]:
    """Where live documents name an entity, and why it is linked there."""
    store.find_entity(session, scope, entity_id)
    if cursor is not None and not cursor.isdecimal():
        raise InvalidInput("The cursor is not one that this list gave.")
    rows = mentions.mentions_page(
        session, scope, entity_id, after=int(cursor) if cursor else None, limit=limit + 1
    )
    values = tuple(rows[:limit])
    return Page(values, str(values[-1].id) if len(rows) > limit else None)


def patch_entity(
    session: Session,
    scope: Scope,
    *,
    entity_id: str,
    name: str | None = None,
    description: str | None = None,
    blocked: bool | None = None,
    pin_aliases: Sequence[str] = (),
) -> Entity:
    """Rename, describe, block or unblock, and pin aliases (a pinned alias always means this entity)."""
    row = _present(session, scope, entity_id)
    if name is not None and name != row.name:
        new = title_of(name, "entity name")
        added = store.add_alias(session, row, new)
        store.add_event(session, scope, row.id, RENAME, {"old": row.name, "new": new, "alias_added": added})
        row.name = new
    if description is not None and description != row.description:
        new = clean_text(description)[:4000]
        store.add_event(session, scope, row.id, DESCRIBE, {"old": row.description, "new": new})
        row.description = new
    if blocked is not None and blocked != row.blocked:
        _set_blocked(session, row, blocked)
        store.add_event(session, scope, row.id, BLOCK if blocked else UNBLOCK, {})
    for alias in pin_aliases:
        _pin(session, scope, row, title_of(alias, "alias"))
    session.flush()
    if name is not None or blocked is not None or pin_aliases:
        _relink(session, row)
    return _value(session, scope, row)


def merge_entities(session: Session, scope: Scope, *, entity_id: str, others: Sequence[str]) -> Entity:
    """Let `entity_id` stand for `others`: their mentions and aliases, now and after every re-link.

    Raises:
        InvalidInput: nothing to merge, or an entity into itself.
        Conflict: one of them is already merged into another.
    """
    others = list(dict.fromkeys(others))
    if not others or entity_id in others:
        raise InvalidInput("Name at least one other entity to merge.", entity_id=entity_id)
    rows = {i: _present(session, scope, i) for i in sorted([entity_id, *others])}  # one order: no deadlock
    survivor = rows[entity_id]
    for other_id in others:
        rows[other_id].merged_into = survivor.id
        mentions.move_mentions(session, scope.tenant_id, other_id, survivor.id, f"merged_from={other_id}")
    store.add_event(session, scope, survivor.id, MERGE, {"entity_ids": others})
    session.flush()
    return _value(session, scope, survivor)


def split_entity(
    session: Session,
    scope: Scope,
    *,
    entity_id: str,
    name: str,
    document_ids: Sequence[str],
    type: str | None = None,
    description: str = "",
) -> Entity:
    """Make a second entity out of the mentions in `document_ids`; returns the new one.

    In those documents the name means the new entity from now on; in the other documents that name it now it
    goes on meaning the old one. Both have the aliases, so in later documents the text decides, or neither.

    Raises:
        InvalidInput: no documents given.
        NotFound: the entity or a document is not visible.
    """
    row = _present(session, scope, entity_id)
    ids = [repository.find_live(session, scope, d).id for d in dict.fromkeys(document_ids)]
    if not ids:
        raise InvalidInput("Name at least one document whose mentions are to be split off.")
    new = EntityRow(
        id=new_id("ent"),
        tenant_id=scope.tenant_id,
        type=(type or row.type)[:40],
        name=title_of(name, "entity name"),
        description=clean_text(description)[:4000],
        provenance="split",
    )
    session.add(new)
    session.flush()
    store.add_alias(session, new, new.name)
    for alias in store.entity_values(session, scope, [row])[0].aliases:
        store.add_alias(session, new, alias)
    mentions.move_mentions(session, scope.tenant_id, row.id, new.id, f"split_from={row.id}", document_ids=ids)
    kept = mentions.documents_naming(session, scope.tenant_id, row.id)
    store.add_event(
        session, scope, row.id, SPLIT, {"entity_id": new.id, "document_ids": ids, "kept_document_ids": kept}
    )
    return _value(session, scope, new)


def undo_entity(session: Session, scope: Scope, *, entity_id: str, event_id: int | None = None) -> Entity:
    """Take back the newest override that is in force.

    Args:
        session: a write session.
        scope: who asks.
        entity_id: the entity whose override it is (for a merge, the surviving one).
        event_id: the override meant, if the caller wants to be sure.

    Raises:
        Conflict: nothing to undo, `event_id` is not the newest in force, or a later override stands on it.
    """
    row = _present(session, scope, entity_id)
    active = [e for e in store.events_page(session, scope, row.id, before=None, limit=10_000) if not e.undone]
    if not active:
        raise Conflict("There is no override to undo.", entity_id=entity_id)
    event = active[0]
    if event_id is not None and event.id != event_id:
        raise Conflict(
            f"Undo the newer override first (event {event.id}, {event.action}).", event_id=event.id
        )
    _UNDO[event.action](session, scope, row, event)
    event.undone = True
    session.flush()
    if event.action in (RENAME, PIN, BLOCK, UNBLOCK):
        _relink(session, row)
    return _value(session, scope, row)


# -- effects -----------------------------------------------------------------------------------


def _value(session: Session, scope: Scope, row: EntityRow) -> Entity:
    return store.entity_values(session, scope, [row])[0]


def _present(session: Session, scope: Scope, entity_id: str) -> EntityRow:
    serialise(session, scope.tenant_id)
    row = store.find_entity(session, scope, entity_id, lock=True)
    if row.merged_into is not None:
        raise Conflict(
            "The entity is merged into another; undo that merge first.",
            entity_id=row.id,
            merged_into=row.merged_into,
        )
    return row


def _relink(session: Session, row: EntityRow) -> None:
    """Names may stand in documents where nobody has found them, and others may lose their reason."""
    session.flush()
    change = new_id("chg")
    ask_relink(session, row.tenant_id, change, [row.id])


def _set_blocked(session: Session, row: EntityRow, blocked: bool) -> None:
    row.blocked = blocked
    note = f"blocked={row.id}"
    if blocked:
        mentions.move_mentions(session, row.tenant_id, row.id, None, note)
    else:
        mentions.move_mentions_back(session, row.tenant_id, None, row.id, note)


def _pin(session: Session, scope: Scope, row: EntityRow, alias: str) -> None:
    added = store.add_alias(session, row, alias, weight=PINNED_WEIGHT)
    event = store.add_event(session, scope, row.id, PIN, {"alias": alias, "alias_added": added})
    for mention in mentions.mentions_named(session, scope.tenant_id, alias):
        if mention.entity_id != row.id and not row.blocked:
            mention.reason += f";pinned={event.id};was={mention.entity_id or 'NIL'}"
            mention.entity_id = row.id


def _undo_rename(session: Session, scope: Scope, row: EntityRow, event: EntityEventRow) -> None:
    row.name = event.payload["old"]
    if event.payload["alias_added"]:
        store.remove_alias(session, row.id, event.payload["new"])


def _undo_describe(session: Session, scope: Scope, row: EntityRow, event: EntityEventRow) -> None:
    row.description = event.payload["old"]


def _undo_block(session: Session, scope: Scope, row: EntityRow, event: EntityEventRow) -> None:
    _set_blocked(session, row, event.action == UNBLOCK)


def _undo_pin(session: Session, scope: Scope, row: EntityRow, event: EntityEventRow) -> None:
    marker = f";pinned={event.id};was="
    for mention in mentions.mentions_named(session, scope.tenant_id, event.payload["alias"]):
        reason, found, was = mention.reason.partition(marker)
        if found:
            mention.reason, mention.entity_id = reason, None if was == "NIL" else was
    if event.payload["alias_added"]:
        store.remove_alias(session, row.id, event.payload["alias"])


def _undo_merge(session: Session, scope: Scope, row: EntityRow, event: EntityEventRow) -> None:
    for other_id in event.payload["entity_ids"]:
        other = store.find_entity(session, scope, other_id, lock=True)
        other.merged_into = None
        mentions.move_mentions_back(session, scope.tenant_id, row.id, other_id, f"merged_from={other_id}")


def _undo_split(session: Session, scope: Scope, row: EntityRow, event: EntityEventRow) -> None:
    new = store.find_entity(session, scope, event.payload["entity_id"], lock=True)
    if new.merged_into is not None or any(
        not e.undone for e in store.events_page(session, scope, new.id, before=None, limit=10_000)
    ):
        raise Conflict("The entity split off has overrides of its own; undo those first.", entity_id=new.id)
    mentions.move_mentions(session, scope.tenant_id, new.id, row.id, f"rejoined={new.id}")
    session.delete(new)


_UNDO: dict[str, Callable[[Session, Scope, EntityRow, EntityEventRow], Any]] = {
    RENAME: _undo_rename,
    DESCRIBE: _undo_describe,
    BLOCK: _undo_block,
    UNBLOCK: _undo_block,
    PIN: _undo_pin,
    MERGE: _undo_merge,
    SPLIT: _undo_split,
}
