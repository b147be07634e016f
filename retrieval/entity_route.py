"""The entity route: names in the question → catalogue entities → passages that mention them."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping

import regex
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.models import DocumentRow, EntityAliasRow, EntityRow, MentionRow, PassageRow
from core.types import Scope
from ingest.catalogue import Catalogue, alias_key
from ingest.entity_repository import catalogue_stamp, load_catalogue
from ingest.growth import GROWN
from retrieval.filters import Filters
from retrieval.query_repository import visible

_UNIT = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[^\W_\p{Han}\p{Hiragana}\p{Katakana}]+")
_HAN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_QUESTION_CHARS = 200  # names stand near the question; a longer text is a document
_HAN_UNITS, _WORDS = 16, 6  # characters and words of the longest name that is looked up
_LOOKUP = 400  # keys per statement
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
        for entity_id, share in catalogue.readings(question[match.start : match.end]).items():
            if share >= _MIN_PRIOR:
                found[entity_id] = max(share, found.get(entity_id, 0.0))
    strongest = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return dict(strongest[:MAX_ENTITIES])


def grown_entities_in(session: Session, tenant_id: str, question: str) -> dict[str, float]:
    """Entities that documents brought and that the question names, with the share of each reading.

    The names are looked up, not held in memory: there may be as many as passages. The longest name wins
    where two overlap.
    """
    spans = _spans(question)
    if not spans:
        return {}
    keys = sorted(set(spans.values()))
    named: dict[str, list[str]] = {}
    for at in range(0, len(keys), _LOOKUP):
        for folded, entity_id in session.execute(
            select(EntityAliasRow.folded, EntityAliasRow.entity_id)
            .join(EntityRow, EntityRow.id == EntityAliasRow.entity_id)
            .where(
                EntityAliasRow.tenant_id == tenant_id,
                EntityAliasRow.folded.in_(keys[at : at + _LOOKUP]),
                EntityRow.provenance == GROWN,
                EntityRow.blocked.is_(False),
                EntityRow.merged_into.is_(None),
            )
            .order_by(EntityAliasRow.folded, EntityAliasRow.entity_id)
        ):
            named.setdefault(folded, []).append(entity_id)
    found: dict[str, float] = {}
    taken: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda s: (s[0] - s[1], s[0])):
        readings = named.get(spans[start, end])
        if readings is None or any(start < e and s < end for s, e in taken):
            continue
        taken.append((start, end))
        for entity_id in readings:
            found[entity_id] = max(found.get(entity_id, 0.0), 1.0 / len(readings))
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:MAX_ENTITIES])


def _spans(question: str) -> dict[tuple[int, int], str]:
    """Offsets of what may be a name → its folded form: runs of words, pieces of CJK runs."""
    units = list(_UNIT.finditer(question[:_QUESTION_CHARS]))
    spans: dict[tuple[int, int], str] = {}
    for first, begin in enumerate(units):
        han = _HAN.match(begin.group()) is not None
        for last in units[first : first + (_HAN_UNITS if han else _WORDS)]:
            start, end = begin.start(), last.end()
            text = question[start:end]
            if len(text) >= 2 and (han or any(c.isupper() or c.isdigit() for c in text)):
                spans[start, end] = alias_key(text)
    return spans


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
