"""All settings: nested, frozen, bounded; read from `GEO_*` variables and an `.env` file.

Nested names join with a double underscore: `GEO_WORKER__LEASE_TTL_S=30`. Unknown names are refused.
`.env.example` lists every one.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from core.errors import ConfigError
from core.types import CitationMode

MIB = 1 << 20


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DatabaseSettings(_Section):
    """Where the truth about work lives."""

    url: str = Field(default="", description="SQLAlchemy URL; empty means SQLite in the data folder")
    pool_size: int = Field(default=10, ge=1, le=200)
    max_overflow: int = Field(default=20, ge=0, le=500)
    pool_timeout_s: float = Field(default=10.0, gt=0, le=120)
    busy_timeout_ms: int = Field(default=15_000, ge=100, le=120_000, description="SQLite only")


class RedisSettings(_Section):
    """The broker and the event streams."""

    url: str = Field(
        default="", description="redis:// or unix:// URL; empty means the embedded server's socket"
    )
    stream_ttl_s: int = Field(default=3600, ge=60, le=7 * 86400)


class ApiSettings(_Section):
    """The HTTP process."""

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    max_upload_bytes: int = Field(default=64 * MIB, ge=1024, description="one uploaded file")
    max_body_bytes: int = Field(default=1 * MIB, ge=1024, description="any other request body")
    max_question_chars: int = Field(default=4000, ge=16, le=100_000)
    question_deadline_s: float = Field(
        default=120.0, gt=0, le=3600, description="search and non-stream chat wait this long"
    )
    disconnect_grace_s: float = Field(
        default=10.0, ge=0, le=600, description="a dropped stream cancels its query after this"
    )
    trusted_proxies: tuple[str, ...] = Field(
        default=(), description="peers whose X-Forwarded-For is believed"
    )
    rate_per_minute: int = Field(default=600, ge=1, le=1_000_000, description="requests per key")
    rate_burst: int = Field(default=120, ge=1, le=1_000_000)
    rate_anonymous_per_minute: int = Field(
        default=60, ge=1, le=1_000_000, description="failed or keyless requests per address"
    )
    public_metrics: bool = Field(
        default=False, description="serve /metrics without a key (private bind only)"
    )


class AuthSettings(_Section):
    """How the first operator key comes to be."""

    bootstrap_key: SecretStr | None = Field(
        default=None, description="first operator key; unset: made and printed once"
    )

    @field_validator("bootstrap_key")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value().strip()) < 16:
            raise ValueError(
                "GEO_AUTH__BOOTSTRAP_KEY needs at least 16 characters; "
                "unset it to have one made at first start"
            )
        return value


class WorkerSettings(_Section):
    """Leases, retries and the reaper."""

    lease_ttl_s: float = Field(
        default=60.0, ge=1, le=3600, description="a dead worker's job is taken over after this"
    )
    max_attempts: int = Field(default=4, ge=1, le=20)
    retry_base_s: float = Field(default=2.0, ge=0.05, le=600)
    retry_cap_s: float = Field(default=300.0, ge=0.1, le=3600)
    reap_interval_s: float = Field(default=10.0, ge=0.2, le=600)
    resend_base_s: float = Field(
        default=15.0, ge=0.2, le=3600, description="first re-send of an unclaimed job; doubles"
    )
    visibility_timeout_s: int = Field(
        default=3600, ge=10, le=86_400, description="must exceed the longest lease"
    )
    canary_interval_s: float = Field(
        default=20.0, ge=0.2, le=600, description="an idle queue gets a canary task this often"
    )
    stall_after_s: float = Field(
        default=90.0, ge=1, le=3600, description="a worker that consumed nothing for so long is restarted"
    )
    ingest_processes: int = Field(default=1, ge=1, le=64)
    ingest_idle_s: float = Field(
        default=300.0,
        ge=0.2,
        le=86_400,
        description="an ingest process gives its memory back after this pause",
    )
    retrieval_threads: int = Field(default=4, ge=1, le=256)
    generation_threads: int = Field(default=32, ge=1, le=1024)
    generation_batch_threads: int = Field(
        default=12, ge=1, le=1024, description="of those, what batch questions may take"
    )


class PackSettings(_Section):
    """Model packs: public ids, and the folder they are unpacked in."""

    folder: Path = Field(default_factory=lambda: cache_home() / "packs")
    encoder: str = "intfloat/multilingual-e5-small"
    generator: str = "HuggingFaceTB/SmolLM2-135M-Instruct"
    reranker: str = Field(
        default="", description="a cross-encoder that reads question and passage together; empty: none"
    )
    nli: str = Field(
        default="", description="an entailment model that verdicts ask as well; empty: the rules alone"
    )
    spacy_en: str = "en_core_web_sm"
    spacy_zh: str = Field(default="", description="a zh_core_web_* package; empty: jieba's tags")


class IngestSettings(_Section):
    """Parsing, splitting and linking."""

    parse_timeout_s: float = Field(default=120.0, ge=1, le=3600)
    parse_memory_bytes: int = Field(default=2048 * MIB, ge=64 * MIB)
    max_chars: int = Field(default=20_000_000, ge=1000)
    max_inflated_bytes: int = Field(
        default=512 * MIB, ge=1 * MIB, description="zip-based formats, all members"
    )
    max_inflation_ratio: float = Field(default=200.0, ge=2)
    max_members: int = Field(default=10_000, ge=1)
    ocr: Literal["auto", "off"] = Field(
        default="auto", description="recognise text in pages and images without a text layer"
    )
    ocr_max_pages: int = Field(
        default=200, ge=0, le=100_000, description="pages of one document that are recognised at most"
    )
    # A dense A4 page takes 3.4 s of one core; the rest is for a machine that does other things as well.
    ocr_page_timeout_s: float = Field(
        default=120.0,
        ge=1,
        le=3600,
        description="one recognised page; such pages do not count to parse_timeout_s",
    )
    keep_hidden_text: bool = Field(
        default=False, description="index text that people cannot see (white, zero-size, off-page)"
    )
    # Chosen on CLAPNQ put together to long documents: gold characters in the best five .963, .877 at 160.
    passage_tokens: int = Field(
        default=320, ge=16, le=8192, description="target size, in the encoder's tokens"
    )
    passage_max_tokens: int = Field(
        default=480, ge=32, le=8192, description="hard cap below the encoder's window"
    )
    link_threshold: float = Field(default=0.5, ge=0, le=1, description="below it a mention stays NIL")


class RetrievalSettings(_Section):
    """Routes, fusion, rerank and packing."""

    route_deadline_ms: int = Field(default=2000, ge=10, le=60_000)
    route_k: int = Field(default=50, ge=1, le=1000)
    # CMRC 2018 ranks the same with every weight up to 0.5 (docs/benchmarks.md).
    entity_weight: float = Field(
        default=0.5,
        ge=0,
        le=4,
        description="of the entity route, against 1 of the dense one; 0 leaves it out",
    )
    rerank_k: int = Field(default=20, ge=1, le=200)
    cross_k: int = Field(default=20, ge=2, le=200, description="passages the cross-encoder reads at most")
    rerank_budget_ms: int = Field(default=1500, ge=1, le=60_000)
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
        default=3.5, gt=0, le=1000, description="what a lost answer counts against a whole one at full depth"
    )
    per_document_cap: int = Field(default=4, ge=1, le=100)
    max_evidence: int = Field(default=8, ge=1, le=64)
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
    segment_merge_count: int = Field(default=8, ge=2, le=1000)
    keep_generations: int = Field(default=2, ge=2, le=20)
    moved_share: float = Field(
        default=0.1, ge=0, le=1, description="saved questions whose first hit a rebuild may change"
    )
    recall_floor: float = Field(
        default=0.95, gt=0, le=1, description="recall@10 against exact search that every tier must reach"
    )


class PlacementSettings(_Section):
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


class RecallSettings(_Section):
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


class GenerationSettings(_Section):
    """The vLLM engine."""

    engine_url: str = Field(
        default="",
        description="OpenAI-compatible vLLM servers, separated by commas; empty: the engine in the worker",
    )
    engine_key: SecretStr | None = None
    mode: CitationMode = CitationMode.EXTRACT
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
    answer_reserve: int = Field(default=256, ge=16, le=8192)
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
    dtype: str = Field(default="auto", pattern="^(auto|bfloat16|float16|float32)$")
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


class ClientSettings(_Section):
    """What `geo upload`, `geo ask` and the other client commands talk to."""

    url: str = Field(default="", description="empty: the embedded stack of this data folder")
    key: SecretStr | None = Field(default=None, description="API key; empty: GEO_AUTH__BOOTSTRAP_KEY")
    timeout_s: float = Field(default=180.0, gt=0, le=3600)


class LogSettings(_Section):
    """Structured logs on stderr."""

    level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")
    format: str = Field(default="console", pattern="^(console|json)$")


class Settings(BaseSettings):
    """The whole configuration of one process."""

    model_config = SettingsConfigDict(
        env_prefix="GEO_",
        env_nested_delimiter="__",
        env_file=".env",
        frozen=True,
        extra="forbid",
    )

    data_dir: Path = Path(".geo")
    min_free_bytes: int = Field(
        default=256 * MIB, ge=0, description="below it writes get 507 and readiness is false"
    )
    database: DatabaseSettings = Field(default_factory=DatabaseSettings)
    redis: RedisSettings = Field(default_factory=RedisSettings)
    api: ApiSettings = Field(default_factory=ApiSettings)
    auth: AuthSettings = Field(default_factory=AuthSettings)
    worker: WorkerSettings = Field(default_factory=WorkerSettings)
    packs: PackSettings = Field(default_factory=PackSettings)
    ingest: IngestSettings = Field(default_factory=IngestSettings)
    retrieval: RetrievalSettings = Field(default_factory=RetrievalSettings)
    placement: PlacementSettings = Field(default_factory=PlacementSettings)
    recall: RecallSettings = Field(default_factory=RecallSettings)
    generation: GenerationSettings = Field(default_factory=GenerationSettings)
    client: ClientSettings = Field(default_factory=ClientSettings)
    log: LogSettings = Field(default_factory=LogSettings)

    @property
    def root(self) -> Path:
        """The data folder, absolute."""
        return self.data_dir.expanduser().resolve()

    @property
    def blob_dir(self) -> Path:
        """Originals, by content hash."""
        return self.root / "blobs"

    @property
    def index_dir(self) -> Path:
        """Index files of all tiers."""
        return self.root / "index"

    @property
    def run_dir(self) -> Path:
        """Sockets, pid files and logs of the embedded stack.

        Unix socket paths are limited to 107 bytes, so a deep data folder gets a short one elsewhere.
        """
        inside = self.root / "run"
        if len(str(inside)) <= 80:
            return inside
        import hashlib

        digest = hashlib.sha256(str(self.root).encode()).hexdigest()[:16]
        return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp") / f"geo-{os.getuid()}-{digest}"  # noqa: S108 - the folder is made 0700 and its owner checked

    @property
    def database_url(self) -> str:
        """The configured URL, or SQLite in the data folder."""
        return self.database.url or f"sqlite:///{self.root / 'geo.sqlite3'}"

    @property
    def redis_url(self) -> str:
        """URL in redis-py form."""
        return self.redis.url or f"unix://{self.run_dir / 'redis.sock'}"

    @property
    def broker_url(self) -> str:
        """The same server in kombu's form."""
        url = self.redis_url
        return "redis+socket://" + url.removeprefix("unix://") if url.startswith("unix://") else url


def cache_home() -> Path:
    """Where what can be fetched or made again is kept: model packs, what `geo bench` prepared."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "geo-engine"


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """Return the process's settings; tests call `get_settings.cache_clear()` after changing variables.

    Raises:
        ConfigError: a variable is unknown, malformed or out of bounds; the detail names each.
    """
    known = {*Settings.model_fields, "worker_name"}  # GEO_WORKER_NAME is set by `geo worker`
    for name in os.environ:
        ours = name.startswith("GEO_") and not name.startswith("GEO_TEST_")  # those steer the test suite
        if ours and name[4:].split("__")[0].lower() not in known:
            raise ConfigError(f"unknown setting {name}; .env.example lists the known ones")
    try:
        return Settings()
    except ValidationError as error:
        raise ConfigError("; ".join(_told(e) for e in error.errors())) from error


def _told(error: ErrorDetails) -> str:
    first, *rest = (str(part) for part in error["loc"])
    name = "__".join((first, *rest)).upper()
    if rest or first in Settings.model_fields:
        name = "GEO_" + name  # any other is a line of .env, given as it stands there
    if error["type"] == "extra_forbidden":
        return f"unknown setting {name}; .env.example lists the known ones"
    return f"{name}: {error['msg']}"
