"""What the answer task is given, and what it hands back to be stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from core.types import AnswerStatus, CitationMode, Claim, Evidence, Usage
from generation.policy import CitationPolicy
from generation.values import Notice


@dataclass(frozen=True, slots=True)
class QueryState:
    """What the answer task needs of a query's row.

    Attributes:
        deadline_at: when it ends, answered or not; None: only the engine's own deadline holds.
        readings: where a name of the question may mean several entities, the evidence markers of each.
        depth: of the evidence; `extract`: one passage holds the answer, and the model is not asked.
        left_out: relevant passages that retrieval left out because the policy finds them too old.
        replayed: the record of the answer that this one repeats; empty where it repeats none.
    """

    id: str
    tenant_id: str
    collection_ids: tuple[str, ...]
    question: str
    history: tuple[Mapping[str, str], ...]
    task: str
    priority: str
    policy: CitationPolicy
    status: AnswerStatus
    cancel_requested: bool
    created_at: datetime
    readings: tuple[tuple[int, ...], ...] = ()
    depth: str = ""
    filters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    replay_of: str | None = None
    replayed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    deadline_at: datetime | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the answer task stores at the end.

    Attributes:
        text: the fixed words of a refusal, or empty (the text is then the joined claims).
        mode_reason: why `mode_used` is not the mode asked for, or empty.
        notices: what a reader should know beside the claims.
        evidence: what the answer was made from, where it is not what retrieval stored (a summary).
        listwise: what came of having the model order the passages; empty where it was not to.
        record: what a replay compares: model, plan, seed, digests of prompt and grammar.
    """

    status: AnswerStatus
    claims: tuple[Claim, ...] = ()
    mode_used: CitationMode | None = None
    mode_reason: str = ""
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    timings_ms: Mapping[str, float] | None = None
    notices: tuple[Notice, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict[str, Any])
    evidence: tuple[Evidence, ...] | None = None
    listwise: Mapping[str, Any] = field(default_factory=dict[str, Any])
