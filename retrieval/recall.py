"""From a question to ranked passages: routes, fusion, rerank. No writes; the task stores what comes out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from core.db import Database
from core.errors import TransientError
from core.settings import RetrievalSettings, get_settings
from core.types import Lang, Passage, Route, Scope
from ingest.encode import get_encoder
from ingest.split import encoder_text
from retrieval.cascade import Plan, Reading, read_head
from retrieval.catalogues import LazyCatalogue
from retrieval.centres import centres_of
from retrieval.cross_encoder import configured_reranker, cross_order, cross_scores
from retrieval.entity_route import EntityHits
from retrieval.filters import Filters
from retrieval.fuse import Fused, divided, followed_by, route_weights, standardized_sum
from retrieval.hits import as_columns
from retrieval.identifiers import CODE_WEIGHT
from retrieval.language import identifier_share, question_language
from retrieval.live import LivePassages, StoredPassage, live_passages
from retrieval.profile import Profile, built_in, mostly_across
from retrieval.pushdown import Pushdown
from retrieval.query_repository import stored_tokens
from retrieval.relevance import Floats, Question
from retrieval.rerank import Scored, TokenCache, final_order
from retrieval.routes import Recalled, get_route_pool, partly, without_parts
from retrieval.searches import LazyQuestion, Searches, Snapshot, SnapshotSource
from retrieval.token_codec import pack_tokens
from retrieval.variants import Variant
from retrieval.weights import ASKED_AGAIN

_TOKEN_CACHE_BYTES = 64 << 20  # about 6,000 passages; what is not here is read from the database
_SNAPSHOT_TRIES = 4  # the last one is taken as it is: the index changes faster than a query is answered
_ROUTE_SPARES = 2  # threads per route and query thread, so that late routes do not starve the next query


@dataclass(frozen=True, slots=True)
class Ranked:
    """One passage of the final ranking.

    Attributes:
        score: decides the order, on this query's own scale.
        relevance: calibrated, in [0, 1].
        scored: the rerank's result, or None below the reranked head.
        cross: the raw score of a configured cross-encoder, or None where it did not read the passage.
    """

    stored: StoredPassage
    fused: Fused
    score: float
    relevance: float
    scored: Scored | None
    cross: float | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The final ranking, best first, with everything a trace tells of how it came to be.

    Attributes:
        model: the encoder of the index that was asked, of the question and of all token vectors.
        reading: how far the rerank read, and what it decided.
        head: passages that it would have read at most.
    """

    question: Question
    ranked: tuple[Ranked, ...]
    recalled: Recalled
    generation: int
    model: str
    reading: Reading
    timings_ms: dict[str, float] = field(default_factory=dict[str, float])
    entities: EntityHits = field(default_factory=EntityHits)
    head: int = 0


@lru_cache(maxsize=2)  # while the index changes its encoder
def token_cache(_model: str) -> TokenCache:
    """The process's cache of passage token vectors of an encoder."""
    return TokenCache(_TOKEN_CACHE_BYTES)


def rank(
    db: Database,
    index: SnapshotSource,
    scope: Scope,
    *,
    text: str,
    filters: Filters,
    wanted: int,
    settings: RetrievalSettings | None = None,
    profile: Profile | None = None,
    plan: Plan | None = None,
    variants: tuple[Variant, ...] = (),
) -> Ranking:
    """Recall, fuse and rerank one question.

    Questions are answered from the generation before while a new one is loaded. Where that one holds no
    answer, the question waits and is asked again: a document that is ready is never refused.

    Args:
        db: for short reads; none is open while the encoder works.
        index: gives one snapshot per recall, so that both routes see the same generation.
        scope: tenant and collections; an empty one finds nothing.
        text: the question.
        filters: applied inside every route.
        wanted: passages the caller will show; each route recalls at least four times as many.
        settings: default: the process's.
        profile: weights and depths; default: the built-in one.
        plan: how far the rerank goes; default: through the whole head, inside the settings' time budget.
        variants: what the dense and the lexical route ask for beside the question.

    Raises:
        TransientError: every route failed.
    """
    s = settings or get_settings().retrieval
    ranking = _rank_once(db, index, scope, text, filters, wanted, s, profile, plan, variants)
    answered = any(r.relevance >= s.refusal_threshold for r in ranking.ranked)
    if answered or index.snapshot(wait=True).generation == ranking.generation:
        return ranking
    return _rank_once(db, index, scope, text, filters, wanted, s, profile, plan, variants)


def _rank_once(
    db: Database,
    index: SnapshotSource,
    scope: Scope,
    text: str,
    filters: Filters,
    wanted: int,
    s: RetrievalSettings,
    profile: Profile | None,
    plan: Plan | None,
    variants: tuple[Variant, ...],
) -> Ranking:
    tuned = profile or built_in(s)
    watch = Stopwatch()
    question = LazyQuestion(text)
    k = max(tuned.route_k, 4 * wanted)
    merged = recall_and_fuse(db, index, scope, question, filters, k, s, watch, tuned, variants)
    snapshot, recalled, known, entities = merged.snapshot, merged.recalled, merged.known, merged.entities
    fused = merged.fused
    langs = [known[f.passage_id].passage.lang for f in fused]
    size = tuned.head_size(question_language(text), langs)
    head = [
        (f, encoded_text(known[f.passage_id].passage), lang)
        for f, lang in zip(fused[:size], langs[:size], strict=True)
    ]
    model = snapshot.model or get_settings().packs.encoder  # an empty index has none yet
    asked = question.get(model)
    going = plan or Plan(s.rerank_budget_ms / 1000)
    crossing = mostly_across(asked.lang, [lang for _, _, lang in head])
    if entities.each or entities.others or crossing:
        going = replace(going, price=0.0, forced=None)  # nothing the router was fitted on
    if crossing:
        going = replace(going, settle=0)  # nor what an early exit goes by
    tokens_weight = tuned.tokens_weight(asked.lang, [lang for _, _, lang in head])
    reading = read_head(
        asked,
        head,
        going,
        weight=tokens_weight,
        load=lambda ids: packed_of(db, ids, model),
        encode=lambda texts: encode_packed(texts, model),
        cache=token_cache(model),
        centres=centres_of(model) if crossing else None,
    )
    scored = {one.passage_id: one for one in reading.scored}
    exact = {f.passage_id: f.exact for f in fused}
    order = final_order(
        [(f.passage_id, f.score) for f in fused],
        {i: x.closeness for i, x in scored.items()},
        weight=tokens_weight,
        exact=exact,
    )
    watch.lap("rerank")
    cross: dict[int, float] = {}
    if (reranker := configured_reranker()) is not None:
        read = [(i, encoded_text(known[i].passage)) for i, _ in order[: min(s.cross_k, len(scored))]]
        left_s = (s.rerank_budget_ms - watch.laps["rerank"]) / 1000
        cross = cross_scores(text, read, reranker, budget_s=left_s)
        order = cross_order(order, cross, exact)
        watch.lap("cross")
    by_id = {f.passage_id: f for f in fused}
    ranked = tuple(
        Ranked(
            known[i],
            by_id[i],
            score,
            scored[i].relevance if i in scored else 0.0,
            scored.get(i),
            cross.get(i),
        )
        for i, score in order
    )
    return Ranking(
        asked, ranked, recalled, snapshot.generation, model, reading, watch.laps, entities, len(head)
    )


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


def packed_of(db: Database, passage_ids: Sequence[int], model: str) -> dict[int, bytes]:
    """Stored token vectors of these passages; those without any are left out."""
    with db.read() as session:
        return stored_tokens(session, passage_ids, model)


def encode_packed(texts: Sequence[str], model: str) -> Sequence[bytes]:
    """Token vectors of passages' texts, made now and packed."""
    made = get_encoder(model).encode_tokens_at(texts, "passage")
    return [pack_tokens(text, tokens) for text, tokens in zip(texts, made, strict=True)]


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
