"""The entity route: names in the question → entities → passages that mention them.

Where a name means several entities, the question decides which (`readings.py`): passages of that one are
brought forward, and passages that name another one of the name are held back, whoever found them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from core.models import DocumentRow, EntityRow, MentionRow, PassageRow
from core.types import Scope
from ingest.catalogue import Catalogue
from ingest.growth import GROWN, GROWN_BY_NAME
from retrieval.entity_names import Named, affiliations_of
from retrieval.filters import Filters
from retrieval.live import visible
from retrieval.open_names import words_beside
from retrieval.readings import Profile, Similarity, Weighed, weigh

PLAIN = 0.2  # a name of one reading names a topic, not an answer: CLAPNQ loses .004 with 1.0 …
SURE = 3.0  # … and a name of several that the question decides
_NOBODY = 0.2  # how much a mention of the name that is linked to nobody counts as one of somebody else
_DECIDED = 0.6  # certainty from which a question means one reading, and below which it may mean each
_OPEN = 0.2  # a reading of an open name that is at least so likely, against the likeliest, is one of them …
_EACH = 4  # … up to so many
_OTHER = 0.5  # a reading that is less likely than this, against the likeliest, is another one
_MAX_ROWS = 20_000  # links that are weighed; a name in more passages says little about any of them
_COSINE = 5.0  # times the cosine behind the best passage: e5's useful range is a tenth wide
_LEAST = 0.05

Cosines = Callable[[Sequence[int]], Mapping[int, float]]
"""Cosine of the question with passages, by passage id."""


@dataclass(frozen=True, slots=True)
class Links:
    """What an installation knows of the names in a question.

    Attributes:
        passages: passage → entity → score of the best link, of all readings, where the scope may see it.
        nobody: key of a name → passages with a mention of it that is linked to nobody.
        documents: entity → documents with such a passage.
        by_name: entities that documents brought and that are one by their name: another of the name is the
            same thing taken for another kind, not somebody else.
    """

    names: Sequence[Named] = ()
    profiles: Mapping[str, Profile] = field(default_factory=dict[str, Profile])
    passages: Mapping[int, Mapping[str, float]] = field(default_factory=dict[int, Mapping[str, float]])
    documents: Mapping[str, Set[str]] = field(default_factory=dict[str, Set[str]])
    nobody: Mapping[str, Set[int]] = field(default_factory=dict[str, Set[int]])
    by_name: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class EntityHits:
    """What the route found.

    Attributes:
        scored: (passage id, score), best first; a name of one reading gives up to 1.
        against: passages that name another entity of a name in the question → how much speaks against them.
        weighed: the names, for the trace.
        others: passages that name somebody else, or nobody known, where the question means one person.
        each: for a name that may mean several: the passages of every reading.
        said: how many words the question has beside that name that may tell its readings apart.
    """

    scored: Sequence[tuple[int, float]] = ()
    against: Mapping[int, float] = field(default_factory=dict[int, float])
    weighed: Sequence[Weighed] = ()
    others: frozenset[int] = frozenset()
    each: Sequence[frozenset[int]] = ()
    said: float = 0.0


def links_of(
    session: Session, scope: Scope, filters: Filters, names: Sequence[Named], catalogue: Catalogue
) -> Links:
    """The readings of names, and the visible passages that mention one of these."""
    ids = sorted({i for name in names for i in name.readings})
    if not ids:
        return Links()
    keys = sorted({name.key for name in names if len(name.readings) > 1 and name.key})
    passages: dict[int, dict[str, float]] = defaultdict(dict)
    documents: dict[str, set[str]] = defaultdict(set)
    nobody: dict[str, set[int]] = defaultdict(set)
    unlinked = and_(MentionRow.entity_id.is_(None), MentionRow.key.in_(keys))
    for passage_id, document_id, entity_id, link, key in session.execute(
        select(
            MentionRow.passage_id,
            DocumentRow.id,
            MentionRow.entity_id,
            func.max(MentionRow.score),
            func.max(MentionRow.key),
        )
        .join(PassageRow, PassageRow.id == MentionRow.passage_id)
        .join(DocumentRow, DocumentRow.id == PassageRow.document_id)
        .where(
            MentionRow.tenant_id == scope.tenant_id,
            or_(MentionRow.entity_id.in_(ids), unlinked),
            visible(scope, filters, dialect=session.get_bind().dialect.name),
        )
        .group_by(MentionRow.passage_id, DocumentRow.id, MentionRow.entity_id)
        .limit(_MAX_ROWS)
    ):
        if entity_id is None:
            nobody[key].add(passage_id)
            continue
        passages[passage_id][entity_id] = link
        documents[entity_id].add(document_id)
    several = {i for name in names if len(name.readings) > 1 for i in name.readings}
    profiles = _profiles(session, scope.tenant_id, several, catalogue)
    return Links(names, profiles, passages, documents, nobody, _by_name(session, several))


def _by_name(session: Session, entity_ids: Set[str]) -> frozenset[str]:
    if not entity_ids:
        return frozenset()
    return frozenset(
        session.scalars(
            select(EntityRow.id).where(
                EntityRow.id.in_(sorted(entity_ids)),
                EntityRow.provenance == GROWN,
                EntityRow.type.in_(sorted(GROWN_BY_NAME)),
            )
        )
    )


def _profiles(
    session: Session, tenant_id: str, entity_ids: Set[str], catalogue: Catalogue
) -> dict[str, Profile]:
    if not entity_ids:
        return {}
    beside = affiliations_of(session, tenant_id, entity_ids)
    profiles: dict[str, Profile] = {}
    for entity_id in entity_ids:
        known = catalogue.entities.get(entity_id)
        name, about = (known.name, known.description) if known else ("", "")
        profiles[entity_id] = Profile(name, about, beside.get(entity_id, ""))
    return profiles


def entity_hits(
    question: str,
    links: Links,
    *,
    limit: int,
    similarity: Similarity | None = None,
    cosines: Cosines | None = None,
) -> EntityHits:
    """Order the passages that mention what the question names.

    A name of one reading counts by its rarity, 1 / (1 + ln(passages that mention it)): a name that is
    everywhere in the scope says little about any one passage. A name of several counts by how surely the
    question means one of them. Among passages of one entity those nearest to the question come first.

    Args:
        question: the text.
        links: of `links_of`.
        limit: passages wanted.
        similarity: between the question and descriptions; None leaves it out.
        cosines: between the question and passages; None leaves it out.
    """
    weighed = weigh(question, links.names, links.profiles, links.documents, similarity)
    plain: dict[int, float] = defaultdict(float)
    sure: dict[int, float] = defaultdict(float)
    against: dict[int, float] = defaultdict(float)
    for name in weighed:
        fits = _fits(name, links)
        rarity = 1.0 / (1.0 + math.log(max(1, len(fits))))
        for passage_id, (fit, link, entity_id) in fits.items():
            plain[passage_id] += rarity * fit * link
            if fit >= _OTHER:
                sure[passage_id] += name.certainty * fit * link
            elif entity_id not in links.by_name:
                against[passage_id] += name.certainty * (1 - fit)
        for passage_id in links.nobody.get(name.name.key, frozenset[int]()) - fits.keys():
            against[passage_id] += _NOBODY * name.certainty
    most = max(plain.values(), default=1.0)
    scores = {i: value / most + SURE * min(1.0, sure[i]) for i, value in plain.items() if not against.get(i)}
    near = _nearest(scores, cosines)
    shown = {i: max(_LEAST * PLAIN, score - (1 - PLAIN) * plain[i] / most) for i, score in near.items()}
    ordered = sorted(shown.items(), key=lambda item: (-item[1], -near[item[0]], item[0]))
    open_name, each = _each(weighed, links)
    return EntityHits(
        ordered[:limit],
        {i: SURE * min(1.0, a) for i, a in against.items() if a > 0},
        weighed,
        _others(weighed, links),
        each,
        words_beside(question, open_name) if open_name else 0.0,
    )


def _others(weighed: Sequence[Weighed], links: Links) -> frozenset[int]:
    """Passages that are about somebody else, for every name that the question decides."""
    others: set[int] = set()
    for name in weighed:
        if name.certainty < _DECIDED:
            continue
        fits = _fits(name, links)
        if any(fit >= _OTHER for fit, *_ in fits.values()):
            others.update(
                i
                for i, (fit, _, entity_id) in fits.items()
                if fit < _OTHER and entity_id not in links.by_name
            )
            others.update(links.nobody.get(name.name.key, frozenset[int]()) - fits.keys())
    return frozenset(others)


def _each(weighed: Sequence[Weighed], links: Links) -> tuple[Named | None, list[frozenset[int]]]:
    """The first name that the question leaves open, and the passages of each reading, the likeliest first."""
    for name in weighed:
        if len(name.shares) < 2 or name.certainty >= _DECIDED:
            continue
        groups = [
            frozenset(i for i, linked in links.passages.items() if entity_id in linked)
            for entity_id in sorted(name.shares, key=lambda i: (-name.shares[i], i))
            if name.fit(entity_id) >= _OPEN and entity_id not in links.by_name
        ]
        groups = [group for group in groups if group][:_EACH]
        if len(groups) > 1:
            return name.name, groups
    return None, []


def _fits(name: Weighed, links: Links) -> dict[int, tuple[float, float, str]]:
    """Passage → fit of the likeliest reading that it mentions, the score of that link, the entity."""
    found: dict[int, tuple[float, float, str]] = {}
    for passage_id, linked in links.passages.items():
        own = [(name.fit(i), score, i) for i, score in linked.items() if i in name.shares]
        if own:
            found[passage_id] = max(own)
    return found


def _nearest(scores: Mapping[int, float], cosines: Cosines | None) -> dict[int, float]:
    if cosines is None or len(scores) < 2:
        return dict(scores)
    near = cosines(sorted(scores))
    top = max(near.values(), default=0.0)
    return {i: max(_LEAST, score + _COSINE * (near.get(i, top) - top)) for i, score in scores.items()}
