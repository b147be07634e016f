"""When a source says that it was written, and which sources are too old for a policy to cite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.models import DocumentRow
from core.types import Passage, Scope
from retrieval.live import StoredPassage

_DATE = re.compile(r"(?<!\d)([12]\d{3})(?:[-/.]|年)\s?(\d{1,2})(?:(?:[-/.]|月)\s?(\d{1,2})日?)?(?!\d)")
_METADATA_KEYS = ("date", "published", "published_at", "updated", "日期", "发布日期")
_OPENING_CHARS = 80


def stated_date(passage: Passage, document_name: str, given: date | None = None) -> date | None:
    """The date that a source gives itself: in its metadata (`given`), headings, name or first line."""
    if given is not None:
        return given
    opening = passage.text.split("\n")[0][:_OPENING_CHARS]
    for text in (*reversed(passage.heading_path), document_name, opening):
        match = _DATE.search(text)
        if match is None:
            continue
        try:
            return date(int(match[1]), int(match[2]), int(match[3] or 1))
        except ValueError:
            continue
    return None


def metadata_date(meta: Mapping[str, Any]) -> date | None:
    """The date in a document's metadata, if it has one."""
    for key in _METADATA_KEYS:
        try:
            return datetime.fromisoformat(str(meta[key])).date()
        except (KeyError, ValueError):
            continue
    return None


def too_old(
    session: Session, scope: Scope, passages: Iterable[StoredPassage], *, max_age_days: int, today: date
) -> frozenset[int]:
    """Ids of the passages whose source was written more than so many days before today.

    A source that gives itself no date was written when it was last uploaded.
    """
    found = list(passages)
    ids = sorted({one.passage.document_id for one in found})
    rows = session.execute(
        select(DocumentRow.id, DocumentRow.meta, DocumentRow.updated_at).where(
            DocumentRow.id.in_(ids), DocumentRow.tenant_id == scope.tenant_id
        )
    )
    known = {row.id: (metadata_date(row.meta), row.updated_at.date()) for row in rows}
    oldest = timedelta(days=max_age_days)
    old: set[int] = set()
    for one in found:
        given, uploaded = known.get(one.passage.document_id, (None, today))
        written = stated_date(one.passage, one.document_name, given) or uploaded
        if today - written > oldest:
            old.add(one.passage.id)
    return frozenset(old)
