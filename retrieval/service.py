"""The light door of retrieval for the HTTP process: queries, tiers, builds, placement and recall."""

from __future__ import annotations

from retrieval.build_control import cancel_build, pause_build, resume_build
from retrieval.builds import Build, get_build, list_builds, request_rebuild, request_rollback
from retrieval.moves import MoveEvent, list_moves
from retrieval.placement_repository import PolicyInForce
from retrieval.placement_service import Placing, place
from retrieval.placement_service import get_policy as get_placement_policy
from retrieval.placement_service import put_policy as put_placement_policy
from retrieval.profiles import (
    ProfileUse,
    StoredProfile,
    add_profile,
    apply_profile,
    get_profile,
    list_profiles,
    roll_back_profile,
)
from retrieval.queries import SearchHit, SearchResult, get_search_result, submit_query
from retrieval.recall_store import RecallReport, recall_report
from retrieval.tier_status import TierStatus, tier_status

__all__ = [
    "Build",
    "MoveEvent",
    "Placing",
    "PolicyInForce",
    "ProfileUse",
    "RecallReport",
    "SearchHit",
    "SearchResult",
    "StoredProfile",
    "TierStatus",
    "add_profile",
    "apply_profile",
    "cancel_build",
    "get_build",
    "get_placement_policy",
    "get_profile",
    "get_search_result",
    "list_builds",
    "list_moves",
    "list_profiles",
    "pause_build",
    "place",
    "put_placement_policy",
    "recall_report",
    "request_rebuild",
    "request_rollback",
    "resume_build",
    "roll_back_profile",
    "submit_query",
    "tier_status",
]
