"""The values that travel between stages. Frozen; rows become values only in a `repository.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """What a key may do; each role includes the ones before it."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"
    OPERATOR = "operator"

    @property
    def rank(self) -> int:
        """Position in the order reader < writer < admin < operator."""
        return list(Role).index(self)


class Route(StrEnum):
    """One way to recall passages. Scores of different routes share no scale."""

    DENSE = "dense"
    LEXICAL = "lexical"
    ENTITY = "entity"
    CODE = "code"  # asked only when the question has a code (`retrieval/identifiers.py`)


class Lang(StrEnum):
    """Languages that the engine treats apart; anything else is `UND`."""

    EN = "en"
    ZH = "zh"
    UND = "und"


class DocumentStatus(StrEnum):
    """Where a document stands for the person who uploaded it."""

    QUEUED = "queued"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"
    DELETING = "deleting"


class JobStatus(StrEnum):
    """State of one durable unit of work."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AnswerStatus(StrEnum):
    """State of a query. The last five are terminal."""

    QUEUED = "queued"
    RUNNING = "running"
    ANSWERED = "answered"
    REFUSED = "refused"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        """Whether nothing more will happen to the query."""
        return self not in (AnswerStatus.QUEUED, AnswerStatus.RUNNING)


class BuildStatus(StrEnum):
    """State of a rebuild of one tier."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    PUBLISHED = "published"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ROLLED_BACK = "rolled_back"


class CitationMode(StrEnum):
    """How an answer's sentences come to be (DESIGN: citation policy)."""

    EXTRACT = "extract"
    QUOTE = "quote"
    FREE = "free"


class Verdict(StrEnum):
    """What the checks say of one claim against the passages it cites."""

    SUPPORTED = "supported"
    PARTIAL = "partial"
    UNSUPPORTED = "unsupported"


class Tier(StrEnum):
    """Index tiers, from fastest to cheapest."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


@dataclass(frozen=True, slots=True)
class Scope:
    """Who asks and what they may see. Required by every read; an empty scope reads nothing.

    Attributes:
        tenant_id: the tenant; the empty string sees nothing.
        collection_ids: readable collections, or None for every collection of the tenant. An empty
            tuple reads nothing.
        principal: the key id (or worker name) that acts, for audit and rate limits.
        may: the strongest role held.
    """

    tenant_id: str
    collection_ids: tuple[str, ...] | None
    principal: str
    may: Role = Role.READER

    @classmethod
    def internal(cls, tenant_id: str) -> Scope:
        """Scope of a worker on behalf of one tenant. Built only in `tasks.py` files."""
        return cls(tenant_id, None, "worker", Role.ADMIN)

    def narrowed(self, collection_ids: tuple[str, ...]) -> Scope:
        """The same scope limited to `collection_ids`; never wider than before."""
        if self.collection_ids is not None:
            collection_ids = tuple(c for c in collection_ids if c in self.collection_ids)
        return Scope(self.tenant_id, collection_ids, self.principal, self.may)

    def allows_collection(self, collection_id: str) -> bool:
        """Whether rows of this collection (of the same tenant) may be read."""
        return self.collection_ids is None or collection_id in self.collection_ids


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Half-open character offsets `[start, end)` into the normalized text of one document version."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"span needs 0 <= start <= end, got [{self.start}, {self.end})")

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on a page in PDF points, origin at the top left."""

    x0: float
    top: float
    x1: float
    bottom: float


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where a span stands in the source: whichever of the fields the format has.

    Attributes:
        start, end: character offsets into the decoded source text (text formats only).
        line, last_line: 1-based source lines, from and to.
        page: 1-based page.
        boxes: rectangles on `page`.
        paragraph, last_paragraph: 0-based block numbers in DOCX or HTML, from and to.
        member: part inside a container (sheet name, EPUB chapter).
    """

    start: int | None = None
    end: int | None = None
    line: int | None = None
    page: int | None = None
    boxes: tuple[Box, ...] = ()
    paragraph: int | None = None
    member: str | None = None
    last_line: int | None = None
    last_paragraph: int | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """The unit that is recalled, cited and shown.

    Attributes:
        id: database id; also the id in FAISS and tantivy (int64, positive).
        ordinal: 0-based position in the document version.
        span: place in the version's normalized text; `text` equals that slice.
        page: 1-based page of the first character, or None.
        heading_path: headings above the passage, outermost first.
        page_breaks: where further pages begin inside it, as (offset into the version's text, page).
    """

    id: int
    document_id: str
    version: int
    ordinal: int
    span: Span
    page: int | None
    heading_path: tuple[str, ...]
    lang: Lang
    text: str
    page_breaks: tuple[tuple[int, int], ...] = ()

    def page_at(self, offset: int | None) -> int | None:
        """1-based page of the character at `offset` of the version's text; of the first one for None."""
        page = self.page
        for start, number in self.page_breaks:
            if offset is not None and start <= offset:
                page = number
        return page


@dataclass(frozen=True, slots=True)
class LinkedMention:
    """One mention and the entity it was resolved to, or None (NIL).

    Attributes:
        span: offsets into the document version's normalized text.
        score: calibrated confidence in [0, 1].
        reason: machine-readable, e.g. `alias=exact;prior=0.91;context=0.42`.
        stands_for: the full name in the same document that the surface is short for.
    """

    passage_id: int
    span: Span
    surface: str
    entity_id: str | None
    score: float
    reason: str
    type: str = ""
    stands_for: str = ""

    @property
    def name(self) -> str:
        """The name that was looked up."""
        return self.stands_for or self.surface


@dataclass(frozen=True, slots=True)
class Hit:
    """One passage recalled by one route. `rank` counts from 1; `score` is the route's own scale."""

    passage_id: int
    route: Route
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """A sentence of an evidence passage with the reranker's score in [0, 1], for `extract`."""

    span: Span
    score: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage admitted to the prompt. `marker` is the n in `[n]`, counted from 1.

    Attributes:
        score: final rerank score in [0, 1], comparable inside one query.
        routes: the routes that recalled it, with their ranks.
        sentences: scored sentences of the passage, in text order.
        collapsed: how many near-duplicate passages stand behind this one.
    """

    marker: int
    passage: Passage
    score: float
    routes: tuple[Hit, ...] = ()
    sentences: tuple[SentenceScore, ...] = ()
    document_name: str = ""
    collection_id: str = ""
    collapsed: int = 0


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """What the engine runs with, as published by the generation worker.

    Attributes:
        languages: languages the model writes well (`en`, `zh`).
        max_model_len, answer_reserve, context_budget: tokens.
        block_size: tokens per KV block; kv_blocks: number of blocks.
        kv_free_share: live share of free KV blocks in [0, 1].
        tp, pp: tensor and pipeline parallel sizes.
        vector_page_bytes: RAM granted to vector pages by the machine's memory plan.
    """

    model: str
    tokenizer: str
    languages: tuple[str, ...]
    max_model_len: int
    answer_reserve: int
    context_budget: int
    block_size: int
    kv_blocks: int
    kv_free_share: float
    tp: int
    pp: int
    vector_page_bytes: int


@dataclass(frozen=True, slots=True)
class Citation:
    """A claim's tie to one passage. `quote` are offsets into the version's normalized text."""

    marker: int
    passage_id: int
    document_id: str
    version: int
    quote: Span | None
    quote_text: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of an answer with its citations and the verdict of the checks."""

    text: str
    citations: tuple[Citation, ...]
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens spent by the engine; zero when it was not called."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's outcome as stored and shown."""

    query_id: str
    status: AnswerStatus
    claims: tuple[Claim, ...]
    usage: Usage
    timings_ms: dict[str, float] = field(default_factory=dict)
    index_generation: int | None = None
    policy_version: int | None = None
    stale_since: datetime | None = None
