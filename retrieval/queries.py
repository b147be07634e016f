"""The light query door of retrieval: accept a question, read what a search found.

Imports nothing heavy; the HTTP process calls it. The work itself is the rerank task.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from sqlalchemy.orm import Session

from core.db import utcnow
from core.errors import InvalidInput, NotFound, TooLarge
from core.ids import new_id
from core.jobs import add_job
from core.models import QueryRow
from core.settings import get_settings
from core.types import AnswerStatus, Hit, Passage, Route, Scope
from core.worker import Task
from retrieval.filters import parse_filters
from retrieval.live import live_passages
from retrieval.query_repository import require_collections
from retrieval.variants import Variant

QueryTask = Literal["answer", "summarize", "search"]
Priority = Literal["interactive", "batch"]
TASKS: tuple[QueryTask, ...] = ("answer", "summarize", "search")
PRIORITIES: tuple[Priority, ...] = ("interactive", "batch")
MAX_TOP_K = 1000
DEFAULT_TOP_K = 10


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One passage of a search result.

    Attributes:
        rank: 1-based position in the whole ranking (page 2 goes on where page 1 ended).
        score: calibrated relevance in [0, 1], comparable inside one query.
        fused_score, rerank_score: the two parts of the final order, on scales of this query alone;
            `rerank_score` is None when the passage stood below the reranked head.
        cross_score: what a configured cross-encoder says, on its own scale; None where it did not read it.
        routes: every route that recalled it, with its rank and raw score there.
        collapsed: near-duplicate passages that stand behind this one.
    """

    rank: int
    passage: Passage
    collection_id: str
    document_name: str
    score: float
    fused_score: float
    rerank_score: float | None
    cross_score: float | None
    routes: tuple[Hit, ...]
    collapsed: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found; `hits` is empty until `status` is terminal.

    Attributes:
        total: passages in the ranking before the page was cut out of it.
        route_reports: per route `{state: ok|partial|failed|late, hits, ms, error}`.
        dropped: with `explain`, passages that were recalled and left out, and why.
        profile: id and version of the retrieval profile that ranked; empty until the search has run.
        rewrite: `{kind, state}` of a policy that has questions rewritten; empty for others.
        variants: what was searched for beside the question, `{kind, text, weight}`.
        asked: `{text, topic, why}` where earlier turns made the question whole; else empty.
        gone: hits that are no longer live, because their document was replaced or deleted since.
    """

    query_id: str
    status: AnswerStatus
    question: str
    hits: tuple[SearchHit, ...] = ()
    total: int = 0
    route_reports: Mapping[str, Any] = field(default_factory=dict[str, Any])
    dropped: tuple[Mapping[str, Any], ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict[str, float])
    index_generation: int | None = None
    error_code: str | None = None
    error_detail: str | None = None
    gone: int = 0
    profile: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rewrite: Mapping[str, Any] = field(default_factory=dict[str, Any])
    variants: tuple[Mapping[str, Any], ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict[str, Any])


def clean_question(question: str) -> str:
    """The question as stored: no control or zero-width characters, no lone surrogates, trimmed.

    Raises:
        InvalidInput: nothing is left.
        TooLarge: longer than `api.max_question_chars`.
    """
    limit = get_settings().api.max_question_chars
    if len(question) > limit:
        raise TooLarge(f"The question has {len(question)} characters; at most {limit} are allowed.")
    # Joiners (U+200D) and variation selectors stay: emoji and Indic scripts are spelled with them.
    kept = "".join(_clean_char(c) for c in question).strip()
    if not any(unicodedata.category(c)[0] not in "CZ" and not _variation(c) for c in kept):
        raise InvalidInput("The question is blank.")
    return kept


def _clean_char(c: str) -> str:
    if c in "\n\t":
        return c
    category = unicodedata.category(c)
    if category == "Cs":  # half of a surrogate pair cannot be stored as UTF-8
        return "\ufffd"
    if category == "Cc":
        return " "
    return "" if c in "\u200b\u2060\ufeff\u00ad\u200e\u200f\u202a\u202b\u202c\u202d\u202e" else c


def _variation(c: str) -> bool:
    return "\ufe00" <= c <= "\ufe0f"


def submit_query(
    session: Session,
    scope: Scope,
    *,
    question: str,
    collection_ids: Sequence[str],
    task: str = "answer",
    priority: str = "interactive",
    filters: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    policy: Mapping[str, Any] | None = None,
    policy_version: int | None = None,
    history: Sequence[Mapping[str, Any]] = (),
    replay_of: str | None = None,
    kv_tokens: int = 0,
    deadline_s: float | None = None,
    variants: Sequence[Variant] = (),
    rewrite_within_s: float = 0.0,
    rewriting: Mapping[str, Any] | None = None,
) -> str:
    """Store a query and ring the retrieval worker after the commit.

    Args:
        session: an open `Database.write()` session.
        scope: who asks; the query is stored under its tenant and principal.
        question: any text up to `api.max_question_chars`; control characters are removed.
        collection_ids: at least one; each must be readable.
        task: `answer`, `summarize` or `search` (hits only, the engine is not asked).
        priority: `interactive` or `batch`.
        filters: see `retrieval/filters.py`.
        options: `top_k` (1..1000), `offset` (≥ 0) and `explain` for a search; others are kept as given.
        policy: the effective citation policy, stored with the query.
        policy_version: version of the collection's policy that `policy` came from.
        history: earlier turns, `{role, content}`, oldest first.
        replay_of: the query that this one repeats.
        kv_tokens: what it is expected to need of the engine; 0 when it does not ask it.
        deadline_s: seconds from now after which it ends unanswered; None: never.
        variants: texts to search for beside the question.
        rewrite_within_s: let the generation worker write variants first, and search without them when they
            are not there so many seconds from now; 0: search at once.
        rewriting: what the trace says of rewriting already.

    Returns:
        The new query's id.

    Raises:
        InvalidInput: blank question, unknown task, priority, filter or option value.
        TooLarge: the question is above its cap.
        NotFound: a collection is unknown to this scope.
    """
    text = clean_question(question)
    _check_kind(task, priority)
    if not collection_ids:
        raise InvalidInput("Name at least one collection.")
    parse_filters(filters or {})
    page_of(options or {})
    collections = require_collections(session, scope, collection_ids)
    query_id = new_id("qry")
    session.add(
        QueryRow(
            id=query_id,
            tenant_id=scope.tenant_id,
            principal=scope.principal,
            collection_ids=list(collections),
            question=text,
            history=[dict(turn) for turn in history],
            task=task,
            priority=priority,
            filters=dict(filters or {}),
            variants=[variant.as_json() for variant in variants],
            trace={"rewrite": dict(rewriting)} if rewriting else {},
            options=dict(options or {}),
            policy=dict(policy or {}),
            policy_version=policy_version,
            status=AnswerStatus.QUEUED.value,
            replay_of=replay_of,
            kv_tokens=kv_tokens,
            deadline_at=None if deadline_s is None else utcnow() + timedelta(seconds=deadline_s),
        )
    )
    session.flush()
    _add_jobs(
        session, scope.tenant_id, query_id, gives_way=priority == "batch", rewrite_within_s=rewrite_within_s
    )
    return query_id


def _check_kind(task: str, priority: str) -> None:
    if task not in TASKS:
        raise InvalidInput(f"Unknown task {task!r}; known: {', '.join(TASKS)}.")
    if priority not in PRIORITIES:
        raise InvalidInput(f"Unknown priority {priority!r}; known: {', '.join(PRIORITIES)}.")


def _add_jobs(
    session: Session, tenant_id: str, query_id: str, *, gives_way: bool, rewrite_within_s: float
) -> None:
    """The search, and before it the writing of its variants where there is time for that."""
    for stage in (Task.REWRITE, Task.RERANK) if rewrite_within_s else (Task.RERANK,):
        add_job(
            session,
            stage,
            tenant_id=tenant_id,
            subject_kind="query",
            subject_id=query_id,
            gives_way=gives_way,
            ring_in_s=rewrite_within_s if stage is Task.RERANK else 0.0,
        )


def page_of(options: Mapping[str, Any]) -> tuple[int, int]:
    """`(offset, top_k)` of a search.

    Raises:
        InvalidInput: out of bounds or not a number.
    """
    offset, top_k = options.get("offset", 0), options.get("top_k", DEFAULT_TOP_K)
    for name, value, low, high in (("offset", offset, 0, 10_000), ("top_k", top_k, 1, MAX_TOP_K)):
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise InvalidInput(f"{name} must be a whole number from {low} to {high}.")
    return offset, top_k


def get_search_result(session: Session, scope: Scope, query_id: str) -> SearchResult:
    """What a `search` query found, read from its stored trace.

    Passages are joined when read, so what was deleted since is left out and nothing foreign appears.

    Raises:
        NotFound: the query is unknown to this scope.
    """
    row = session.get(QueryRow, query_id)
    if (
        row is None
        or row.tenant_id != scope.tenant_id
        or not all(map(scope.allows_collection, row.collection_ids))
    ):
        raise NotFound("No such query.", query_id=query_id)
    stored: list[dict[str, Any]] = row.trace.get("hits", [])
    passages = live_passages(
        session, scope.narrowed(tuple(row.collection_ids)), [entry["passage_id"] for entry in stored]
    )
    hits = [
        SearchHit(
            rank=entry["rank"],
            passage=known.passage,
            collection_id=known.collection_id,
            document_name=known.document_name,
            score=entry["score"],
            fused_score=entry["fused"],
            rerank_score=entry["reranked"],
            cross_score=entry.get("cross"),
            routes=tuple(
                Hit(entry["passage_id"], Route(r["route"]), r["rank"], r["score"]) for r in entry["routes"]
            ),
            collapsed=entry["collapsed"],
        )
        for entry in stored
        if (known := passages.get(entry["passage_id"])) is not None
    ]
    return SearchResult(
        query_id=row.id,
        status=AnswerStatus(row.status),
        question=row.question,
        hits=tuple(hits),
        total=row.trace.get("total", 0),
        route_reports=row.trace.get("routes", {}),
        dropped=tuple(row.trace.get("dropped", ())),
        timings_ms=row.timings_ms,
        index_generation=row.index_generation,
        gone=len(stored) - len(hits),
        profile=row.trace.get("profile", {}),
        rewrite=row.trace.get("rewrite", {}),
        variants=tuple(row.trace.get("variants", ())),
        asked=row.trace.get("asked", {}),
        error_code=row.error_code,
        error_detail=row.error_detail,
    )
