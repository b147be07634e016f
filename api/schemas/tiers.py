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

    mode: Literal["full", "compact"] = Field(
        default="full", description="from the database, or from the files that are served"
    )
    model: str | None = Field(
        default=None,
        max_length=120,
        description="another encoder, for all tiers together; its pack is installed",
    )
    accept_moved: bool = Field(
        default=False, description="publish although many saved questions find something else first"
    )


class RollbackBody(Body):
    """Where to go back to."""

    generation: int | None = Field(
        default=None, ge=1, description="one of those kept; unset: the newest of them"
    )


class BuildProgress(BaseModel):
    """Passages written so far."""

    done: int
    total: int


class BuildError(BaseModel):
    """Why a build failed."""

    code: str
    detail: str


class BuildOut(BaseModel):
    """One rebuild or rollback."""

    id: str
    tier: str
    mode: str
    status: str
    from_generation: int
    to_generation: int | None
    model: str = Field(description="the encoder that it changes to; empty: the served one")
    progress: BuildProgress
    eta_s: float | None = Field(description="until the swap, at the present rate")
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
            model=build.model,
            eta_s=build.eta_s,
            progress=BuildProgress(done=build.progress_done, total=build.progress_total),
            stats=build.stats,
            error=error,
            created_by=build.created_by,
            created_at=build.created_at,
            finished_at=build.finished_at,
            status_url=f"/v1/admin/builds/{build.id}",
        )
