"""Bodies of the doors of retrieval profiles."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from api.schemas.common import Body, JsonObject, Name
from retrieval.service import StoredProfile


class ProfileBody(Body):
    """A profile to store; nothing changes for queries until it is applied."""

    collection: Name | None = Field(default=None, description="id or name; null: the whole tenant")
    profile: JsonObject = Field(description="see docs/tuning.md")
    figures: JsonObject = Field(default_factory=dict, description="what geo tune measured")


class ApplyBody(Body):
    """How to apply a profile."""

    force: bool = Field(default=False, description="although its held-out result is worse")


class RollbackProfileBody(Body):
    """Whose last change is taken back."""

    collection: Name | None = Field(default=None, description="id or name; null: the whole tenant")


class ProfileOut(BaseModel):
    """One version of a profile."""

    id: str
    version: int
    collection_id: str | None = Field(description="null: of the whole tenant")
    in_force: bool
    profile: Mapping[str, Any]
    figures: Mapping[str, Any]
    created_by: str
    created_at: datetime

    @classmethod
    def of(cls, stored: StoredProfile) -> ProfileOut:
        """From the service's value."""
        return cls(
            id=stored.id,
            version=stored.version,
            collection_id=stored.collection_id,
            in_force=stored.in_force,
            profile=stored.body,
            figures=stored.figures,
            created_by=stored.created_by,
            created_at=stored.created_at,
        )
