"""Settings of the engine and of the answers it writes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from core.settings.section import Section
from core.types import CitationMode


class GenerationSettings(Section):
    """The vLLM engine."""

    engine_url: str = Field(
        default="",
        description="OpenAI-compatible vLLM servers, separated by commas; empty: the engine in the worker",
    )
    engine_key: SecretStr | None = Field(default=None, description="bearer token of these servers")
    mode: CitationMode = Field(
        default=CitationMode.EXTRACT,
        description="extract, quote or free, where a policy does not say (docs/policy.md)",
    )
    profile: str = Field(
        default="auto",
        pattern="^(auto|edge|realtime|batch|cloud)$",
        description="what the engine is for: auto, edge, realtime, batch or cloud (docs/engine.md)",
    )
    target_ttft_ms: int = Field(default=500, ge=10, le=60_000, description="first token, profile realtime")
    kv_cache_bytes: int = Field(default=0, ge=0, description="of all ranks; 0 = as geo plan says")
    max_model_len: int = Field(default=0, ge=0, description="tokens; 0 = by profile, 2048 on a CPU")
    max_num_seqs: int = Field(default=0, ge=0, le=4096, description="0 = by profile, 16 on a CPU")
    max_num_batched_tokens: int = Field(default=0, ge=0, description="tokens of a step; 0 = by profile")
    block_size: int = Field(
        default=0, ge=0, description="tokens per KV block; 0 = 32 on a CPU (multiples of 32), 16 on a GPU"
    )
    answer_reserve: int = Field(
        default=256, ge=16, le=8192, description="tokens of the context kept for the answer"
    )
    evidence_order: Literal["shared", "relevance"] = Field(
        default="shared",
        description="in prompts: `shared` puts passages of many prompts first, `relevance` the best",
    )
    prewarm_openings: int = Field(
        default=8, ge=0, le=1000, description="popular beginnings of prompts kept cached at idle; 0: none"
    )
    enforce_eager: bool | None = Field(default=None, description="unset = eager on a CPU with one rank only")
    tensor_parallel: int = Field(default=0, ge=0, description="0 = as geo plan chooses")
    pipeline_parallel: int = Field(default=0, ge=0, description="0 = as geo plan chooses")
    dtype: str = Field(
        default="auto",
        pattern="^(auto|bfloat16|float16|float32)$",
        description="that the engine computes in: auto, bfloat16, float16 or float32",
    )
    kv_cache_dtype: str = Field(default="auto", pattern="^(auto|fp8)$", description="fp8 halves the KV cache")
    memory_share: float = Field(
        default=0.9, gt=0.1, le=0.98, description="of an accelerator's memory that the engine may take"
    )
    rewrite_budget_s: float = Field(
        default=5.0,
        gt=0,
        le=60,
        description="for a policy that has questions rewritten; the search then goes on without",
    )
    listwise_budget_s: float = Field(
        default=3.0, gt=0, le=60, description="for a policy that has the model order the passages"
    )
    deadline_s: float = Field(default=90.0, gt=0, le=3600, description="writing one answer")
    interactive_deadline_s: float = Field(
        default=300.0, gt=0, le=86_400, description="from the question to its end, waiting included"
    )
    batch_deadline_s: float = Field(
        default=86_400.0, gt=0, le=30 * 86_400, description="the same for batch questions"
    )
    head_start_s: float = Field(
        default=60.0,
        ge=0,
        le=86_400,
        description="an interactive question may come so much later than a batch one and still go first",
    )
    aged_at_once: int = Field(
        default=2,
        ge=1,
        le=1024,
        description="batch questions past the head start that go as interactive ones do",
    )
    admit_kv_share: float = Field(
        default=2.0,
        gt=0,
        le=10_000,
        description="expected KV demand of open questions per KV block, above which 429 is answered",
    )
    max_open: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="open questions that need the engine, batch ones included",
    )
    hang_after_s: float = Field(
        default=120.0,
        ge=1,
        le=3600,
        description="an engine that is silent so long while it has work is restarted",
    )
    canary_idle_s: float = Field(
        default=30.0, ge=1, le=3600, description="an idle engine writes one token this often to prove it can"
    )
    drain_s: float = Field(
        default=8.0,
        ge=0,
        le=600,
        description="a stopping worker ends its answers; after this they are handed back",
    )
    max_sentences: int = Field(default=2, ge=1, le=20, description="sentences an extract answer shows")
    nli_batch: int = Field(default=16, ge=1, le=512, description="claim and passage pairs at a time")
    nli_budget_ms: int = Field(
        default=1500, ge=1, le=60_000, description="per claim; pairs beyond it are judged by the rules alone"
    )
    nli_threshold: float = Field(
        default=0.8, ge=0.5, le=1, description="probability from which the entailment model is believed"
    )
