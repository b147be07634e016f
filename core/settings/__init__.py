"""All settings: nested, frozen, bounded; read from `GEO_*` variables and an `.env` file.

Nested names join with a double underscore: `GEO_WORKER__LEASE_TTL_S=30`. Unknown names are refused.
`.env.example` lists every one.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from core.errors import ConfigError
from core.settings.generation import GenerationSettings
from core.settings.ingest import IngestSettings
from core.settings.packs import PackSettings, cache_home
from core.settings.processes import (
    ApiSettings,
    AuthSettings,
    ClientSettings,
    DatabaseSettings,
    LogSettings,
    RedisSettings,
    WorkerSettings,
)
from core.settings.retrieval import PlacementSettings, RecallSettings, RetrievalSettings
from core.settings.section import MIB

__all__ = [
    "ApiSettings",
    "AuthSettings",
    "ClientSettings",
    "DatabaseSettings",
    "GenerationSettings",
    "IngestSettings",
    "LogSettings",
    "PackSettings",
    "PlacementSettings",
    "RecallSettings",
    "RedisSettings",
    "RetrievalSettings",
    "Settings",
    "WorkerSettings",
    "cache_home",
    "get_settings",
]


class Settings(BaseSettings):
    """The whole configuration of one process."""

    model_config = SettingsConfigDict(
        env_prefix="GEO_",
        env_nested_delimiter="__",
        env_file=".env",
        frozen=True,
        extra="forbid",
    )

    data_dir: Path = Field(
        default=Path(".geo"), description="everything this installation stores; relative to where it starts"
    )
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
