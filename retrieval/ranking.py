"""From a question to ranked passages: what the routes found, merged, and then reranked. No writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from core.db import Database
from core.settings import RetrievalSettings, get_settings
from core.types import Scope
from ingest.encode import get_encoder
from retrieval.cascade import Plan, Reading, read_head
from retrieval.centres import centres_of
from retrieval.cross_encoder import configured_reranker, cross_order, cross_scores
from retrieval.entity_route import EntityHits
from retrieval.filters import Filters
from retrieval.fuse import Fused
from retrieval.language import question_language
from retrieval.live import LivePassages, StoredPassage
from retrieval.profile import Profile, built_in, mostly_across
from retrieval.query_repository import stored_tokens
from retrieval.recall import Stopwatch, encoded_text, recall_and_fuse
from retrieval.relevance import Question
from retrieval.rerank import Scored, TokenCache, final_order
from retrieval.routes import Recalled
from retrieval.searches import LazyQuestion, SnapshotSource
from retrieval.token_codec import pack_tokens
from retrieval.variants import Variant

_TOKEN_CACHE_BYTES = 64 << 20  # about 6,000 passages; what is not here is read from the database


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
    order, cross = _crossed(text, order, known, len(scored), exact, s.cross_k, s.rerank_budget_ms, watch)
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


def _crossed(
    text: str,
    order: Sequence[tuple[int, float]],
    known: LivePassages,
    read: int,
    exact: Mapping[int, float],
    most: int,
    budget_ms: float,
    watch: Stopwatch,
) -> tuple[Sequence[tuple[int, float]], dict[int, float]]:
    """The order as a configured cross-encoder sees it, and its scores; as it was, and none, without one."""
    reranker = configured_reranker()
    if reranker is None:
        return order, {}
    shown = [(i, encoded_text(known[i].passage)) for i, _ in order[: min(most, read)]]
    left_s = (budget_ms - watch.laps["rerank"]) / 1000
    cross = cross_scores(text, shown, reranker, budget_s=left_s)
    order = cross_order(order, cross, exact)
    watch.lap("cross")
    return order, cross


def packed_of(db: Database, passage_ids: Sequence[int], model: str) -> dict[int, bytes]:
    """Stored token vectors of these passages; those without any are left out."""
    with db.read() as session:
        return stored_tokens(session, passage_ids, model)


def encode_packed(texts: Sequence[str], model: str) -> Sequence[bytes]:
    """Token vectors of passages' texts, made now and packed."""
    made = get_encoder(model).encode_tokens_at(texts, "passage")
    return [pack_tokens(text, tokens) for text, tokens in zip(texts, made, strict=True)]
