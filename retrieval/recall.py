"""From a question to what the routes found, merged, with the live passages that may be shown. No writes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from core.db import Database
from core.errors import TransientError
from core.settings import RetrievalSettings, get_settings
from core.types import Lang, Passage, Route, Scope
from ingest.split import encoder_text
from retrieval.catalogues import LazyCatalogue
from retrieval.centres import centres_of
from retrieval.entity_route import EntityHits
from retrieval.filters import Filters
from retrieval.fuse import Fused, divided, followed_by, route_weights, standardized_sum
from retrieval.hits import as_columns
from retrieval.identifiers import CODE_WEIGHT
from retrieval.language import identifier_share, question_language
from retrieval.live import LivePassages, live_passages
from retrieval.profile import Profile, built_in, mostly_across
from retrieval.pushdown import Pushdown
from retrieval.relevance import Floats
from retrieval.routes import Recalled, get_route_pool, partly, without_parts
from retrieval.searches import LazyQuestion, Searches, Snapshot, SnapshotSource
from retrieval.variants import Variant
from retrieval.weights import ASKED_AGAIN

_SNAPSHOT_TRIES = 4  # the last one is taken as it is: the index changes faster than a query is answered
_ROUTE_SPARES = 2  # threads per route and query thread, so that late routes do not starve the next query


@dataclass(frozen=True, slots=True)
class Merged:
    """What the routes found, merged; the passages that may be shown are loaded."""

    snapshot: Snapshot
    recalled: Recalled
    known: LivePassages
    entities: EntityHits
    fused: Sequence[Fused]


def recall_and_fuse(
    db: Database,
    index: SnapshotSource,
    scope: Scope,
    question: LazyQuestion,
    filters: Filters,
    k: int,
    s: RetrievalSettings,
    watch: Stopwatch,
    profile: Profile | None = None,
    variants: tuple[Variant, ...] = (),
) -> Merged:
    """Everything before the rerank: ask the routes, load what is live, merge.

    When most of what leads is in another language than a Chinese question, the dense route is asked once
    more, with the question's vector without what all questions of its language share (ADR 0041).
    """
    tuned = profile or built_in(s)
    recall = partial(
        _recall_live,
        db,
        index,
        scope,
        question,
        filters,
        k,
        s,
        watch,
        entities=tuned.entity > 0,
        variants=variants,
    )

    def merged(found: tuple[Snapshot, Recalled, LivePassages, EntityHits]) -> Merged:
        snapshot, recalled, known, entities = found
        fused = fuse(question.text, recalled, known.langs(), profile=tuned, against=entities.against)
        watch.lap("fuse")
        return Merged(snapshot, recalled, known, entities, fused)

    first = merged(recall())
    lang = question_language(question.text)
    leading = [first.known[f.passage_id].passage.lang for f in first.fused[: tuned.rerank_k]]
    if lang not in ASKED_AGAIN or not mostly_across(lang, leading):
        return first
    centre = centres_of(first.snapshot.model or get_settings().packs.encoder).asked[lang]
    try:
        return merged(recall(beside=first, centre=centre))
    except TransientError as error:  # what the question found as it is stands
        return replace(first, recalled=partly(first.recalled, Route.DENSE, f"asked again: {error.detail}"))


def _recall_live(
    db: Database,
    index: SnapshotSource,
    scope: Scope,
    question: LazyQuestion,
    filters: Filters,
    k: int,
    s: RetrievalSettings,
    watch: Stopwatch,
    *,
    entities: bool,
    variants: tuple[Variant, ...],
    beside: Merged | None = None,
    centre: Floats | None = None,
) -> tuple[Snapshot, Recalled, LivePassages, EntityHits]:
    """Recall and load what is live, on a snapshot that holds every live version.

    The first try believes the index: nearly always all of its hits are live, and the load tells. Otherwise
    the routes look at the rows themselves, so that hidden passages take no live one's place.

    A version is indexed before it goes live and its predecessor leaves the index after, so for a moment a
    snapshot holds both. Two readings go wrong and are done again: the snapshot is older than the version that
    is live now (it shows hidden passages while a newer generation exists), or the switch fell between the
    routes and the load (what a route saw as live no longer is).

    With `centre` the dense route alone is asked, without it; `beside` has what the others found.
    """
    catalogue = LazyCatalogue(db, scope.tenant_id)
    attempt = 0
    while True:
        attempt += 1
        snapshot = index.snapshot(wait=attempt > 1)
        searches = Searches(
            db,
            snapshot,
            scope,
            question,
            filters,
            k,
            Pushdown(db, scope, filters),
            catalogue,
            entities=entities,
            checked=attempt > 1,
            variants=variants,
            centre=centre,
        )
        threads = get_settings().worker.retrieval_threads * len(Route) * _ROUTE_SPARES
        recalled = get_route_pool(threads).recall(searches.by_route(), deadline_s=s.route_deadline_ms / 1000)
        recalled = without_parts(recalled, Route.DENSE, snapshot.dense.refused)
        watch.lap("routes")
        asked = _ids(recalled)
        if beside is not None:
            recalled = Recalled(
                {**beside.recalled.hits, **recalled.hits}, {**beside.recalled.reports, **recalled.reports}
            )
        found = _ids(recalled)
        known = _loaded(db, scope, found, filters)
        watch.lap("load")
        switched = bool(asked - known.keys())  # live when its route looked, not live when it was loaded
        if attempt == _SNAPSHOT_TRIES or not (searches.hidden or switched):
            return snapshot, recalled, known, beside.entities if beside else _heard(searches)
        if attempt > 1 and not switched and index.snapshot(wait=True).generation == snapshot.generation:
            return snapshot, recalled, known, beside.entities if beside else _heard(searches)


def _loaded(db: Database, scope: Scope, found: set[int], filters: Filters) -> LivePassages:
    if filters.empty:
        return live_passages(db.quick(), scope, found)
    with db.read() as session:
        return live_passages(session, scope, found, filters)


def _heard(searches: Searches) -> EntityHits:
    """What the entity route found, if it was in time."""
    return next(iter(searches.entity_hits), EntityHits())


def fuse(
    text: str,
    recalled: Recalled,
    langs: Mapping[int, Lang],
    *,
    profile: Profile,
    against: Mapping[int, float],
) -> Sequence[Fused]:
    """Fuse what the routes found, as the languages of question and passages allow; unknown ids fall out.

    Hits below the profile's `route_k` follow what is merged, so that a later page of a search goes on where
    the last ended.
    `against`: passages that name another entity of a name in the question, on the entity route's scale.
    """
    visible = {route: as_columns(route, hits).among(langs) for route, hits in recalled.hits.items()}
    lang = question_language(text)
    weight = route_weights(
        profile.routes(lang),
        question_lang=lang,
        passage_langs=langs,
        identifier_share=identifier_share(text),
    )
    above, below = divided(visible, profile.route_k, undivided=(Route.CODE,))
    merged = standardized_sum(
        above,
        weight=weight,
        exact={Route.CODE: CODE_WEIGHT, Route.ENTITY: profile.entity},
        against={passage_id: profile.entity * score for passage_id, score in against.items()},
    )
    return followed_by(merged, below)


def encoded_text(passage: Passage) -> str:
    """The passage as the dense route's vectors saw it: under its headings. Its own text stands last."""
    return encoder_text(passage.heading_path, passage.text)


def _ids(recalled: Recalled) -> set[int]:
    return {i for route, hits in recalled.hits.items() for i in as_columns(route, hits).ids}


class Stopwatch:
    """Milliseconds between laps, by name."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """End a lap; one of a name that was there before takes its place."""
        now = time.perf_counter()
        self.laps[name] = round((now - self._last) * 1000, 2)
        self._last = now
