"""Settings of the search, of the tiers and of the recall monitor."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from core.settings.section import Section


class RetrievalSettings(Section):
    """Routes, fusion, rerank and packing."""

    route_deadline_ms: int = Field(
        default=2000, ge=10, le=60_000, description="a route that is late is left out, and the trace says so"
    )
    route_k: int = Field(default=50, ge=1, le=1000, description="passages that each route is asked for")
    # CMRC 2018 ranks the same with every weight up to 0.5 (docs/benchmarks.md).
    entity_weight: float = Field(
        default=0.5,
        ge=0,
        le=4,
        description="of the entity route, against 1 of the dense one; 0 leaves it out",
    )
    rerank_k: int = Field(default=20, ge=1, le=200, description="passages that are reranked")
    cross_k: int = Field(default=20, ge=2, le=200, description="passages the cross-encoder reads at most")
    rerank_budget_ms: int = Field(
        default=1500, ge=1, le=60_000, description="no batch of a rerank begins after it"
    )
    # At least .994 of the first five passages are those of a whole rerank (docs/benchmarks.md).
    early_exit: bool = Field(default=True, description="end the rerank when the order of the best is settled")
    rewrite: Literal["rules", "off"] = Field(
        default="rules", description="make questions whole that lean on the turns before them"
    )
    depth: Literal["full", "auto"] = Field(
        default="full", description="auto: a router decides how much evidence a question needs"
    )
    # The lowest that keeps .98 of the answers of CMRC 2018 and of DRCD.
    depth_price: float = Field(
        default=3.0, gt=0, le=1000, description="what a lost answer counts against a whole one at full depth"
    )
    per_document_cap: int = Field(
        default=4, ge=1, le=100, description="passages of one document before others had their turn"
    )
    max_evidence: int = Field(default=8, ge=1, le=64, description="passages that an answer may draw on")
    # CLAPNQ ranks the same from .7 to 1 and shows more documents the lower it is (docs/benchmarks.md).
    mmr_balance: float = Field(
        default=0.8, ge=0, le=1, description="of relevance against novelty; 1: relevance alone"
    )
    neighbours: int = Field(
        default=0,
        ge=0,
        le=4,
        description="passages before and after each one of the evidence that a prompt with room takes along",
    )
    default_context_budget: int = Field(
        default=1024, ge=64, description="tokens, until the engine's plan is known"
    )
    # Keeps 99 % of the answerable questions of CMRC 2018 and 97 % of CLAPNQ and DRCD.
    refusal_threshold: float = Field(
        default=0.12, ge=0, le=1, description="best evidence below this relevance → refusal"
    )
    page_cache_bytes: int = Field(
        default=0, ge=0, description="pages of original vectors that a process keeps; 0 = as geo plan grants"
    )
    segment_rows: int = Field(
        default=0,
        ge=0,
        le=1 << 24,
        description="vectors of a segment at most; 0 = as each tier does well with",
    )
    segment_merge_count: int = Field(
        default=8, ge=2, le=1000, description="small segments of a tier above which some are merged"
    )
    keep_generations: int = Field(
        default=2, ge=2, le=20, description="of the index, the served one included, for a rollback"
    )
    moved_share: float = Field(
        default=0.1, ge=0, le=1, description="saved questions whose first hit a rebuild may change"
    )
    recall_floor: float = Field(
        default=0.95, gt=0, le=1, description="recall@10 against exact search that every tier must reach"
    )


class PlacementSettings(Section):
    """Which tier documents are in; a collection's placement policy says what differs for it."""

    interval_s: float = Field(
        default=300.0, ge=1, le=86_400, description="the beat plans and makes moves this often"
    )
    half_life_days: float = Field(
        default=14.0, gt=0, le=3650, description="a use counts half after so long, a quarter after twice"
    )
    moves_per_round: int = Field(default=500, ge=1, le=100_000, description="documents moved at a time")
    min_stay_hours: float = Field(
        default=24.0, ge=0, le=8760, description="a moved document is left where it is for so long"
    )
    # An exact search of 50,000 vectors of 384 numbers takes a few milliseconds: nothing is gained below.
    roomy_vectors: int = Field(
        default=50_000, ge=0, description="idle documents stay hot while the hot tier holds no more vectors"
    )
    hot_vectors: int | None = Field(default=None, ge=0, description="budget of the hot tier; unset: none")
    warm_vectors: int | None = Field(default=None, ge=0, description="budget of the warm tier; unset: none")
    hot_bytes: int | None = Field(
        default=None, ge=0, description="the same in memory; the smaller of both counts; unset: none"
    )
    warm_bytes: int | None = Field(default=None, ge=0, description="the same in memory; unset: none")
    keep_moves_days: int = Field(default=90, ge=1, le=3650, description="move events are kept so long")


class RecallSettings(Section):
    """The monitor that runs a share of the live questions again, exactly."""

    sample_share: float = Field(default=0.05, ge=0, le=1, description="of all questions")
    interval_s: float = Field(default=30.0, ge=0.2, le=3600, description="the beat measures this often")
    per_round: int = Field(
        default=20, ge=1, le=1000, description="questions measured at a time, newest first"
    )
    window: int = Field(default=100, ge=1, le=10_000, description="samples that the mean is taken over")
    min_samples: int = Field(default=20, ge=1, le=10_000, description="fewer change nothing")
    max_effort: float = Field(
        default=8.0, ge=1, le=64, description="times the built search effort; beyond it the tier is rebuilt"
    )
    min_effort: float = Field(
        default=0.25, ge=0.1, le=1, description="a tier far above the floor is searched with no less"
    )
    keep_days: int = Field(default=30, ge=1, le=3650, description="samples are kept so long")
