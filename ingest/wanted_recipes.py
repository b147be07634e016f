"""Which recipe a document would be made with today, and which documents were made with another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, false, or_, select
from sqlalchemy.orm import Session

from core.models import (
    CollectionRow,
    DocumentRow,
    DocumentVersionRow,
)
from core.types import DocumentStatus
from ingest.recipe import Recipe

SETTLED = (DocumentStatus.READY.value, DocumentStatus.FAILED.value)


def own_choices(stored: str) -> dict[str, Any]:
    """The choices of a document, as its row holds them."""
    return json.loads(stored) if stored else {}


def stored_choices(chosen: dict[str, Any]) -> str:
    """The form in which a document's row holds its choices: equal choices are equal strings."""
    return json.dumps(chosen, sort_keys=True) if chosen else ""


def wanted_recipes(session: Session, rows: Sequence[DocumentRow]) -> dict[str, str]:
    """Per document: the digest that a version made now would get."""
    ids = {r.collection_id for r in rows}
    chosen = dict(
        session.execute(select(CollectionRow.id, CollectionRow.parse).where(CollectionRow.id.in_(ids))).all()
    )
    made: dict[tuple[str, str], str] = {}
    for row in rows:
        key = (row.collection_id, row.parse)
        if key not in made:
            made[key] = Recipe.of(chosen.get(row.collection_id, {}), own_choices(row.parse)).digest
    return {row.id: made[row.collection_id, row.parse] for row in rows}


def is_outdated(session: Session, within: ColumnElement[bool]) -> ColumnElement[bool]:
    """Settled documents of `within` whose newest version was made or tried with another recipe than today's.

    Few different choices are in use at a time, so each is compared by its digest.
    """
    used = session.execute(
        select(DocumentRow.collection_id, DocumentRow.parse, CollectionRow.parse)
        .join(CollectionRow, CollectionRow.id == DocumentRow.collection_id)
        .where(within)
        .group_by(DocumentRow.collection_id, DocumentRow.parse, CollectionRow.parse)
    ).all()
    v = DocumentVersionRow
    return or_(
        false(),
        *(
            and_(
                DocumentRow.collection_id == collection_id,
                DocumentRow.parse == own,
                DocumentRow.status.in_(SETTLED),
                exists().where(
                    v.document_id == DocumentRow.id,
                    v.version == DocumentRow.latest_version,
                    v.recipe != Recipe.of(shared, own_choices(own)).digest,
                ),
            )
            for collection_id, own, shared in used
        ),
    )
