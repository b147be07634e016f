"""The entity route: names in the question → catalogue entities → passages that mention them."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.models import DocumentRow, MentionRow, PassageRow
from core.types import Scope
from ingest.catalogue import Catalogue
from ingest.entity_repository import catalogue_stamp, load_catalogue
from retrieval.filters import Filters
from retrieval.query_repository import visible

MAX_ENTITIES = 24  # names of a question; a longer list is a document, not a question
_MIN_PRIOR = 0.05

_lock = threading.Lock()
_catalogues: dict[str, tuple[tuple[int, int, int], Catalogue]] = {}


def catalogue_of(session: Session, tenant_id: str) -> Catalogue:
    """The tenant's catalogue, kept in this process while it stays the same."""
    stamp = catalogue_stamp(session, tenant_id)
    with _lock:
        known = _catalogues.get(tenant_id)
    if known is None or known[0] != stamp:
        known = (stamp, load_catalogue(session, tenant_id))
        with _lock:
            if len(_catalogues) >= 8:  # a catalogue may be large; the next question loads it again
                _catalogues.clear()
            _catalogues[tenant_id] = known
    return known[1]


def entities_in(question: str, catalogue: Catalogue) -> dict[str, float]:
    """Entities that the question may name, with the share of each reading in (0, 1].

    A name with several readings gives all of them: the question alone rarely tells them apart.
    """
    found: dict[str, float] = {}
    for match in catalogue.find(question):
        surface = question[match.start : match.end]
        candidates = [c for c in catalogue.candidates(surface) if c.named]
        pinned = [candidate for candidate in candidates if candidate.pinned]
        for candidate in pinned or candidates:
            if candidate.prior >= _MIN_PRIOR:
                share = 1.0 if pinned else candidate.prior
                found[candidate.entity.id] = max(share, found.get(candidate.entity.id, 0.0))
    strongest = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return dict(strongest[:MAX_ENTITIES])


def mentioning_passages(
    session: Session, scope: Scope, filters: Filters, entities: Mapping[str, float], *, limit: int
) -> list[tuple[int, float]]:
    """Visible passages that mention the entities, best first, as (passage id, score).

    score = sum over the entities of reading share x best link score x rarity, with
    rarity = 1 / (1 + ln(number of visible passages that mention it)): a name that is everywhere in
    the scope says little about any one passage.
    """
    if not entities:
        return []
    rows: list[tuple[int, str, float]] = [
        (passage_id, entity_id, link)
        for passage_id, entity_id, link in session.execute(
            select(MentionRow.passage_id, MentionRow.entity_id, func.max(MentionRow.score))
            .join(PassageRow, PassageRow.id == MentionRow.passage_id)
            .join(DocumentRow, DocumentRow.id == PassageRow.document_id)
            .where(
                MentionRow.tenant_id == scope.tenant_id,
                MentionRow.entity_id.in_(list(entities)),
                visible(scope, filters, dialect=session.get_bind().dialect.name),
            )
            .group_by(MentionRow.passage_id, MentionRow.entity_id)
        )
        if entity_id is not None
    ]
    spread: dict[str, int] = {}
    for _, entity_id, _ in rows:
        spread[entity_id] = spread.get(entity_id, 0) + 1
    scores: dict[int, float] = {}
    for passage_id, entity_id, link in rows:
        rarity = 1.0 / (1.0 + math.log(spread[entity_id]))
        scores[passage_id] = scores.get(passage_id, 0.0) + entities[entity_id] * link * rarity
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]
