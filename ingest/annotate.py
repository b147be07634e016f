"""A document version as schema.org JSON-LD. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_TYPES = {
    "PERSON": "Person",
    "ORG": "Organization",
    "GPE": "Place",
    "LOC": "Place",
    "FAC": "Place",
    "PLACE": "Place",
    "PRODUCT": "Product",
    "EVENT": "Event",
    "WORK_OF_ART": "CreativeWork",
    "LAW": "Legislation",
}
_LANGUAGES = {"zh": "zh-Hans", "en": "en"}
_ARTICLES = ("text/html", "application/xhtml+xml")
_ABOUT_MENTIONS = 2  # named at least so often, an entity is what the document is about …
_ABOUT_MAX = 5  # … as one of the few named most


@dataclass(frozen=True, slots=True)
class AnnotatedMention:
    """One mention with what the catalogue says of its entity; `entity_id` None is NIL.

    `type` is an entity type or a recogniser's label; `score` in [0, 1].
    """

    surface: str
    type: str
    entity_id: str | None
    name: str
    description: str
    same_as: tuple[str, ...]
    score: float


def annotate(
    *,
    name: str,
    lang: str,
    media_type: str,
    identifier: str,
    version: int,
    outline: Sequence[Mapping[str, Any]],
    keywords: Sequence[str],
    created_at: datetime,
    modified_at: datetime,
    mentions: Sequence[AnnotatedMention],
) -> dict[str, Any]:
    """Describe a document for machines.

    `mentions` holds every linked entity once, most mentioned first, with `sameAs` where external ids are
    known, then unlinked names once each; `about` repeats the few that are named most. `hasPart` nests the
    headings by level.

    Source: schema.org CreativeWork (https://schema.org/CreativeWork), JSON-LD 1.1.
    """
    linked = _linked(mentions)
    graph: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "Article" if media_type in _ARTICLES else "CreativeWork",
        "@id": f"urn:geo:{identifier}",
        "identifier": identifier,
        "version": version,
        "name": name,
        "encodingFormat": media_type,
        "dateCreated": created_at.isoformat(),
        "dateModified": modified_at.isoformat(),
    }
    if lang in _LANGUAGES:
        graph["inLanguage"] = _LANGUAGES[lang]
    if keywords:
        graph["keywords"] = list(keywords)
    about = [thing for thing, count in linked if count >= _ABOUT_MENTIONS][:_ABOUT_MAX]
    if about:
        graph["about"] = about
    named = [thing for thing, _ in linked] + _unlinked(mentions)
    if named:
        graph["mentions"] = named
    parts = _parts(outline)
    if parts:
        graph["hasPart"] = parts
    return graph


def schema_type(kind: str) -> str:
    """schema.org type of an entity type or recogniser label; unknown ones are `Thing`."""
    known = _TYPES.get(kind.upper())
    if known is not None:
        return known
    return kind if kind in set(_TYPES.values()) else "Thing"


def _linked(mentions: Sequence[AnnotatedMention]) -> list[tuple[dict[str, Any], int]]:
    counts = Counter(m.entity_id for m in mentions if m.entity_id is not None)
    first = {m.entity_id: m for m in reversed(mentions) if m.entity_id is not None}
    things: list[tuple[dict[str, Any], int]] = []
    for entity_id, count in counts.most_common():
        mention = first[entity_id]
        thing: dict[str, Any] = {
            "@type": schema_type(mention.type),
            "@id": f"urn:geo:{entity_id}",
            "name": mention.name,
        }
        if mention.description:
            thing["description"] = mention.description
        if mention.same_as:
            thing["sameAs"] = list(mention.same_as)
        other_names = sorted(
            {m.surface for m in mentions if m.entity_id == entity_id and m.surface != mention.name}
        )
        if other_names:
            thing["alternateName"] = other_names
        things.append((thing, count))
    return things


def _unlinked(mentions: Sequence[AnnotatedMention]) -> list[dict[str, Any]]:
    names = dict.fromkeys((schema_type(m.type), m.surface) for m in mentions if m.entity_id is None)
    return [{"@type": kind, "name": surface} for kind, surface in names]


def _parts(outline: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    top: list[dict[str, Any]] = []
    above: list[tuple[int, dict[str, Any]]] = []
    for position, heading in enumerate(outline, start=1):
        level = int(heading["level"])
        part: dict[str, Any] = {"@type": "CreativeWork", "name": heading["text"], "position": position}
        while above and above[-1][0] >= level:
            above.pop()
        siblings = above[-1][1].setdefault("hasPart", []) if above else top
        siblings.append(part)
        above.append((level, part))
    return top
