"""Bodies of the placement and recall doors."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from api.schemas.common import Body, Text
from retrieval.service import MoveEvent, PolicyInForce

TierName = Literal["hot", "warm", "cold"]


class PlaceBody(Body):
    """What to place where."""

    target: Text | None = Field(
        default=None, max_length=200, description="a collection (id or name) or a document id; null: all"
    )
    tier: Literal["hot", "warm", "cold", "auto"] = Field(
        default="auto", description="the tier to stay in; auto: as use and age decide"
    )
    dry_run: bool = Field(default=False, description="change nothing, tell what would move")


class MoveOut(BaseModel):
    """One move of a document between tiers."""

    id: int
    document_id: str
    document_name: str | None = Field(description="null once the document is deleted")
    collection_id: str
    from_tier: str
    to_tier: str
    reason: str
    facts: Mapping[str, Any]
    vectors: int
    status: str
    moved_by: str
    generation: int | None
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, event: MoveEvent) -> MoveOut:
        """From the service's value."""
        return cls(**{name: getattr(event, name) for name in cls.model_fields})


class PlacementPolicyOut(BaseModel):
    """The placement policy of a collection; version 0 is the built-in default."""

    collection_id: str
    version: int
    policy: Mapping[str, Any]
    created_by: str
    created_at: datetime | None

    @classmethod
    def of(cls, found: PolicyInForce) -> PlacementPolicyOut:
        """From the service's value."""
        return cls(
            collection_id=found.collection_id,
            version=found.version,
            policy=found.policy.model_dump(mode="json"),
            created_by=found.created_by,
            created_at=found.created_at,
        )
