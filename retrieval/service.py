"""The light door of retrieval for the HTTP process: queries, searches, tiers and builds."""

from __future__ import annotations

from retrieval.builds import (
    Build,
    TierStatus,
    cancel_build,
    get_build,
    list_builds,
    request_rebuild,
    request_rollback,
    tier_status,
)
from retrieval.queries import SearchHit, SearchResult, get_search_result, submit_query

__all__ = [
    "Build",
    "SearchHit",
    "SearchResult",
    "TierStatus",
    "cancel_build",
    "get_build",
    "get_search_result",
    "list_builds",
    "request_rebuild",
    "request_rollback",
    "submit_query",
    "tier_status",
]
