"""Which evidence a policy lets be cited, and what is known of the documents behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.models import DocumentRow
from core.types import Evidence, Scope
from generation.dates import source_date
from generation.policy import SourceRules
from ingest.values import Trust
from retrieval.source_dates import metadata_date


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """What policies ask of a document. `dated` is the date in its metadata, if any."""

    trust: Trust
    tags: tuple[str, ...]
    dated: date | None
    uploaded: date

    @property
    def rank(self) -> int:
        """Trust as a number, higher is better."""
        return {Trust.LOW: 0, Trust.NORMAL: 1, Trust.HIGH: 2}.get(self.trust, 1)


def document_facts(session: Session, scope: Scope, document_ids: Iterable[str]) -> dict[str, DocumentFacts]:
    """Facts of these documents, by id; foreign ones are left out."""
    rows = session.execute(
        select(
            DocumentRow.id, DocumentRow.trust, DocumentRow.tags, DocumentRow.meta, DocumentRow.updated_at
        ).where(DocumentRow.id.in_(set(document_ids)), DocumentRow.tenant_id == scope.tenant_id)
    ).all()
    return {
        row.id: DocumentFacts(
            Trust(row.trust), tuple(row.tags), metadata_date(row.meta), row.updated_at.date()
        )
        for row in rows
    }


def permitted(
    evidence: Sequence[Evidence],
    facts: Mapping[str, DocumentFacts],
    rules: SourceRules,
    *,
    today: date | None = None,
) -> tuple[Evidence, ...]:
    """The evidence that may be cited; passages whose document is unknown may not."""
    if rules.empty:
        return tuple(evidence)
    today = today or datetime.now(UTC).date()
    return tuple(
        e
        for e in evidence
        if (known := facts.get(e.passage.document_id)) is not None and _allowed(e, known, rules, today)
    )


def _allowed(e: Evidence, known: DocumentFacts, rules: SourceRules, today: date) -> bool:
    if rules.trust is not None and known.trust not in rules.trust:
        return False
    if rules.tags is not None and not set(known.tags) & set(rules.tags):
        return False
    if rules.lang is not None and e.passage.lang not in rules.lang:
        return False
    if rules.max_age_days is None:
        return True
    written = source_date(e, {e.passage.document_id: known.dated} if known.dated else None) or known.uploaded
    return today - written <= timedelta(days=rules.max_age_days)


def with_source_rules(filters: Mapping[str, Any] | None, rules: SourceRules) -> dict[str, Any]:
    """A request's filters joined with the policy's sources, so that retrieval finds what may be cited.

    How old a source may be depends on the date that it gives itself, which only the passage tells: that rule
    is kept when the evidence is chosen (`retrieval/source_dates.py`) and when it is read (`permitted`).
    """
    asked = dict(filters or {})
    named = {"trust": rules.trust, "lang": rules.lang, "tags": rules.tags}
    allowed = {key: [str(value) for value in values] for key, values in named.items() if values is not None}
    if not allowed or not asked:
        return asked or dict[str, Any](allowed)
    return {"all": [asked, allowed]}
