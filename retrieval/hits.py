"""A route's hits as columns. A `Hit` is made of them when one is looked at: of a hundred, ten are shown."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from operator import itemgetter
from typing import overload

from core.types import Hit, Route

_SCORE = itemgetter(1)


class RouteHits(Sequence[Hit]):
    """What one route found, best first.

    Args:
        route: which.
        ids: passage ids, each once.
        scores: on the route's own scale, one per id.
        ranks: from 1, ascending; None: without gaps.
    """

    __slots__ = ("ids", "ranks", "route", "scores")

    def __init__(
        self, route: Route, ids: Sequence[int], scores: Sequence[float], ranks: Sequence[int] | None = None
    ) -> None:
        self.route, self.ids, self.scores = route, ids, scores
        self.ranks: Sequence[int] = range(1, len(ids) + 1) if ranks is None else ranks

    @overload
    def __getitem__(self, at: int) -> Hit: ...
    @overload
    def __getitem__(self, at: slice) -> RouteHits: ...
    def __getitem__(self, at: int | slice) -> Hit | RouteHits:
        """The hit at a place, or the hits of a slice."""
        if isinstance(at, slice):
            return RouteHits(self.route, self.ids[at], self.scores[at], self.ranks[at])
        return Hit(self.ids[at], self.route, self.ranks[at], self.scores[at])

    def __len__(self) -> int:
        """How many."""
        return len(self.ids)

    def __iter__(self) -> Iterator[Hit]:
        """Each as a `Hit`, best first."""
        for passage_id, rank, score in zip(self.ids, self.ranks, self.scores, strict=True):
            yield Hit(passage_id, self.route, rank, score)

    def __eq__(self, other: object) -> bool:
        """Whether the other sequence holds the same hits."""
        return isinstance(other, Sequence) and list(self) == list(other)  # pyright: ignore[reportUnknownArgumentType]

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def among(self, known: Container[int]) -> RouteHits:
        """Those of passages in `known`, with the ranks that they have here."""
        if all(map(known.__contains__, self.ids)):
            return self
        kept = [at for at, i in enumerate(self.ids) if i in known]
        columns = (self.ids, self.scores, self.ranks)
        ids, scores, ranks = ([column[at] for at in kept] for column in columns)
        return RouteHits(self.route, ids, scores, ranks)  # pyright: ignore[reportArgumentType]


def as_columns(route: Route, hits: Sequence[Hit]) -> RouteHits:
    """Any sequence of hits as `RouteHits`."""
    if isinstance(hits, RouteHits):
        return hits
    return RouteHits(route, [h.passage_id for h in hits], [h.score for h in hits], [h.rank for h in hits])


def ranked_hits(route: Route, scored: Sequence[tuple[int, float]]) -> RouteHits:
    """Hits with ranks from 1: higher score first, ties by passage id; a repeated id counts once."""
    best = dict(scored)
    if len(best) < len(scored):
        best = {}
        for passage_id, score in scored:
            best[passage_id] = max(score, best.get(passage_id, score))
    order = sorted(best.items())
    order.sort(key=_SCORE, reverse=True)  # which leaves equal ones in the order of their ids
    return RouteHits(route, [i for i, _ in order], [score for _, score in order])
