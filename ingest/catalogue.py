"""The entity catalogue in memory: aliases by folded form, and a matcher that finds them in text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import regex

from core.types import Passage, Span
from ingest.candidates import NameIndex, NameMatch, Spelling, strength
from ingest.fold import fold_with_offsets, search_fold
from ingest.values import Mention

_UNIT = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[^\W_\p{Han}\p{Hiragana}\p{Katakana}]+")
_CJK = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_MIN_CJK_CHARS = 2  # a single character is a word too often
MAX_ALIAS_CHARS = 300
MAX_CANDIDATES = 50
WHOLE = frozenset({Spelling.EXACT, Spelling.FOLDED, Spelling.CORE})
_BESIDE_WHOLE = 0.5  # a part of a name counts less where the surface is the whole name of another entity


def alias_key(text: str) -> str:
    """The form under which an alias is stored and looked up."""
    return " ".join(search_fold(text).split())[:MAX_ALIAS_CHARS]


@dataclass(frozen=True, slots=True)
class CatalogueEntity:
    """What linking knows of an entity."""

    id: str
    type: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Alias:
    """One spelling of an entity. `weight` is its relative frequency; `via` the merged entity that had it."""

    entity_id: str
    folded: str
    spelling: str
    weight: float = 1.0
    via: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity that a surface may mean.

    Attributes:
        prior: P(entity | surface) from alias weights and spelling, in (0, 1]; sums to 1 over the candidates.
        spelling: how the surface matched the entity's best fitting name.
        strength: how well it fits by spelling alone, in (0, 1].
        missing: words of that name which the surface lacks.
        leads: the surface has a word of the head of that name, as a shortened name does.
        pinned: a person decided that this surface means this entity.
    """

    entity: CatalogueEntity
    prior: float
    spelling: Spelling
    strength: float = 1.0
    missing: tuple[str, ...] = ()
    leads: bool = True
    pinned: bool = False
    via: str = ""

    @property
    def named(self) -> bool:
        """Whether the surface is a whole name of the entity, however it is written."""
        return self.spelling in WHOLE


@dataclass(frozen=True, slots=True)
class AliasMatch:
    """Half-open offsets of a catalogue name in a text."""

    start: int
    end: int


@dataclass(slots=True)
class Catalogue:
    """Entities and aliases of one tenant, blocked ones left out and merged ones resolved.

    Attributes:
        pins: folded alias → entity id, by a person's decision.
        splits: (entity id, document id) → what its names mean in that document, by a person's decision.
    """

    entities: Mapping[str, CatalogueEntity]
    pins: Mapping[str, str] = field(default_factory=dict)
    splits: Mapping[tuple[str, str], str] = field(default_factory=dict)
    _aliases: dict[str, list[Alias]] = field(default_factory=dict)
    _lengths: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _names: list[Alias] = field(default_factory=list)
    _spellings: dict[str, list[str]] = field(default_factory=dict)
    _index: NameIndex | None = None

    @classmethod
    def build(
        cls,
        entities: Iterable[CatalogueEntity],
        aliases: Iterable[Alias],
        pins: Mapping[str, str] | None = None,
        splits: Mapping[tuple[str, str], str] | None = None,
    ) -> Catalogue:
        """Index aliases by their folded form and by their first unit (a CJK character or a word)."""
        catalogue = cls({e.id: e for e in entities}, pins or {}, splits or {})
        lengths: dict[str, set[int]] = {}
        for alias in aliases:
            if alias.entity_id not in catalogue.entities:
                continue
            catalogue._aliases.setdefault(alias.folded, []).append(alias)
            catalogue._names.append(alias)
            catalogue._spellings.setdefault(alias.entity_id, []).append(alias.spelling)
            first = _UNIT.match(alias.folded)
            if first is not None and _findable(alias.folded):
                lengths.setdefault(first.group(), set()).add(len(alias.folded))
        catalogue._lengths = {u: tuple(sorted(n, reverse=True)) for u, n in lengths.items()}
        return catalogue

    def __len__(self) -> int:
        return len(self._aliases)

    @property
    def names(self) -> Sequence[Alias]:
        """Every spelling of every entity."""
        return self._names

    def spellings(self, entity_id: str) -> Sequence[str]:
        """The names of one entity, as the catalogue gives them."""
        return self._spellings.get(entity_id, ())

    def candidates(self, surface: str, limit: int = MAX_CANDIDATES) -> list[Candidate]:
        """Entities that `surface` may mean, likeliest by name alone first; at most `limit`.

        An entity counts once, by its best fitting name. One that has a name by itself and through a merge
        counts with both weights.
        """
        if self._index is None:
            self._index = NameIndex(a.spelling for a in self._names)
        pinned = self.pins.get(alias_key(surface))
        best: dict[str, tuple[float, float, NameMatch, list[Alias]]] = {}
        for match in self._index.find(surface, 4 * limit):
            alias, fit = self._names[match.name], strength(match)
            known = best.get(alias.entity_id)
            if known is None:
                best[alias.entity_id] = (fit, alias.weight, match, [alias])
            elif known[0] == fit:
                best[alias.entity_id] = (fit, known[1] + alias.weight, known[2], [*known[3], alias])
        whole = any(match.spelling in WHOLE for _, _, match, _ in best.values())
        shares = {
            entity_id: (fit if not whole or match.spelling in WHOLE else _BESIDE_WHOLE * fit) ** 2 * weight
            for entity_id, (fit, weight, match, _) in best.items()
        }
        total = sum(shares.values())
        found = [
            Candidate(
                entity=self.entities[entity_id],
                prior=shares[entity_id] / total,
                spelling=match.spelling,
                strength=fit,
                missing=match.missing,
                leads=match.leads,
                pinned=entity_id == pinned,
                via="" if any(not a.via for a in aliases) else aliases[0].via,
            )
            for entity_id, (fit, _, match, aliases) in best.items()
        ]
        return sorted(found, key=lambda c: (-c.prior, c.entity.id))[:limit]

    def readings(self, surface: str) -> dict[str, float]:
        """Entities that have `surface` as a name, with the share of each reading; a pin leaves one.

        Looks no further than the folded name, so it needs no index of word forms.
        """
        folded = alias_key(surface)
        pinned = self.pins.get(folded)
        if pinned is not None and pinned in self.entities:
            return {pinned: 1.0}
        weights: dict[str, float] = {}
        for alias in self._aliases.get(folded, ()):
            weights[alias.entity_id] = weights.get(alias.entity_id, 0.0) + alias.weight
        total = sum(weights.values())
        return {entity_id: weight / total for entity_id, weight in weights.items()}

    def knows(self, surface: str) -> bool:
        """Whether some entity has this name, width, case and script variant aside."""
        return alias_key(surface) in self._aliases

    def find(self, text: str) -> list[AliasMatch]:
        """Longest catalogue names in `text`, left to right, not overlapping.

        Names in Latin script match whole words only, and a name with a capital needs one in the text, so
        that `apple` is not Apple.
        """
        if not self._lengths:
            return []
        folded, offsets = fold_with_offsets(text)
        folded = regex.sub(r"\s", " ", folded)
        matches: list[AliasMatch] = []
        done = 0
        for unit in _UNIT.finditer(folded):
            if unit.start() < done:
                continue
            end = self._longest(folded, unit.start(), self._lengths.get(unit.group(), ()), text, offsets)
            if end is not None:
                matches.append(AliasMatch(offsets[unit.start()], _source_end(offsets, end)))
                done = end
        return matches

    def _longest(
        self, folded: str, start: int, lengths: tuple[int, ...], text: str, offsets: list[int]
    ) -> int | None:
        for length in lengths:
            end = start + length
            aliases = self._aliases.get(folded[start:end]) if end <= len(folded) else None
            if aliases is None or _inside_word(folded, end):
                continue
            surface = text[offsets[start] : _source_end(offsets, end)]
            if any(_same_case_kind(a.spelling, surface) for a in aliases):
                return end
        return None


def _findable(folded: str) -> bool:
    if _CJK.search(folded):
        return len(folded) >= _MIN_CJK_CHARS
    return any(c.isalpha() for c in folded)


def _inside_word(folded: str, end: int) -> bool:
    """Whether a cut at `end` would fall inside a Latin word or a number."""
    if end >= len(folded):
        return False
    before, after = folded[end - 1], folded[end]
    return before.isalnum() and after.isalnum() and not _CJK.match(before) and not _CJK.match(after)


def _same_case_kind(spelling: str, surface: str) -> bool:
    if len(spelling) <= 2 and spelling.isascii():
        return spelling == surface  # `US` is not `us`
    return not any(c.isupper() for c in spelling) or any(c.isupper() for c in surface)


def _source_end(offsets: list[int], end: int) -> int:
    """Offset in the text of the end of a folded range: the start of the first cluster not in it."""
    last = offsets[end - 1]
    at = end
    while at < len(offsets) and offsets[at] == last:
        at += 1
    return offsets[at] if at < len(offsets) else offsets[-1]


def with_catalogue_names(
    passages: Sequence[Passage], recognised: Sequence[Mention], catalogue: Catalogue
) -> list[Mention]:
    """Join the recogniser's mentions with catalogue names in the same passages.

    Where two overlap, a name that the catalogue knows stays before one that it does not, then the longer
    one, then the recogniser's, which knows a type.
    """
    by_passage: dict[int, list[Mention]] = {}
    for mention in recognised:
        by_passage.setdefault(mention.passage_id, []).append(mention)
    joined: list[Mention] = []
    for passage in passages:
        offset = passage.span.start
        named = [
            Mention(passage.id, Span(offset + m.start, offset + m.end), passage.text[m.start : m.end], "")
            for m in catalogue.find(passage.text)
        ]
        joined.extend(_without_overlaps(by_passage.get(passage.id, []), named, catalogue))
    return joined


def _without_overlaps(
    recognised: Sequence[Mention], named: Sequence[Mention], catalogue: Catalogue
) -> list[Mention]:
    def strength(mention: Mention) -> tuple[bool, int, bool]:
        known = catalogue.knows(mention.surface)
        return known, len(mention.span), bool(mention.type)

    kept: list[Mention] = []
    for mention in sorted([*recognised, *named], key=strength, reverse=True):
        if all(mention.span.end <= k.span.start or k.span.end <= mention.span.start for k in kept):
            kept.append(mention)
    return sorted(kept, key=lambda m: m.span)
