"""Prometheus metrics shared by all processes. Names start with `geo_`; times are in seconds."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

JOBS_FINISHED = Counter("geo_jobs_finished_total", "Jobs by task and outcome", ["task", "outcome"])
JOB_SECONDS = Histogram(
    "geo_job_seconds",
    "Run time of a job",
    ["task"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800),
)
JOBS_REAPED = Counter("geo_jobs_reaped_total", "Jobs re-sent or failed by the reaper", ["task", "why"])
ROUTE_SECONDS = Histogram("geo_route_seconds", "Time of one retrieval route", ["route"])
ROUTE_FAILURES = Counter(
    "geo_route_failures_total", "Routes that failed or missed the deadline", ["route", "why"]
)
ROUTE_HITS = Histogram(
    "geo_route_hits", "Hits of one route", ["route"], buckets=(0, 1, 5, 10, 20, 50, 100, 500)
)
ROUTE_EMPTY_STREAK = Gauge(
    "geo_route_empty_streak",
    "Queries in a row for which the route found nothing and another route found something",
    ["route"],
    multiprocess_mode="mostrecent",
)
RERANK_READ = Histogram(
    "geo_rerank_read",
    "Passages that one rerank read; settled: it ended early because the order of the best was settled",
    ["end"],
    buckets=(0, 4, 5, 8, 12, 16, 20, 50, 200),
)
ANSWER_DEPTH = Counter("geo_answer_depth_total", "Answers by the depth of their evidence", ["depth"])
REWRITES = Counter(
    "geo_rewrites_total",
    "Questions that a model was to rewrite for the search, by policy, and what came of it",
    ["kind", "outcome"],
)
LISTWISE = Counter(
    "geo_listwise_total", "Answers whose passages a model was to order, by what came of it", ["outcome"]
)
ANSWERS = Counter("geo_answers_total", "Answers by status and mode", ["status", "mode"])
CLAIMS = Counter("geo_claims_total", "Claims by verdict", ["verdict"])
INDEX_GENERATION = Gauge(
    "geo_index_generation", "Generation served by this process", ["tier"], multiprocess_mode="mostrecent"
)
INDEX_VECTORS = Gauge("geo_index_vectors", "Live vectors", ["tier"], multiprocess_mode="mostrecent")
TIER_REFUSED = Gauge(
    "geo_tier_refused", "1 while a damaged tier is refused", ["tier"], multiprocess_mode="mostrecent"
)
VECTOR_PAGE_PADDING = Gauge(
    "geo_vector_page_padding_share", "Bytes of pages without a row", ["tier"], multiprocess_mode="mostrecent"
)
PROMPT_TOKENS = Counter(
    "geo_prompt_tokens_total",
    "Tokens of prompts that the engine computed, or found in its prefix cache",
    ["source"],
)
PREWARMED = Counter(
    "geo_prefix_prewarmed_total", "Beginnings of prompts computed ahead while nobody asked", ["outcome"]
)
KV_USED_SHARE = Gauge("geo_kv_used_share", "Share of KV blocks in use", multiprocess_mode="mostrecent")
ENGINE_REQUESTS = Gauge(
    "geo_engine_requests",
    "Requests at the engine, by state (running, waiting)",
    ["state"],
    multiprocess_mode="mostrecent",
)
ENGINE_PLAN_DRIFT = Gauge(
    "geo_engine_plan_drift",
    "How far the engine is from its plan, relative to the plan, where that is beyond the bound; else 0",
    ["what"],
    multiprocess_mode="mostrecent",
)
ENGINE_PREEMPTIONS = Counter(
    "geo_engine_preemptions_total", "Requests that lost their KV blocks to others and were computed again"
)
ENGINE_ABORTS = Counter(
    "geo_engine_aborts_total",
    "Requests aborted in the engine: cancelled (or left), deadline",
    ["why"],
)
REPLICA_FAILURES = Counter(
    "geo_engine_server_failures_total", "Requests that an engine server failed and another took over", ["url"]
)
ENGINE_RESTARTS = Counter("geo_engine_restarts_total", "Engines lost: died, hung or not started", ["why"])
ADMISSION_REFUSALS = Counter(
    "geo_admission_refusals_total",
    "Questions answered with 429, by reason: kv, late, queue",
    ["why", "priority"],
)
QUEUE_SECONDS = Histogram(
    "geo_query_queue_seconds",
    "From the question to the start of writing its answer",
    ["priority"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 3600),
)
REQUESTS = Counter("geo_http_requests_total", "HTTP requests", ["method", "path", "status"])
REQUEST_SECONDS = Histogram("geo_http_request_seconds", "HTTP time to the response's end", ["method", "path"])
RATE_LIMIT_SKIPPED = Counter("geo_rate_limit_skipped_total", "Requests let through because Redis was away")
ENCODE_TEXTS = Counter("geo_encode_texts_total", "Texts given to the encoder", ["kind"])
ENCODE_TRUNCATED = Counter("geo_encode_truncated_total", "Texts longer than the encoder's window", ["kind"])
ENCODE_REJECTED = Counter("geo_encode_rejected_total", "Vectors not finite or without length", ["kind"])
INDEX_PUBLISH_SECONDS = Histogram(
    "geo_index_publish_seconds",
    "Time to make pending log entries searchable",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
RECALL = Gauge(
    "geo_recall_at_10",
    "Mean recall@10 of sampled live questions against exact search",
    ["tier"],
    multiprocess_mode="mostrecent",
)
RECALL_FLOOR = Gauge(
    "geo_recall_floor", "Recall@10 that every tier must reach", multiprocess_mode="mostrecent"
)
RECALL_SAMPLES = Counter("geo_recall_samples_total", "Questions run again exactly", ["tier"])
TIER_EFFORT = Gauge(
    "geo_tier_effort",
    "What a search looks at, times what the build chose",
    ["tier"],
    multiprocess_mode="mostrecent",
)
MOVES = Counter("geo_moves_total", "Documents moved between tiers", ["from_tier", "to_tier", "reason"])
TIER_BYTES = Gauge(
    "geo_tier_bytes",
    "Bytes of a tier in a process that serves it: memory, mapped, page_cache; and on disk",
    ["tier", "kind"],
    multiprocess_mode="mostrecent",
)
TIER_DEAD_SHARE = Gauge(
    "geo_tier_dead_share",
    "Share of the stored rows that are deleted",
    ["tier"],
    multiprocess_mode="mostrecent",
)
PAGE_TOUCHES = Counter(
    "geo_page_touches_total", "Pages of original vectors asked for, and where they were", ["tier", "found"]
)
