"""What a build must show before it is served: whole files, recall, and answers that stay where they were.

Nothing here changes what is served. Each snapshot is loaded, asked and let go before the next one, so a build
never holds more than one copy of the vectors in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.db import Database
from core.errors import PermanentError
from core.memory import return_freed_memory
from core.settings import get_settings
from core.types import Route, Scope, Tier
from retrieval import build_repository
from retrieval.build_repository import SavedQuestion
from retrieval.filters import Filters
from retrieval.lexical_store import open_lexical
from retrieval.live import live_languages
from retrieval.manifest import LEXICAL, IndexFolder, Manifest
from retrieval.recall_monitor import recall_at
from retrieval.tier_snapshot import load_tier
from retrieval.vector_tier import Found, TierRef, TierSnapshot, Vector

QUESTIONS = 100  # the newest ones; a thousand searches of a million vectors would hold a build for minutes
_SAMPLED = 64  # stored vectors that stand in where there are fewer questions than that
_K = 10
_HEAD = 3  # an answer has moved when the passage that came first is below this now
_ENOUGH = 10  # fewer questions say nothing about a share
_LISTED = 50  # moved answers that the build names, of all routes
Encode = Callable[[Sequence[str]], Vector]
Asked = tuple[Vector, Scope]
Answers = Mapping[Route, Mapping[str, Found]]
"""Hits, best first, by query id, for each route."""


class BuildRejected(PermanentError):
    """The new generation failed its checks; what is served stays as it was."""

    code = "build_rejected"
    title = "The build failed its checks"


@dataclass(frozen=True, slots=True)
class Gate:
    """The checks of one build.

    Args:
        db: where questions are read from.
        parts: what was built.
        accept_moved: whether answers may move.
        stats: what was measured goes here.
        encode: questions → vectors of the encoder of the manifest asked; None: only kept vectors are used.
    """

    db: Database
    parts: Sequence[str]
    accept_moved: bool
    stats: dict[str, Any]

    def questions(self, model: str, encode: Encode | None) -> list[SavedQuestion]:
        """The newest questions with a vector of this encoder."""
        with self.db.read() as session:
            found = build_repository.saved_questions(session, model, QUESTIONS)
        missing = [q for q in found if q.vector is None]
        if encode is None or not missing:
            return [q for q in found if q.vector is not None]
        vectors = dict(zip((q.query_id for q in missing), encode([q.text for q in missing]), strict=True))
        return [q if q.vector is not None else replace(q, vector=vectors[q.query_id]) for q in found]

    def recall(self, folder: IndexFolder, manifest: Manifest, questions: Sequence[SavedQuestion]) -> Manifest:
        """Measure recall@10 of every tier that was built against exact search; raise its effort if need be.

        Returns:
            The manifest with the effort that reaches the floor.

        Raises:
            BuildRejected: the floor is out of reach.
        """
        asked: list[Asked] = [(q.vector, q.scope) for q in questions if q.vector is not None]
        for part in self._tiers():
            ref = manifest.tier(part)
            snapshot = load_tier(folder.tier(part), Tier(part), ref, dimension=manifest.dimension)
            manifest = manifest.with_tier(part, self._reach_floor(part, ref, snapshot, asked))
            del snapshot
            return_freed_memory()  # before the next is loaded
        return manifest

    def _reach_floor(
        self, part: str, ref: TierRef, snapshot: TierSnapshot, asked: Sequence[Asked]
    ) -> TierRef:
        if not ref.live_count:
            return ref
        settings = get_settings()
        used = [*asked, *_sampled(snapshot, _SAMPLED - len(asked))]
        exact = _exact(snapshot, used)
        effort = ref.effort
        while True:
            recall = _recall(snapshot, used, exact, effort)
            self.stats.setdefault("recall", {})[part] = round(recall, 4)
            if recall >= settings.retrieval.recall_floor:
                return replace(ref, effort=effort)
            if 2 * effort > settings.recall.max_effort:
                raise BuildRejected(
                    f"recall@{_K} of the {part} tier is {recall:.3f} on {len(used)} questions, "
                    f"the floor is {settings.retrieval.recall_floor}; nothing was changed."
                )
            effort *= 2

    def routes(self) -> dict[Route, list[str]]:
        """The routes whose answers the build may change, each with the parts of it that were built."""
        words = [part for part in self.parts if part == LEXICAL]
        by_route = {Route.DENSE: self._tiers(), Route.LEXICAL: words}
        return {route: parts for route, parts in by_route.items() if parts}

    def answers(
        self, route: Route, folder: IndexFolder, manifest: Manifest, questions: Sequence[SavedQuestion]
    ) -> dict[str, Found]:
        """What each question finds first by a route in the parts that were built, by query id."""
        ask = self._by_words if route is Route.LEXICAL else self._by_vectors
        return ask(folder, manifest, questions)

    def _by_vectors(
        self, folder: IndexFolder, manifest: Manifest, questions: Sequence[SavedQuestion]
    ) -> dict[str, Found]:
        hits: dict[str, Found] = {q.query_id: [] for q in questions}
        for part in self._tiers():
            snapshot = load_tier(
                folder.tier(part), Tier(part), manifest.tier(part), dimension=manifest.dimension
            )
            for q in questions:
                if q.vector is not None:
                    hits[q.query_id].extend(snapshot.search(q.vector, _K, q.scope))
            del snapshot
            return_freed_memory()  # before the next is loaded
        return {
            query_id: sorted(own, key=lambda hit: (-hit[1], hit[0]))[:_K] for query_id, own in hits.items()
        }

    def _by_words(
        self, folder: IndexFolder, manifest: Manifest, questions: Sequence[SavedQuestion]
    ) -> dict[str, Found]:
        if not manifest.lexical:
            return {}
        reader = open_lexical(folder.lexical, manifest.lexical)
        return {
            q.query_id: reader.search(
                q.text, _K, tenant_id=q.scope.tenant_id, collection_ids=q.scope.collection_ids
            )
            for q in questions
        }

    def compare(self, questions: Sequence[SavedQuestion], before: Answers, after: Answers) -> None:
        """List the answers that moved, of the same routes before and after; each is held to the limit alone.

        An answer without a clear first is not compared. `compared` and `moved` count answers, of which a
        question has one per route. `moved_answers` lists some of each route, so that none hides another.

        Raises:
            BuildRejected: more than `retrieval.moved_share` of a route's, and nobody said that they may.
        """
        compared = dict.fromkeys(before, 0)
        moved: dict[Route, list[dict[str, Any]]] = {route: [] for route in before}
        for route, own in before.items():
            for q in questions:
                old = self._still_live(q, own.get(q.query_id, ()))
                if not old or _tied(old):
                    continue
                compared[route] += 1
                new = [passage_id for passage_id, _ in after[route].get(q.query_id, ())]
                first = new[0] if new else None
                if old[0][0] not in new[:_HEAD]:
                    moved[route].append(
                        {"query_id": q.query_id, "route": route.value, "before": old[0][0], "after": first}
                    )
        room = _LISTED // max(1, len(moved))
        self.stats.update(
            compared=sum(compared.values()),
            moved=sum(map(len, moved.values())),
            moved_answers=[one for own in moved.values() for one in own[:room]],
        )
        limit = get_settings().retrieval.moved_share
        beyond = [
            f"{len(moved[route])} of {asked} saved questions find something else first by the "
            f"{route.value} route"
            for route, asked in compared.items()
            if asked >= _ENOUGH and len(moved[route]) > limit * asked
        ]
        if beyond and not self.accept_moved:
            raise BuildRejected(
                f"{', and '.join(beyond)}; at most {limit:.0%} may. Look at the build's moved_answers; to "
                "publish all the same, ask again with accept_moved."
            )

    def _still_live(self, question: SavedQuestion, hits: Sequence[tuple[int, float]]) -> Found:
        """Those that a query could show now: what was deleted meanwhile did not move."""
        with self.db.read() as session:
            live = live_languages(session, question.scope, [i for i, _ in hits], Filters())
        return [hit for hit in hits if hit[0] in live]

    def _tiers(self) -> list[str]:
        return [part for part in self.parts if part != LEXICAL]


def _tied(hits: Found) -> bool:
    """Whether more share the first place than the head has room for: which of them leads says nothing.

    The same words in many passages do that, and their order in the files decides then.
    """
    return len(hits) > _HEAD and math.isclose(hits[0][1], hits[_HEAD][1], rel_tol=1e-6)


def _sampled(snapshot: TierSnapshot, count: int) -> list[Asked]:
    if count <= 0:
        return []
    rows = snapshot.sample(count, seed=0)
    return [
        (np.frombuffer(row.vector, "<f2").astype(np.float32), Scope(row.tenant_id, None, "build"))
        for row in rows
    ]


def _exact(snapshot: TierSnapshot, asked: Sequence[Asked]) -> list[Found]:
    """The exact hits of each question; those of one scope share a pass over the originals."""
    by_scope: dict[Scope, list[int]] = {}
    for at, (_, scope) in enumerate(asked):
        by_scope.setdefault(scope, []).append(at)
    found: dict[int, Found] = {}
    for scope, places in by_scope.items():
        vectors = np.stack([asked[at][0] for at in places])
        found.update(zip(places, snapshot.search_exact_many(vectors, _K, scope), strict=True))
    return [found[at] for at in range(len(asked))]


def _recall(snapshot: TierSnapshot, asked: Sequence[Asked], exact: Sequence[Found], effort: float) -> float:
    shares = [
        recall_at(snapshot.search(vector, _K, scope, effort=effort), expected)
        for (vector, scope), expected in zip(asked, exact, strict=True)
    ]
    counted = [share for share in shares if share is not None]
    return sum(counted) / len(counted) if counted else 1.0
