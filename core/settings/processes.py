"""Settings of the processes: database, broker, HTTP, keys, workers, client commands, logs."""

from __future__ import annotations

from pydantic import Field, SecretStr, field_validator

from core.settings.section import MIB, Section


class DatabaseSettings(Section):
    """Where the truth about work lives."""

    url: str = Field(default="", description="SQLAlchemy URL; empty means SQLite in the data folder")
    pool_size: int = Field(default=10, ge=1, le=200, description="connections that a process keeps open")
    max_overflow: int = Field(default=20, ge=0, le=500, description="more of them while they are needed")
    pool_timeout_s: float = Field(
        default=10.0, gt=0, le=120, description="waiting for a connection; then 503"
    )
    busy_timeout_ms: int = Field(
        default=15_000, ge=100, le=120_000, description="SQLite only: waiting for the turn to write; then 503"
    )


class RedisSettings(Section):
    """The broker and the event streams."""

    url: str = Field(
        default="", description="redis:// or unix:// URL; empty means the embedded server's socket"
    )
    stream_ttl_s: int = Field(
        default=3600, ge=60, le=7 * 86400, description="events of an answer are kept so long"
    )


class ApiSettings(Section):
    """The HTTP process."""

    host: str = Field(default="127.0.0.1", description="address that the API listens on")
    port: int = Field(default=8000, ge=0, le=65535, description="0: any free one")
    max_upload_bytes: int = Field(default=64 * MIB, ge=1024, description="one uploaded file")
    max_body_bytes: int = Field(default=1 * MIB, ge=1024, description="any other request body")
    max_question_chars: int = Field(default=4000, ge=16, le=100_000, description="above it: 413")
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
    rate_burst: int = Field(
        default=120, ge=1, le=1_000_000, description="requests that a key may send at once"
    )
    rate_anonymous_per_minute: int = Field(
        default=60, ge=1, le=1_000_000, description="failed or keyless requests per address"
    )
    public_metrics: bool = Field(
        default=False, description="serve /metrics without a key (private bind only)"
    )


class AuthSettings(Section):
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


class WorkerSettings(Section):
    """Leases, retries and the reaper."""

    lease_ttl_s: float = Field(
        default=60.0, ge=1, le=3600, description="a dead worker's job is taken over after this"
    )
    max_attempts: int = Field(default=4, ge=1, le=20, description="then the job fails")
    retry_base_s: float = Field(
        default=2.0, ge=0.05, le=600, description="pause before the second attempt; doubles"
    )
    retry_cap_s: float = Field(default=300.0, ge=0.1, le=3600, description="the longest pause")
    reap_interval_s: float = Field(
        default=10.0, ge=0.2, le=600, description="expired leases and lost messages are looked for this often"
    )
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
    ingest_processes: int = Field(default=1, ge=1, le=64, description="documents read at once")
    ingest_idle_s: float = Field(
        default=300.0,
        ge=0.2,
        le=86_400,
        description="an ingest process gives its memory back after this pause",
    )
    retrieval_threads: int = Field(default=4, ge=1, le=256, description="searches at once")
    generation_threads: int = Field(default=32, ge=1, le=1024, description="answers at once")
    generation_batch_threads: int = Field(
        default=12, ge=1, le=1024, description="of those, what batch questions may take"
    )


class ClientSettings(Section):
    """What `geo upload`, `geo ask` and the other client commands talk to."""

    url: str = Field(default="", description="empty: the embedded stack of this data folder")
    key: SecretStr | None = Field(default=None, description="API key; empty: GEO_AUTH__BOOTSTRAP_KEY")
    timeout_s: float = Field(default=180.0, gt=0, le=3600, description="waiting for a response")


class LogSettings(Section):
    """Structured logs on stderr."""

    level: str = Field(
        default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="DEBUG, INFO, WARNING or ERROR"
    )
    format: str = Field(default="console", pattern="^(console|json)$", description="console or json")
