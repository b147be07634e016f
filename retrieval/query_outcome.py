"""What one query's rerank stage works on, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.types import Evidence, Scope
from retrieval.followup import Rewritten
from retrieval.pack import Dropped
from retrieval.profile import ProfileInForce
from retrieval.query_repository import StoredQuery
from retrieval.ranking import Ranking


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the task read before it began to work.

    Attributes:
        asked: the question as it is searched for.
        plan: of the engine.
    """

    query: StoredQuery
    scope: Scope
    asked: Rewritten
    plan: Mapping[str, Any] | None
    profile: ProfileInForce


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the task stores."""

    ranking: Ranking
    evidence: tuple[Evidence, ...] = ()
    hits: tuple[dict[str, Any], ...] = ()
    total: int = 0
    dropped: tuple[Dropped, ...] = ()
    timings_ms: dict[str, float] = field(default_factory=dict[str, float])
