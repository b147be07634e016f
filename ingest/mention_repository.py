"""Rows of mentions ↔ values, and their way from one entity to another."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_, func, select, update
from sqlalchemy.orm import Session

from core.db import affected
from core.models import (
    DocumentRow,
    MentionRow,
    PassageRow,
)
from core.types import Scope
from ingest.catalogue import alias_key
from ingest.repository import in_scope
from ingest.values import EntityMention


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
