"""Rows for retrieval tests: tenants, collections, live documents and their passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from core.ids import new_id
from core.models import (
    CollectionRow,
    DocumentRow,
    DocumentVersionRow,
    EntityAliasRow,
    EntityRow,
    MentionRow,
    PassageRow,
    TenantRow,
)
from core.types import Role, Scope


def scope_of(tenant_id: str, collection_ids: tuple[str, ...] | None = None) -> Scope:
    return Scope(tenant_id, collection_ids, "key_test", Role.READER)


def add_tenant(session: Session, name: str) -> tuple[str, str]:
    """A tenant with one collection: (tenant id, collection id)."""
    tenant = TenantRow(id=new_id("ten"), name=name)
    session.add(tenant)
    session.flush()
    return tenant.id, add_collection(session, tenant.id, "handbook")


def add_collection(session: Session, tenant_id: str, name: str) -> str:
    row = CollectionRow(id=new_id("col"), tenant_id=tenant_id, name=name)
    session.add(row)
    session.flush()
    return row.id


def add_document(
    session: Session,
    tenant_id: str,
    collection_id: str,
    texts: Sequence[str],
    *,
    version: int = 1,
    live: bool = True,
    lang: str = "en",
    tags: Sequence[str] = (),
    trust: str = "normal",
    meta: Mapping[str, Any] | None = None,
) -> tuple[str, list[int]]:
    """A document whose one version has these passages: (document id, passage ids)."""
    document_id = new_id("doc")
    session.add(
        DocumentRow(
            id=document_id,
            tenant_id=tenant_id,
            collection_id=collection_id,
            name=f"{document_id}.txt",
            content_hash=document_id,
            status="ready",
            latest_version=version,
            live_version=version if live else None,
            trust=trust,
            tags=list(tags),
            meta=dict(meta or {}),
        )
    )
    session.flush()
    return document_id, add_version(session, tenant_id, collection_id, document_id, version, texts, lang)


def add_version(
    session: Session,
    tenant_id: str,
    collection_id: str,
    document_id: str,
    version: int,
    texts: Sequence[str],
    lang: str = "en",
) -> list[int]:
    session.add(
        DocumentVersionRow(
            document_id=document_id,
            version=version,
            blob_hash="0" * 64,
            size_bytes=1,
            file_name="a.txt",
            text="\n".join(texts),
        )
    )
    session.flush()
    ids: list[int] = []
    start = 0
    for ordinal, text in enumerate(texts):
        row = PassageRow(
            tenant_id=tenant_id,
            collection_id=collection_id,
            document_id=document_id,
            version=version,
            ordinal=ordinal,
            start=start,
            end=start + len(text),
            lang=lang,
            text=text,
        )
        session.add(row)
        session.flush()
        ids.append(row.id)
        start += len(text) + 1
    return ids


def add_entity(session: Session, tenant_id: str, name: str, *aliases: str) -> str:
    entity = EntityRow(id=new_id("ent"), tenant_id=tenant_id, type="Organization", name=name)
    session.add(entity)
    session.flush()
    for alias in (name, *aliases):
        session.add(
            EntityAliasRow(entity_id=entity.id, folded=alias.lower(), tenant_id=tenant_id, alias=alias)
        )
    session.flush()
    return entity.id


def add_mention(
    session: Session, tenant_id: str, passage_id: int, entity_id: str | None, score: float
) -> None:
    passage = session.get_one(PassageRow, passage_id)
    session.add(
        MentionRow(
            tenant_id=tenant_id,
            passage_id=passage_id,
            document_id=passage.document_id,
            version=passage.version,
            start=passage.start,
            end=passage.end,
            surface="x",
            entity_id=entity_id,
            score=score,
        )
    )
    session.flush()
