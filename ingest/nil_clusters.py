"""Names that no catalogue knows: which of them mean one person. Pure.

Organisations and places are one thing by their name. People are not: two of one name are the same person
only when something ties them, here an organisation named beside both. What nothing ties stays apart. People
are the connected components of that relation, so the order in which documents come does not matter.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from core.types import LinkedMention, Passage
from ingest.name_forms import name_form
from ingest.sentences import sentences

PERSON = "PERSON"
_ORG = "ORG"
SEPARATOR = "|"  # no token of a folded name holds it
_MAX_AFFILIATIONS = 8


@dataclass(frozen=True, slots=True)
class Appearance:
    """A person's name in one document version, beside the same organisations.

    Attributes:
        affiliations: folded names of organisations in the same sentences.
        entity_id: what it is linked to now.
    """

    document_id: str
    version: int
    affiliations: frozenset[str]
    entity_id: str | None = None


def name_key(name: str) -> str:
    """Under which a name is the same name: folded, without titles and legal forms."""
    return name_form(name).core[:300]


def affiliations(passages: Sequence[Passage], mentions: Sequence[LinkedMention]) -> list[frozenset[str]]:
    """For each mention of a person, the organisations named in its sentence, or alone in its passage."""
    organisations: dict[int, list[LinkedMention]] = defaultdict(list)
    for mention in mentions:
        if mention.type == _ORG:
            organisations[mention.passage_id].append(mention)
    edges = {
        p.id: [p.span.start + s.end for s in sentences(p.text)] for p in passages if p.id in organisations
    }
    return [_beside(m, organisations.get(m.passage_id, ()), edges.get(m.passage_id, ())) for m in mentions]


def _beside(
    mention: LinkedMention, organisations: Sequence[LinkedMention], edges: Sequence[int]
) -> frozenset[str]:
    if mention.type != PERSON or not organisations:
        return frozenset()
    keys = {name_key(o.name) for o in organisations}
    own = _sentence(mention.span.start, edges)
    near = {name_key(o.name) for o in organisations if _sentence(o.span.start, edges) == own}
    chosen = near or (keys if len(keys) == 1 else set[str]())
    return frozenset(sorted(k for k in chosen if k)[:_MAX_AFFILIATIONS])


def _sentence(offset: int, edges: Sequence[int]) -> int:
    return sum(edge <= offset for edge in edges)


def settle(
    tenant_id: str, key: str, appearances: Sequence[Appearance], held: frozenset[str] = frozenset()
) -> dict[Appearance, str | None]:
    """Give every appearance of one name its entity.

    Args:
        tenant_id: part of fresh ids.
        key: the name, as `name_key` gives it.
        appearances: all of the tenant, in any order.
        held: entities that a person has changed; what is linked to them stays.

    Returns:
        Entity id per appearance. None where nothing ties it to a person: no organisation beside it, and none
        or several people of the name in its document.
    """
    components = _components([a for a in appearances if a.affiliations and a.entity_id not in held])
    settled: dict[Appearance, str | None] = {a: a.entity_id for a in appearances if a.entity_id in held}
    taken: set[str] = set()
    for component in components:
        entity_id = _id_of(tenant_id, key, component, taken)
        taken.add(entity_id)
        settled.update(dict.fromkeys(component, entity_id))
    in_document: dict[tuple[str, int], set[str]] = defaultdict(set)
    for appearance, entity_id in settled.items():
        if entity_id is not None:
            in_document[appearance.document_id, appearance.version].add(entity_id)
    for appearance in appearances:
        if appearance not in settled:
            people = in_document[appearance.document_id, appearance.version]
            settled[appearance] = next(iter(people)) if len(people) == 1 else None
    return settled


def _components(appearances: Sequence[Appearance]) -> list[list[Appearance]]:
    """Groups tied by common affiliations, in the order of their smallest one."""
    parent: dict[str, str] = {}

    def root(affiliation: str) -> str:
        while parent.setdefault(affiliation, affiliation) != affiliation:
            parent[affiliation] = parent[parent[affiliation]]
            affiliation = parent[affiliation]
        return affiliation

    for appearance in appearances:
        first, *others = sorted(appearance.affiliations)
        for other in others:
            low, high = sorted((root(first), root(other)))
            parent[high] = low
    groups: dict[str, list[Appearance]] = defaultdict(list)
    for appearance in appearances:
        groups[root(min(appearance.affiliations))].append(appearance)
    return [groups[affiliation] for affiliation in sorted(groups)]


def _id_of(tenant_id: str, key: str, component: Sequence[Appearance], taken: set[str]) -> str:
    """The id that the group has already, or one made from its name and smallest affiliation."""
    known = sorted({a.entity_id for a in component if a.entity_id is not None} - taken)
    if known:
        return known[0]
    smallest = min(affiliation for a in component for affiliation in a.affiliations)
    fresh = grown_id(tenant_id, PERSON, f"{key}{SEPARATOR}{smallest}")
    while fresh in taken:
        fresh = grown_id(tenant_id, PERSON, fresh)
    return fresh


def grown_id(tenant_id: str, kind: str, key: str) -> str:
    """Id of an entity that documents brought: the same for the same name and kind."""
    return "ent_" + hashlib.sha256(f"{tenant_id}\0corpus\0{kind}\0{key}".encode()).hexdigest()[:26]
