"""Merge the routes' rankings into one. Pure: values in, values out; order depends on the input alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace

from core.types import Hit, Lang, Route
from retrieval.language import across

Weight = Callable[[Route, int], float]


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


def route_weights(
    base: Mapping[Route, float],
    *,
    question_lang: Lang,
    passage_langs: Mapping[int, Lang],
    identifier_share: float,
) -> Weight:
    """Weight of a route for one passage.

    Words do not match across languages, so there the lexical route counts only as far as the question
    is made of codes and acronyms (`identifier_share`).
    """
    scales = {lang: identifier_share if across(question_lang, lang) else 1.0 for lang in Lang}

    def weight(route: Route, passage_id: int) -> float:
        own = base.get(route, 0.0)
        return own * scales[passage_langs.get(passage_id, Lang.UND)] if route is Route.LEXICAL else own

    return weight


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
    weight: Weight = equal_weights,
    clip: float = 4.0,
    exact: Mapping[Route, float] | None = None,
    against: Mapping[int, float] | None = None,
) -> list[Fused]:
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
    hits = _by_passage(ranked)
    scores = dict.fromkeys(hits, 0.0)
    added = {passage_id: -score for passage_id, score in (against or {}).items() if passage_id in hits}
    for route in (exact or {}).keys() & ranked.keys():
        for hit in ranked[route]:
            added[hit.passage_id] = added.get(hit.passage_id, 0.0) + (exact or {})[route] * hit.score
    for route, own in ranked.items():
        if not own or route in (exact or {}):
            continue
        standardized = _standardize(own, clip)
        floor = min(min(standardized.values()), -1.0 if len(set(standardized.values())) == 1 else math.inf)
        for passage_id in hits:
            scores[passage_id] += weight(route, passage_id) * standardized.get(passage_id, floor)
    return _ranked({i: score + added.get(i, 0.0) for i, score in scores.items()}, hits, added)


def divided(
    ranked: Mapping[Route, Sequence[Hit]], depth: int, *, undivided: Container[Route] = ()
) -> tuple[dict[Route, list[Hit]], dict[Route, list[Hit]]]:
    """Each route's hits down to rank `depth`, and those below; `undivided` routes have all of them above.

    What a route adds to a passage depends on all of its hits. Only the upper part is merged by scores, so
    that asking the routes for more, as later pages of a search do, does not move what came before.
    """
    above = {r: [h for h in own if r in undivided or h.rank <= depth] for r, own in ranked.items()}
    below = {r: [h for h in own if r not in undivided and h.rank > depth] for r, own in ranked.items()}
    return above, below


def followed_by(merged: Sequence[Fused], below: Mapping[Route, Sequence[Hit]]) -> list[Fused]:
    """The merged passages, then those that only lower parts have: by their best rank, ties by passage id."""
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


def _standardize(own: Sequence[Hit], clip: float) -> dict[int, float]:
    values = [hit.score for hit in own]
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"route {own[0].route} returned a score that is not finite")
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    if deviation <= 1e-9 * max(1.0, abs(mean)):
        return {hit.passage_id: 1.0 for hit in own}
    return {hit.passage_id: max(-clip, min(clip, (hit.score - mean) / deviation)) for hit in own}


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
