"""What the services return: frozen values whose fields are those of the wire."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from core.types import AnswerStatus, CitationMode, Verdict

_NO_SPACE_AFTER = "。！？；，、：”’）】》…\n 　"


def join_sentences(texts: Iterable[str]) -> str:
    """Join claim texts into the answer's text: no space after Chinese, one space elsewhere.

    Empty texts (removed claims) leave no trace. The stored answer and a client that joins `claim`
    events with this rule agree.
    """
    out = ""
    for text in texts:
        if text:
            out += separator(out) + text
    return out


def separator(before: str) -> str:
    """What stands between `before` and the next claim's text."""
    if not before or before[-1] in _NO_SPACE_AFTER or "\u3400" <= before[-1] <= "\u9fff":
        return ""
    return " "


@dataclass(frozen=True, slots=True)
class QuoteView:
    """Characters `[start, end)` of the document version's normalized text, and those characters."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class CitationView:
    """A claim's tie to one passage. `quote` is None when erased or when the claim cites the whole passage."""

    marker: int
    passage_id: int
    document_id: str
    document_name: str
    version: int
    page: int | None
    heading_path: tuple[str, ...]
    quote: QuoteView | None


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One sentence of an answer. `erased`: a cited document was deleted; only marker and reason stay."""

    ordinal: int
    text: str
    verdict: Verdict
    reason: str
    citations: tuple[CitationView, ...]
    erased: bool = False


@dataclass(frozen=True, slots=True)
class RouteRank:
    """Where one route ranked a source (1 = best); `score` is the route's own scale."""

    route: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class SourceView:
    """A passage that the answer may cite. `text` is None once the passage is gone."""

    marker: int
    passage_id: int
    document_id: str
    document_name: str
    version: int
    page: int | None
    heading_path: tuple[str, ...]
    text: str | None
    score: float
    routes: tuple[RouteRank, ...] = ()
    collapsed: int = 0


@dataclass(frozen=True, slots=True)
class ErrorView:
    """Why a query failed."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to know beside the claims, in the question's language.

    Attributes:
        code: `conflicting_sources`, `instructions_in_source`, `namesakes`, `searched`, `context_shortened`,
            `sources_left_out` or `document_not_read_whole`.
        markers: the sources that it is about.
        detail: the same for machines.
    """

    code: str
    text: str
    markers: list[int] = field(default_factory=list[int])
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A query and its answer.

    Attributes:
        mode: the citation mode asked for; mode_used: the one that wrote the claims (None until then,
            and for a refusal), with `mode_reason` when they differ.
        text: the shown claims joined, or the fixed words of a refusal; empty while nothing is final.
        trace: what retrieval did (routes, ranks, scores, dropped and why).
    """

    id: str
    status: AnswerStatus
    question: str
    task: str
    priority: str
    collection_ids: tuple[str, ...]
    mode: CitationMode
    mode_used: CitationMode | None
    mode_reason: str
    text: str
    claims: tuple[ClaimView, ...]
    sources: tuple[SourceView, ...]
    usage: dict[str, int]
    timings_ms: dict[str, float]
    index_generation: int | None
    policy_version: int | None
    policy: dict[str, Any]
    stale_since: datetime | None
    cancel_requested: bool
    error: ErrorView | None
    replay_of: str | None
    created_at: datetime
    finished_at: datetime | None
    trace: dict[str, Any] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """What the last event of a query says; the fields are those of `AnswerView`."""

    status: AnswerStatus
    mode: CitationMode
    mode_used: CitationMode | None
    mode_reason: str
    text: str
    usage: dict[str, int]
    timings_ms: dict[str, float]
    index_generation: int | None
    policy_version: int | None
    error: ErrorView | None
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """One line of the list of queries."""

    id: str
    status: AnswerStatus
    question: str
    task: str
    collection_ids: tuple[str, ...]
    stale_since: datetime | None
    replay_of: str | None
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """A page of queries, newest first; `next_cursor` is None at the end."""

    items: tuple[AnswerSummary, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class PolicyView:
    """One version of a collection's policy. Version 0 is the built-in default (nothing stored yet)."""

    collection_id: str
    version: int
    body: dict[str, Any]
    created_by: str | None
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """State of the generation engine as last heard.

    Attributes:
        state: `starting`, `ready`, `failed` or `unknown` (no generation worker was heard of lately).
        plan: fields of `core.types.EnginePlan`, or None before the first start.
    """

    state: str
    detail: str
    plan: dict[str, Any] | None
    kv_free_share: float | None
    running: int | None
    waiting: int | None
    heard_at: datetime | None
