"""Merge the routes' rankings into one. Pure: values in, values out; order depends on the input alone."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt

from core.types import Hit, Lang, Route
from retrieval.hits import RouteHits, as_columns
from retrieval.language import across

Weight = Callable[[Route, int], float]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Fused:
    """One passage after fusion.

    Attributes:
        score: the order is by it; `exact` is part of it.
        hits: one entry per route that recalled it, in route order.
        exact: what the routes whose scores are not standardized added.
    """

    passage_id: int
    score: float
    hits: tuple[Hit, ...]
    exact: float = 0.0


class FusedPassages(Sequence[Fused]):
    """Passages in their merged order; a `Fused` is made when one is looked at.

    Args:
        ids: best first.
        scores: one per id.
        exact: by id, where it is not 0.
        routes: the hits that were merged.
    """

    def __init__(
        self,
        ids: Sequence[int],
        scores: Sequence[float],
        exact: Mapping[int, float],
        routes: Mapping[Route, Sequence[Hit]],
    ) -> None:
        self.ids, self.scores, self.exact, self._routes = ids, scores, exact, routes

    @cached_property
    def _places(self) -> list[tuple[Sequence[Hit], dict[int, int]]]:
        columns = [as_columns(route, own) for route, own in self._routes.items()]
        return [(own, {i: at for at, i in enumerate(own.ids)}) for own in columns]

    @overload
    def __getitem__(self, at: int) -> Fused: ...
    @overload
    def __getitem__(self, at: slice) -> list[Fused]: ...
    def __getitem__(self, at: int | slice) -> Fused | list[Fused]:
        """The passage at a place, or those of a slice."""
        if isinstance(at, slice):
            return [self[n] for n in range(*at.indices(len(self.ids)))]
        passage_id = self.ids[at]
        hits = tuple(own[places[passage_id]] for own, places in self._places if passage_id in places)
        return Fused(passage_id, self.scores[at], hits, self.exact.get(passage_id, 0.0))

    def __len__(self) -> int:
        """How many."""
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        """Whether the other sequence holds the same passages."""
        return isinstance(other, Sequence) and list(self) == list(other)  # pyright: ignore[reportUnknownArgumentType]

    __hash__ = None  # pyright: ignore[reportAssignmentType]


@dataclass(frozen=True, slots=True)
class RouteWeights:
    """Weight of a route for one passage.

    Words do not match across languages, so there the lexical route counts only as far as the question
    is made of codes and acronyms.

    Attributes:
        base: of routes, for a passage in the question's language.
        scales: of the lexical route, by the passage's language.
        langs: of passages; one that is not here is of an unknown language.
    """

    base: Mapping[Route, float]
    scales: Mapping[Lang, float]
    langs: Mapping[int, Lang]

    def __call__(self, route: Route, passage_id: int) -> float:
        """The weight for one passage."""
        own = self.base.get(route, 0.0)
        return own * self.scales[self.langs.get(passage_id, Lang.UND)] if route is Route.LEXICAL else own

    def column(self, route: Route, ids: Sequence[int]) -> Floats | float:
        """The weights of passages, or the one that all have."""
        own = self.base.get(route, 0.0)
        if route is not Route.LEXICAL or not any(
            self.scales[lang] != 1.0 for lang in set(self.langs.values())
        ):
            return own
        return own * np.array([self.scales[self.langs.get(i, Lang.UND)] for i in ids])


def route_weights(
    base: Mapping[Route, float],
    *,
    question_lang: Lang,
    passage_langs: Mapping[int, Lang],
    identifier_share: float,
) -> RouteWeights:
    """The weights of one question; `identifier_share` is what of it are codes and acronyms."""
    scales = {lang: identifier_share if across(question_lang, lang) else 1.0 for lang in Lang}
    return RouteWeights(base, scales, passage_langs)


def equal_weights(_route: Route, _passage_id: int) -> float:
    """Every route counts the same."""
    return 1.0


def reciprocal_rank_fusion(
    ranked: Mapping[Route, Sequence[Hit]], *, weight: Weight = equal_weights, k: int = 60
) -> list[Fused]:
    """Merge by rank alone: score(p) = sum over routes of weight(route, p) / (k + rank), rank from 1.

    Args:
        ranked: hits per route, best first; a passage occurs at most once per route. Not modified.
        weight: route's weight for a passage, ≥ 0.
        k: rank damping, dimensionless.

    Returns:
        One entry per passage, best first; ties by passage id.

    Raises:
        ValueError: k < 1, or a route lists a passage twice.

    Source: Cormack, Clarke, Büttcher, SIGIR 2009, doi:10.1145/1571941.1572114.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    hits = _by_passage(ranked)
    return _ranked(
        {
            passage_id: math.fsum(weight(hit.route, passage_id) / (k + hit.rank) for hit in own)
            for passage_id, own in hits.items()
        },
        hits,
    )


def standardized_sum(
    ranked: Mapping[Route, Sequence[Hit]],
    *,
    weight: Weight | RouteWeights = equal_weights,
    clip: float = 4.0,
    exact: Mapping[Route, float] | None = None,
    against: Mapping[int, float] | None = None,
) -> FusedPassages:
    """Merge by scores, standardized inside each route for this one query.

    score(p) = sum over routes of weight(route, p) · clip((s − mean) / deviation). Mean and deviation are
    those of the route's own hits; a passage that the route did not return takes the route's lowest score. A
    route whose scores do not vary says which passages it found and no more: they get +1 there, others −1.

    Args:
        ranked: hits per route, best first; a passage occurs at most once per route. Not modified.
        weight: route's weight for a passage, ≥ 0.
        clip: bound on one standardized score, so that a single outlier cannot outvote every other route.
        exact: routes whose scores mean the same for every question, with their weights: weight · score is
            added as it is, and nothing is taken from a passage that such a route did not return.
        against: what is taken from passages, whoever found them; it counts like the score of an exact route.

    Returns:
        One entry per passage, best first; ties by passage id.

    Raises:
        ValueError: a route lists a passage twice, or a score is not finite.
    """
    routes = {route: as_columns(route, own) for route, own in ranked.items() if own}
    if not routes:
        return FusedPassages([], [], {}, {})
    ids, places = np.unique(np.concatenate([own.ids for own in routes.values()]), return_inverse=True)
    scores, added = np.zeros(len(ids)), dict[int, float]()
    at = 0
    for route, own in routes.items():
        place = places[at : at + len(own)]
        at += len(own)
        if len(set(own.ids)) < len(own):
            raise ValueError(f"route {route} lists a passage twice")
        if route in (exact or {}):
            for passage_id, score in zip(own.ids, own.scores, strict=True):
                added[passage_id] = added.get(passage_id, 0.0) + (exact or {})[route] * score
            continue
        column = _standardized_column(own, place, len(ids), clip)
        scores += _weights_of(weight, route, ids) * column
    taken = against or {}
    for passage_id in taken.keys() & set(ids.tolist()) if taken else ():
        added[passage_id] = added.get(passage_id, 0.0) - taken[passage_id]
    if added:
        scores[np.searchsorted(ids, list(added))] += list(added.values())
    order = np.lexsort((ids, -scores))
    return FusedPassages(ids[order].tolist(), scores[order].tolist(), added, routes)


def divided(
    ranked: Mapping[Route, Sequence[Hit]], depth: int, *, undivided: Container[Route] = ()
) -> tuple[dict[Route, RouteHits], dict[Route, RouteHits]]:
    """Each route's hits down to rank `depth`, and those below; `undivided` routes have all of them above.

    What a route adds to a passage depends on all of its hits. Only the upper part is merged by scores, so
    that asking the routes for more, as later pages of a search do, does not move what came before.
    """
    above: dict[Route, RouteHits] = {}
    below: dict[Route, RouteHits] = {}
    for route, hits in ranked.items():
        own = as_columns(route, hits)
        cut = len(own) if route in undivided else bisect_right(own.ranks, depth)
        above[route], below[route] = own[:cut], own[cut:]
    return above, below


def followed_by(merged: FusedPassages, below: Mapping[Route, Sequence[Hit]]) -> Sequence[Fused]:
    """The merged passages, then those that only lower parts have: by their best rank, ties by passage id."""
    if not any(below.values()):
        return merged
    deeper = _by_passage(below)
    first = [replace(f, hits=f.hits + deeper.pop(f.passage_id, ())) for f in merged]
    floor = min((f.score for f in first), default=0.0)
    order = sorted(deeper, key=lambda i: (min(hit.rank for hit in deeper[i]), i))
    return first + [Fused(i, floor - n, deeper[i]) for n, i in enumerate(order, 1)]


def standardized(values: Sequence[float]) -> list[float]:
    """(v − mean) / deviation for each value; all 0 when they do not vary."""
    if not values:
        return []
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))
    return [(v - mean) / deviation if deviation > 1e-9 else 0.0 for v in values]


def _standardized_column(own: RouteHits, place: Places, size: int, clip: float) -> Floats:
    """Standardized scores [size] of one route by place; passages that it did not return have its floor."""
    values = np.asarray(own.scores, np.float64)
    mean = float(values.mean())
    if not math.isfinite(mean):
        raise ValueError(f"route {own.route} returned a score that is not finite")
    apart = values - mean
    deviation = math.sqrt(float(apart @ apart) / len(values))
    if deviation <= 1e-9 * max(1.0, abs(mean)):
        column = np.full(size, -1.0)
        column[place] = 1.0
        return column
    standard = np.minimum(np.maximum(apart / deviation, -clip), clip)
    column = np.full(size, standard.min())
    column[place] = standard
    return column


def _weights_of(weight: Weight | RouteWeights, route: Route, ids: Places) -> Floats | float:
    if isinstance(weight, RouteWeights):
        return weight.column(route, ids.tolist())
    return np.array([weight(route, i) for i in ids.tolist()])


def _by_passage(ranked: Mapping[Route, Sequence[Hit]]) -> dict[int, tuple[Hit, ...]]:
    found: dict[int, list[Hit]] = {}
    for route, own in ranked.items():
        if len({hit.passage_id for hit in own}) != len(own):
            raise ValueError(f"route {route} lists a passage twice")
        for hit in own:
            found.setdefault(hit.passage_id, []).append(hit)
    return {passage_id: tuple(own) for passage_id, own in found.items()}


def _ranked(
    scores: Mapping[int, float], hits: Mapping[int, tuple[Hit, ...]], exact: Mapping[int, float] | None = None
) -> list[Fused]:
    order = sorted(scores, key=lambda passage_id: (-scores[passage_id], passage_id))
    return [Fused(i, scores[i], hits[i], (exact or {}).get(i, 0.0)) for i in order]
