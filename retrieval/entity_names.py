"""The names in a question, and what each of them may mean in this installation.

A name is known by three ways: as a name of the catalogue, as a name of an entity that documents brought, and
as what documents call an entity. The last knows the parts of names that people use (`Emerson`) and how often
each of them means whom. All are looked up by key; nothing that grows with the corpus is held in memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import regex
from sqlalchemy import Select, bindparam, func, select
from sqlalchemy.orm import Session

from core.among import among, bound
from core.db import QuickRead, plain_rows
from core.models import EntityAliasRow, EntityRow, MentionRow
from ingest.catalogue import Catalogue, alias_key
from ingest.growth import GROWN
from ingest.name_forms import FUNCTION_WORDS
from ingest.nil_clusters import PERSON, SEPARATOR, name_key

_UNIT = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[^\W_\p{Han}\p{Hiragana}\p{Katakana}]+")
_HAN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_WORD = regex.compile(r"[^\W\d_\p{Han}\p{Hiragana}\p{Katakana}]+")
_LETTERS = 4  # of the shortest word that may be a name in a question without capitals
COMMON = FUNCTION_WORDS | {
    "about", "after", "been", "before", "could", "does", "during", "ever", "first", "have", "into", "last",
    "many", "mean", "most", "much", "name", "over", "play", "should", "than", "that", "their", "them", "then",
    "there", "these", "they", "this", "under", "used", "were", "what", "when", "where", "which", "while",
    "whom", "whose", "will", "would", "your",
}  # fmt: skip
_QUESTION_CHARS = 200  # names stand near the question; a longer text is a document
_HAN_UNITS, _WORDS = 16, 6  # characters and words of the longest name that is looked up
_MAX_READINGS = 12  # of one name; a name of more is hardly one
_MIN_SHARE = 0.02
_AFFILIATIONS = 400  # rows of people's affiliations that are read
MAX_ENTITIES = 48  # readings of a question; a longer list is a document, not a question

Shares = Mapping[str, float]
Reads = Session | QuickRead
_Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Named:
    """A name in a question.

    Attributes:
        start, end: half-open offsets into the question.
        readings: entity → how often the name means it, summing to 1.
        key: under which mentions have the name, linked or not.
    """

    start: int
    end: int
    readings: Shares
    key: str = ""


def named_in(session: Reads, tenant_id: str, question: str, catalogue: Catalogue) -> list[Named]:
    """The names of a question from left to right, the longest where several overlap."""
    found: dict[_Place, dict[str, float]] = defaultdict(dict)
    for match in catalogue.find(_capitalised(question)):
        found[match.start, match.end].update(catalogue.readings(question[match.start : match.end]))
    spans = _spans(question)
    pinned = {place for place in found if alias_key(question[slice(*place)]) in catalogue.pins}
    for ways in (_grown(session, tenant_id, spans), _called(session, tenant_id, spans)):
        for place, readings in ways.items():
            for entity_id, weight in readings.items() if place not in pinned else ():
                found[place][entity_id] = found[place].get(entity_id, 0.0) + weight
    names: list[Named] = []
    for start, end in sorted(found, key=lambda p: (p[0] - p[1], p[0])):
        if all(end <= n.start or n.end <= start for n in names):
            names.append(Named(start, end, _shares(found[start, end]), name_key(question[start:end])))
    return _few(sorted(names, key=lambda n: n.start))


def affiliations_of(session: Session, tenant_id: str, entity_ids: Iterable[str]) -> dict[str, str]:
    """Person → the organisations that documents name beside them, as one text."""
    beside: dict[str, set[str]] = defaultdict(set)
    for entity_id, names in session.execute(
        select(MentionRow.entity_id, MentionRow.affiliations)
        .where(
            MentionRow.tenant_id == tenant_id,
            MentionRow.entity_id.in_(sorted(entity_ids)),
            MentionRow.type == PERSON,
            MentionRow.affiliations != "",
        )
        .distinct()
        .limit(_AFFILIATIONS)
    ):
        beside[entity_id or ""].update(names.split(SEPARATOR))
    return {entity_id: " ".join(sorted(names)) for entity_id, names in beside.items()}


def _few(names: Sequence[Named]) -> list[Named]:
    kept: list[Named] = []
    left = MAX_ENTITIES
    for name in names:
        left -= len(name.readings)
        if left >= 0:
            kept.append(name)
    return kept


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    best = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:_MAX_READINGS]
    return {entity_id: weight / total for entity_id, weight in best if weight >= _MIN_SHARE * total}


def _grown(session: Reads, tenant_id: str, spans: Mapping[_Place, str]) -> dict[_Place, dict[str, float]]:
    """Entities that documents brought, by their whole names."""
    named: dict[str, dict[str, float]] = defaultdict(dict)
    dialect = session.get_bind().dialect.name
    given = {"tenant": tenant_id, "keys": bound(set(spans.values()), dialect)}
    for folded, entity_id in plain_rows(session, _grown_by_name(dialect), given):
        named[folded][entity_id] = 1.0
    return {place: named[folded] for place, folded in spans.items() if folded in named}


def _called(session: Reads, tenant_id: str, spans: Mapping[_Place, str]) -> dict[_Place, dict[str, float]]:
    """Entities by what documents call them, with the number of times."""
    # The key of a Han name is a piece of it, and every piece is among the spans; words may lose a title.
    keyed = {
        place: folded if _HAN.match(folded) else name_key(folded) for place, folded in spans.items() if folded
    }
    named: dict[str, dict[str, float]] = defaultdict(dict)
    dialect = session.get_bind().dialect.name
    given = {"tenant": tenant_id, "keys": bound(set(keyed.values()), dialect)}
    for key, entity_id, count in plain_rows(session, _linked_by_key(dialect), given):
        named[key][entity_id or ""] = float(count)
    return {place: named[key] for place, key in keyed.items() if key in named}


@lru_cache(maxsize=2)
def _grown_by_name(dialect: str) -> Select[*tuple[Any, ...]]:
    return (
        select(EntityAliasRow.folded, EntityAliasRow.entity_id)
        .join(EntityRow, EntityRow.id == EntityAliasRow.entity_id)
        .where(
            EntityAliasRow.tenant_id == bindparam("tenant"),
            among(EntityAliasRow.__table__.c.folded, "keys", dialect),
            EntityRow.provenance == GROWN,
            EntityRow.blocked.is_(False),
            EntityRow.merged_into.is_(None),
        )
    )


@lru_cache(maxsize=2)
def _linked_by_key(dialect: str) -> Select[*tuple[Any, ...]]:
    return (
        select(MentionRow.key, MentionRow.entity_id, func.count())
        .where(
            MentionRow.tenant_id == bindparam("tenant"),
            among(MentionRow.__table__.c.key, "keys", dialect),
            MentionRow.entity_id.is_not(None),
        )
        .group_by(MentionRow.key, MentionRow.entity_id)
    )


def _capitalised(question: str) -> str:
    """The question as written, or with capitals where its writer uses none: `who was emerson`."""
    if any(c.isupper() for c in question):
        return question
    capitals = _WORD.sub(lambda m: m.group().capitalize() if _may_be_name(m.group()) else m.group(), question)
    return capitals if len(capitals) == len(question) else question


def _may_be_name(word: str) -> bool:
    return len(word) >= _LETTERS and word not in COMMON


def _spans(question: str) -> dict[_Place, str]:
    """Offsets of what may be a name → its folded form: runs of words, pieces of CJK runs."""
    question = _capitalised(question)
    units = list(_UNIT.finditer(question[:_QUESTION_CHARS]))
    spans: dict[_Place, str] = {}
    for first, begin in enumerate(units):
        han = _HAN.match(begin.group()) is not None
        for last in units[first : first + (_HAN_UNITS if han else _WORDS)]:
            start, end = begin.start(), last.end()
            text = question[start:end]
            if len(text) >= 2 and (han or any(c.isupper() or c.isdigit() for c in text)):
                spans[start, end] = alias_key(text)
    return spans
