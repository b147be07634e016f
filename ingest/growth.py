"""Entities that documents bring: made with the mentions that name them, gone with the last of them.

Writing one document's mentions changes those of others: people are tied and fall apart across documents, and
entities go with their last mention. So whoever changes mentions takes the tenant's `serialise` lock first,
before any lock of a document, a mention or an entity: otherwise two could wait for each other's rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlalchemy import Table, bindparam, delete, exists, func, or_, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from core.models import DocumentRow, EntityAliasRow, EntityEventRow, EntityRow, MentionRow
from core.types import LinkedMention
from ingest.catalogue import alias_key
from ingest.nil_clusters import PERSON, SEPARATOR, Appearance, grown_id, name_key, settle

GROWN = "corpus"  # provenance of entities that documents brought, not people
GROWN_BY_NAME = frozenset({"ORG", "GPE", "LOC", "FAC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW"})
_SCORE = 0.6  # of a link that rests on the name alone …
_PERSON_SCORE = 0.75  # … and of one that an affiliation ties
_MAX_APPEARANCES = 2000  # of one person's name that are compared
_KEYS = 400  # per statement


@dataclass(frozen=True, slots=True)
class Removed:
    """What the mentions that are about to go were tied to."""

    tenant_id: str
    entity_ids: frozenset[str]
    people: frozenset[str]


def serialise_document(session: Session, document_id: str) -> None:
    """`serialise` for the tenant of a document; nothing when there is no such document."""
    tenant_id = session.scalar(select(DocumentRow.tenant_id).where(DocumentRow.id == document_id))
    if tenant_id is not None:
        serialise(session, tenant_id)


def serialise(session: Session, tenant_id: str) -> None:
    """Let one transaction at a time change the mentions of a tenant, until it ends."""
    if session.get_bind().dialect.name == "postgresql":  # SQLite has one writer already
        session.execute(
            text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))"), {"key": f"growth:{tenant_id}"}
        )


def grow_by_name(session: Session, tenant_id: str, mentions: Sequence[LinkedMention]) -> list[LinkedMention]:
    """Link organisations, places and things that no catalogue knows, each name to an entity of its own."""
    wanted = {
        grown_id(tenant_id, m.type, name_key(m.name)): m
        for m in sorted(mentions, key=lambda m: (len(m.name), m.name))
        if _grows(m) and m.type in GROWN_BY_NAME
    }
    if not wanted:
        return list(mentions)
    target = _make(session, tenant_id, {i: (m.type, m.name) for i, m in wanted.items()})
    grown: list[LinkedMention] = []
    for mention in mentions:
        if _grows(mention) and mention.type in GROWN_BY_NAME:
            own = grown_id(tenant_id, mention.type, name_key(mention.name))
            if (entity_id := target[own]) is not None:
                reason = f"corpus=name;{mention.reason}{_stands_for(own, entity_id)}"
                mention = replace(mention, entity_id=entity_id, score=_SCORE, reason=reason)
        grown.append(mention)
    return grown


def settle_people(session: Session, tenant_id: str, keys: Iterable[str]) -> None:
    """Tie the mentions of these people's names to entities, across all documents of the tenant."""
    keys = sorted(set(keys))
    for at in range(0, len(keys), _KEYS):
        _settle(session, tenant_id, keys[at : at + _KEYS])


def removed_with(session: Session, tenant_id: str, which: Any) -> Removed | None:
    """What hangs on the mentions that match `which`; asked under the lock, before they are deleted."""
    rows = session.execute(
        select(MentionRow.entity_id, MentionRow.type, MentionRow.key).where(which).distinct()
    ).all()
    if not rows:
        return None
    return Removed(
        tenant_id,
        frozenset(r.entity_id for r in rows if r.entity_id is not None),
        frozenset(r.key for r in rows if r.type == PERSON and r.key),
    )


def forget(session: Session, removed: Removed | None) -> None:
    """After mentions are gone: settle the people they named anew, and remove entities nobody names."""
    if removed is None:
        return
    settle_people(session, removed.tenant_id, removed.people)
    remove_unmentioned(session, removed.entity_ids)


def remove_unmentioned(session: Session, entity_ids: Iterable[str]) -> None:
    """Corpus-grown entities live by their mentions, unless a person has touched them."""
    ids = sorted(entity_ids)
    for at in range(0, len(ids), _KEYS):
        session.execute(
            delete(EntityRow).where(
                EntityRow.id.in_(ids[at : at + _KEYS]),
                EntityRow.provenance == GROWN,
                EntityRow.merged_into.is_(None),
                EntityRow.blocked.is_(False),
                ~exists().where(MentionRow.entity_id == EntityRow.id),
                ~exists().where(EntityEventRow.entity_id == EntityRow.id),
            )
        )


def is_growing_person(mention: LinkedMention) -> bool:
    """Whether `settle_people` decides what the mention means."""
    return mention.type == PERSON and _grows(mention)


# -- steps -------------------------------------------------------------------------------------


def _grows(mention: LinkedMention) -> bool:
    """Whether no catalogue knows the whole name. A known name that is only ambiguous brings no new entity."""
    if mention.entity_id is not None or not name_key(mention.name):
        return False
    whole = ("alias=exact", "alias=folded", "alias=core")
    return mention.reason.startswith("nil=") and not any(w in mention.reason for w in whole)


def _make(session: Session, tenant_id: str, wanted: dict[str, tuple[str, str]]) -> dict[str, str | None]:
    """Make the entities that do not exist; the id that each stands for, None where a person blocked it."""
    present = _present(session, wanted)
    fresh = [
        {"id": i, "tenant_id": tenant_id, "type": kind, "name": name[:300], "provenance": GROWN}
        for i, (kind, name) in wanted.items()
        if i not in present
    ]
    if fresh:
        _insert_new(session, EntityRow, fresh)
    for entity_id, row in present.items():
        name = wanted[entity_id][1][:300]
        # The longest spelling is the name, whichever document came first; a renamed one stays.
        if (
            row.provenance == GROWN
            and (len(name), name) > (len(row.name), row.name)
            and not _touched(session, row)
        ):
            row.name = name
    _insert_new(
        session,
        EntityAliasRow,
        [
            {"entity_id": i, "folded": alias_key(name), "tenant_id": tenant_id, "alias": name[:300]}
            for i, (_, name) in wanted.items()
        ],
    )
    return {
        i: None
        if i in present and present[i].blocked
        else (present[i].merged_into or i)
        if i in present
        else i
        for i in wanted
    }


def _stands_for(own: str | None, entity_id: str) -> str:
    """What a link's reason says when another entity stands for the name's own one, so that undo finds it."""
    return "" if own is None or own == entity_id else f";merged_from={own}"


def _present(session: Session, ids: Iterable[str]) -> dict[str, EntityRow]:
    return {r.id: r for r in session.scalars(select(EntityRow).where(EntityRow.id.in_(list(ids))))}


def _touched(session: Session, row: EntityRow) -> bool:
    return session.scalar(select(exists().where(EntityEventRow.entity_id == row.id))) or False


def _insert_new(session: Session, table: Any, rows: list[dict[str, Any]]) -> None:
    """Insert what is not there; two workers may bring the same name at once."""
    dialect = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
    session.execute(dialect.insert(table).on_conflict_do_nothing(), rows)


def _settle(session: Session, tenant_id: str, keys: Sequence[str]) -> None:
    by_key: dict[str, list[Appearance]] = defaultdict(list)
    for row in session.execute(
        select(
            MentionRow.key,
            MentionRow.document_id,
            MentionRow.version,
            MentionRow.affiliations,
            MentionRow.entity_id,
        )
        .outerjoin(EntityRow, EntityRow.id == MentionRow.entity_id)
        .where(
            MentionRow.tenant_id == tenant_id,
            MentionRow.type == PERSON,
            MentionRow.key.in_(keys),
            or_(MentionRow.entity_id.is_(None), EntityRow.provenance == GROWN),
            MentionRow.growing.is_(True),
        )
        .distinct()
        .order_by(MentionRow.document_id, MentionRow.version, MentionRow.affiliations)
    ):
        found = by_key[row.key]
        if len(found) < _MAX_APPEARANCES:
            tied = frozenset(part for part in row.affiliations.split(SEPARATOR) if part)
            found.append(Appearance(row.document_id, row.version, tied, row.entity_id))
    held = _held(session, {a.entity_id for found in by_key.values() for a in found if a.entity_id})
    changed: list[_Change] = []
    for key, found in by_key.items():
        settled = settle(tenant_id, key, found, held)
        changed += [_Change(key, a, settled[a]) for a in found if settled[a] != a.entity_id]
    _apply(session, tenant_id, changed)
    remove_unmentioned(session, {c.appearance.entity_id for c in changed if c.appearance.entity_id})


def _held(session: Session, entity_ids: set[str]) -> frozenset[str]:
    if not entity_ids:
        return frozenset()
    return frozenset(
        session.scalars(
            select(EntityEventRow.entity_id)
            .where(EntityEventRow.entity_id.in_(sorted(entity_ids)))
            .distinct()
        )
    )


@dataclass(frozen=True, slots=True)
class _Change:
    """Another entity, or none, for the mentions of a name in one document beside the same organisations."""

    key: str
    appearance: Appearance
    entity_id: str | None


def _apply(session: Session, tenant_id: str, changed: Sequence[_Change]) -> None:
    """Make the entities that people are now tied to, and tie their mentions to them."""
    new = {c.entity_id: c.key for c in changed if c.entity_id is not None}
    names = _longest_surfaces(session, tenant_id, sorted(set(new.values()))) if new else {}
    wanted = {i: (PERSON, names.get(key, key)) for i, key in sorted(new.items())}
    target = _make(session, tenant_id, wanted) if wanted else {}
    if changed:
        session.connection().execute(
            _TIE, [_tie(tenant_id, c, target.get(c.entity_id or "")) for c in changed]
        )


def _longest_surfaces(session: Session, tenant_id: str, keys: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, surface in session.execute(
        select(MentionRow.key, MentionRow.surface)
        .where(MentionRow.tenant_id == tenant_id, MentionRow.key.in_(keys))
        .group_by(MentionRow.key, MentionRow.surface)
        .order_by(MentionRow.key, func.length(MentionRow.surface).desc(), MentionRow.surface)
    ):
        found.setdefault(key, surface)
    return found


def _tie(tenant_id: str, change: _Change, entity_id: str | None) -> dict[str, Any]:
    where = change.appearance
    return {
        "in_tenant": tenant_id,
        "in_document": where.document_id,
        "in_version": where.version,
        "of_key": change.key,
        "beside": SEPARATOR.join(sorted(where.affiliations)),
        "entity_id": entity_id,
        "score": _PERSON_SCORE if entity_id else 0.0,
        "reason": f"corpus=affiliation{_stands_for(change.entity_id, entity_id)}"
        if entity_id
        else "nil=nothing_ties_it",
    }


_MENTIONS = cast(Table, MentionRow.__table__)
_TIE = (
    update(_MENTIONS)
    .where(
        _MENTIONS.c.tenant_id == bindparam("in_tenant"),
        _MENTIONS.c.document_id == bindparam("in_document"),
        _MENTIONS.c.version == bindparam("in_version"),
        _MENTIONS.c.type == PERSON,
        _MENTIONS.c.key == bindparam("of_key"),
        _MENTIONS.c.affiliations == bindparam("beside"),
        _MENTIONS.c.growing.is_(True),
    )
    .values(entity_id=bindparam("entity_id"), score=bindparam("score"), reason=bindparam("reason"))
)
"""Run for many at once: each by itself costs ten times as much."""
