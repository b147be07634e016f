"""The entity catalogue in memory: aliases by folded form, and a matcher that finds them in text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import regex

from core.types import Passage, Span
from ingest.fold import fold_with_offsets, search_fold
from ingest.values import Mention

_UNIT = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[^\W_\p{Han}\p{Hiragana}\p{Katakana}]+")
_CJK = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_MIN_CJK_CHARS = 2  # a single character is a word too often
MAX_ALIAS_CHARS = 300


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
        prior: P(entity | surface) from the alias weights, in (0, 1]; sums to 1 over the candidates.
        exact: the surface is spelled like the alias, width, case and script variant included.
        pinned: a person decided that this surface means this entity.
    """

    entity: CatalogueEntity
    prior: float
    exact: bool
    pinned: bool = False
    via: str = ""


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
            first = _UNIT.match(alias.folded)
            if first is not None and _findable(alias.folded):
                lengths.setdefault(first.group(), set()).add(len(alias.folded))
        catalogue._lengths = {u: tuple(sorted(n, reverse=True)) for u, n in lengths.items()}
        return catalogue

    def __len__(self) -> int:
        return len(self._aliases)

    def candidates(self, folded: str, surface: str) -> list[Candidate]:
        """Entities that `surface` (whose folded form is `folded`) may mean, likeliest first.

        An entity that has the name by itself and through a merge counts once, with both weights.
        """
        pinned = self.pins.get(folded)
        by_entity: dict[str, list[Alias]] = {}
        for alias in self._aliases.get(folded, ()):
            by_entity.setdefault(alias.entity_id, []).append(alias)
        total = sum(a.weight for group in by_entity.values() for a in group)
        found = [
            Candidate(
                entity=self.entities[entity_id],
                prior=sum(a.weight for a in group) / total,
                exact=any(a.spelling == surface for a in group),
                pinned=entity_id == pinned,
                via="" if any(not a.via for a in group) else group[0].via,
            )
            for entity_id, group in by_entity.items()
        ]
        return sorted(found, key=lambda c: (-c.prior, c.entity.id))

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
        known = bool(catalogue.candidates(alias_key(mention.surface), mention.surface))
        return known, len(mention.span), bool(mention.type)

    kept: list[Mention] = []
    for mention in sorted([*recognised, *named], key=strength, reverse=True):
        if all(mention.span.end <= k.span.start or k.span.end <= mention.span.start for k in kept):
            kept.append(mention)
    return sorted(kept, key=lambda m: m.span)
