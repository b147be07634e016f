"""A document version as schema.org JSON-LD. Pure."""

from __future__ import annotations

import re
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
_TAG = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")  # BCP 47, roughly
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
    properties: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Describe a document for machines.

    What the file says of itself (`properties`: author, created, modified, published, description, language)
    goes before what is known from its upload; a date or language that is none is left out.

    `mentions` holds every linked entity once, most mentioned first, with `sameAs` where external ids are
    known, then unlinked names once each; `about` repeats the few that are named most. `hasPart` nests the
    headings by level.

    Source: schema.org CreativeWork (https://schema.org/CreativeWork), JSON-LD 1.1.
    """
    said = properties or {}
    linked = _linked(mentions)
    graph: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "Article" if media_type in _ARTICLES else "CreativeWork",
        "@id": f"urn:geo:{identifier}",
        "identifier": identifier,
        "version": version,
        "name": name,
        "encodingFormat": media_type,
        "dateCreated": _date(said.get("created")) or created_at.isoformat(),
        "dateModified": _date(said.get("modified")) or modified_at.isoformat(),
    }
    if published := _date(said.get("published")):
        graph["datePublished"] = published
    if author := said.get("author"):
        graph["author"] = {"@type": _type_of_author(author, mentions), "name": author}
    if description := said.get("description"):
        graph["description"] = description
    if language := _language(said.get("language"), lang):
        graph["inLanguage"] = language
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


def _date(given: str | None) -> str | None:
    """The date as given, if it is one in ISO 8601."""
    try:
        return given if given and datetime.fromisoformat(given) else None
    except ValueError:
        return None


def _language(given: str | None, lang: str) -> str | None:
    """The declared language where it agrees with the text's, or where the text's is not known."""
    if given and _TAG.fullmatch(given) and (lang not in _LANGUAGES or given.lower().startswith(lang)):
        return given
    return _LANGUAGES.get(lang)


def _type_of_author(author: str, mentions: Sequence[AnnotatedMention]) -> str:
    kinds = {schema_type(m.type) for m in mentions if author in (m.surface, m.name)}
    return "Organization" if "Organization" in kinds else "Person"


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
