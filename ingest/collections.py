"""Collections: create, list, get, change, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.db import utcnow
from core.errors import Conflict, Forbidden
from core.ids import new_id
from core.models import CollectionRow, DocumentRow
from core.types import Scope
from ingest import repository
from ingest.names import title_of
from ingest.recipe import changed_choices
from ingest.removal import remove_document
from ingest.values import Collection, Page


def create_collection(
    session: Session, scope: Scope, *, name: str, parse: Mapping[str, Any] | None = None
) -> Collection:
    """Create a collection; its name is unique in the tenant. `parse` says how its documents are read.

    Raises:
        Conflict: the name is taken.
        Forbidden: the key is limited to given collections.
        InvalidInput: the name is blank or too long, or a choice is unknown or out of bounds.
    """
    if scope.collection_ids is not None:
        raise Forbidden("A key that is limited to collections cannot create one.")
    row = CollectionRow(
        id=new_id("col"),
        tenant_id=scope.tenant_id,
        name=title_of(name, "collection name"),
        parse=changed_choices({}, parse or {}),
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        raise Conflict(f"There is already a collection named {row.name!r}.", name=row.name) from error
    return repository.collection_values(session, [row])[0]


def list_collections(
    session: Session, scope: Scope, *, cursor: str | None = None, limit: int = 50
) -> Page[Collection]:
    """Collections of the scope, oldest first."""
    rows = repository.collections_page(session, scope, cursor, limit + 1)
    values = repository.collection_values(session, rows[:limit])
    return Page(values, values[-1].id if len(rows) > limit else None)


def get_collection(session: Session, scope: Scope, *, collection: str) -> Collection:
    """One collection by id or name; raises `NotFound`."""
    return repository.collection_values(session, [repository.find_collection(session, scope, collection)])[0]


def collection_id(session: Session, scope: Scope, *, collection: str) -> str:
    """Id of a collection by id or name, uncounted: every question asks for it; raises `NotFound`."""
    return repository.find_collection(session, scope, collection).id


def patch_collection(
    session: Session,
    scope: Scope,
    *,
    collection: str,
    name: str | None = None,
    parse: Mapping[str, Any] | None = None,
) -> Collection:
    """Change what is given.

    `parse` is merged into the present choices; one set to None is given back to the settings. Documents that
    were read otherwise are outdated from then on, and served as they are until they are reprocessed.

    Raises:
        Conflict: the name is taken.
        InvalidInput: a choice is unknown or out of bounds.
    """
    row = repository.find_collection(session, scope, collection, lock=True)
    if parse is not None:
        row.parse = changed_choices(row.parse, parse)
    if name is not None:
        wanted = title_of(name, "collection name")
        try:
            with session.begin_nested():
                row.name = wanted
        except IntegrityError as error:
            raise Conflict(f"There is already a collection named {wanted!r}.", name=wanted) from error
    session.flush()
    return repository.collection_values(session, [row])[0]


def delete_collection(session: Session, scope: Scope, *, collection: str) -> None:
    """Hide it at once and delete its documents; the row goes when the last of them is purged."""
    row = repository.find_collection(session, scope, collection, lock=True)
    row.deleted_at = utcnow()
    row.name = f"deleted:{row.id}"  # frees the name
    session.flush()
    for document_id in session.scalars(
        select(DocumentRow.id).where(DocumentRow.collection_id == row.id).order_by(DocumentRow.id)
    ).all():
        remove_document(session, repository.find_document(session, scope, document_id, lock=True))
    delete_row_if_empty(session, row.id)


def delete_row_if_empty(session: Session, collection_id: str) -> None:
    """Remove a deleted collection's row once no document holds it."""
    row = session.scalar(
        select(CollectionRow)
        .where(CollectionRow.id == collection_id, CollectionRow.deleted_at.is_not(None))
        .with_for_update()
    )
    if row is None:
        return
    left = session.scalar(
        select(func.count()).select_from(DocumentRow).where(DocumentRow.collection_id == row.id)
    )
    if left == 0:
        session.delete(row)
        session.flush()
