"""Bodies of the tier and build doors."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from api.schemas.common import Body
from retrieval.service import Build


class RebuildBody(Body):
    """How to rebuild; both modes leave the tombstones behind."""

    mode: Literal["full", "compact"] = "full"
    model: str | None = Field(default=None, max_length=120, description="encoder; must be the configured one")


class BuildProgress(BaseModel):
    """Passages written so far."""

    done: int
    total: int


class BuildError(BaseModel):
    """Why a build failed."""

    code: str
    detail: str


class BuildOut(BaseModel):
    """One rebuild or rollback of a tier."""

    id: str
    tier: str
    mode: str
    status: str
    from_generation: int
    to_generation: int | None
    progress: BuildProgress
    stats: Mapping[str, Any]
    error: BuildError | None
    created_by: str
    created_at: datetime | None
    finished_at: datetime | None
    status_url: str

    @classmethod
    def of(cls, build: Build) -> BuildOut:
        """From the service's value."""
        error = (
            BuildError(code=build.error_code, detail=build.error_detail or "") if build.error_code else None
        )
        return cls(
            id=build.id,
            tier=build.tier,
            mode=build.mode,
            status=build.status,
            from_generation=build.from_generation,
            to_generation=build.to_generation,
            progress=BuildProgress(done=build.progress_done, total=build.progress_total),
            stats=build.stats,
            error=error,
            created_by=build.created_by,
            created_at=build.created_at,
            finished_at=build.finished_at,
            status_url=f"/v1/admin/builds/{build.id}",
        )
