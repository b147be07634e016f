"""Bodies of the search and query doors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field

from api.schemas.common import Body, JsonObject, Name, Text
from core.types import AnswerStatus
from retrieval.service import SearchHit, SearchResult

Collections = Name | Annotated[list[Name], Field(min_length=1, max_length=50)]
Question = Annotated[str, Field(description="up to `api.max_question_chars` characters")]


def _ids(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


CollectionList = Annotated[Collections, AfterValidator(_ids)]


class Turn(Body):
    """Something said before the question."""

    role: Literal["user", "assistant"]
    content: Text


def _told(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    return tuple(turn for turn in turns if turn.content.strip())


History = Annotated[
    tuple[Turn, ...],
    AfterValidator(_told),
    Field(
        max_length=200,
        description="earlier turns, oldest first; a question that leans on them is made whole",
    ),
]


class SearchBody(Body):
    """A question whose passages are wanted, without an answer."""

    question: Question
    collection: CollectionList = Field(description="id or name, or a list of them")
    history: History = ()
    top_k: int = Field(10, ge=1, le=1000)
    offset: int = Field(0, ge=0, le=10_000)
    filters: JsonObject | None = None
    rewrite: Literal["off", "llm", "hyde"] | None = Field(
        None, description="what a model may write for the search; default: the collection's policy"
    )
    explain: bool = Field(False, description="report what was recalled and left out, and why")


class QueryBody(Body):
    """A question to be answered."""

    question: Question
    collection: CollectionList = Field(description="id or name, or a list of them")
    history: History = ()
    task: Literal["answer", "summarize"] = "answer"
    priority: Literal["interactive", "batch"] = "interactive"
    deadline_s: float | None = Field(
        None,
        gt=0,
        le=30 * 86_400,
        description="seconds within which it ends, answered or not; default by priority",
    )
    stream: bool = Field(
        False, description="answer with the event stream, as `Accept: text/event-stream` does"
    )
    policy: JsonObject | None = Field(None, description="laid over the collection's policy")
    filters: JsonObject | None = None


class QueryAccepted(BaseModel):
    """Where the answer will be."""

    id: str
    status: AnswerStatus
    status_url: str
    events_url: str

    @classmethod
    def of(cls, query_id: str, status: AnswerStatus = AnswerStatus.QUEUED) -> QueryAccepted:
        """For a query that was just stored."""
        url = f"/v1/queries/{query_id}"
        return cls(id=query_id, status=status, status_url=url, events_url=f"{url}/events")


class RouteHit(BaseModel):
    """Where one route ranked a passage; scores of different routes share no scale."""

    route: str
    rank: int
    score: float


class HitOut(BaseModel):
    """One passage of a search result."""

    rank: int
    passage_id: int
    document_id: str
    document_name: str
    version: int
    collection_id: str
    page: int | None
    heading_path: list[str]
    start: int
    end: int
    lang: str
    text: str
    score: float = Field(description="relevance in [0, 1], comparable inside one query")
    fused_score: float
    rerank_score: float | None
    cross_score: float | None = Field(description="of a configured cross-encoder, on its own scale")
    routes: list[RouteHit]
    collapsed: int = Field(description="near-duplicates that stand behind this passage")

    @classmethod
    def of(cls, hit: SearchHit) -> HitOut:
        """From the service's value."""
        p = hit.passage
        return cls(
            rank=hit.rank,
            passage_id=p.id,
            document_id=p.document_id,
            document_name=hit.document_name,
            version=p.version,
            collection_id=hit.collection_id,
            page=p.page,
            heading_path=list(p.heading_path),
            start=p.span.start,
            end=p.span.end,
            lang=p.lang.value,
            text=p.text,
            score=hit.score,
            fused_score=hit.fused_score,
            rerank_score=hit.rerank_score,
            cross_score=hit.cross_score,
            routes=[RouteHit(route=r.route.value, rank=r.rank, score=r.score) for r in hit.routes],
            collapsed=hit.collapsed,
        )


class SearchOut(BaseModel):
    """What a search found."""

    query_id: str
    status: AnswerStatus
    question: str
    hits: list[HitOut]
    total: int
    routes: Mapping[str, Any] = Field(description="per route: state, hits, time")
    dropped: list[Mapping[str, Any]]
    timings_ms: Mapping[str, float]
    index_generation: int | None
    profile: Mapping[str, Any] = Field(description="id and version of the retrieval profile that ranked")
    rewrite: Mapping[str, Any] = Field(description="kind and state, where the policy has questions rewritten")
    variants: list[Mapping[str, Any]] = Field(description="what was searched for beside the question")
    asked: Mapping[str, Any] = Field(
        description="text, topic and why, where earlier turns made the question whole"
    )

    @classmethod
    def of(cls, found: SearchResult) -> SearchOut:
        """From the service's value."""
        return cls(
            query_id=found.query_id,
            status=found.status,
            question=found.question,
            hits=[HitOut.of(h) for h in found.hits],
            total=found.total,
            routes=found.route_reports,
            dropped=list(found.dropped),
            timings_ms=found.timings_ms,
            index_generation=found.index_generation,
            profile=found.profile,
            rewrite=found.rewrite,
            variants=list(found.variants),
            asked=found.asked,
        )
