"""What the ingest services return: frozen values, free of rows and of HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from core.types import DocumentStatus, Passage, SourcePlace, Span

T = TypeVar("T")


class Trust(StrEnum):
    """How far an operator trusts a document; ranking and placement may weigh it."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. `next_cursor` is opaque; None at the end."""

    items: tuple[T, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Collection:
    """A named set of documents.

    Attributes:
        documents: those not being deleted.
        parse: choices of its own; parse_in_force: with the settings where it has none.
    """

    id: str
    name: str
    documents: int
    parse: dict[str, Any]
    parse_in_force: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """Work done of the present stage: pages while it reads, else passages. Total 0 means not known yet."""

    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a document failed, or why its last attempt did while it waits for the next."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of the version that `Document.version` names."""

    passages: int = 0
    mentions: int = 0
    entities: int = 0


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """Another document of the collection with nearly the same text.

    `similarity`: share of the shingles of both texts that both have (Jaccard index), in [0, 1].
    """

    document_id: str
    name: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Document:
    """A document as its owner sees it.

    Attributes:
        stage: the stage that runs, waits or failed (`normalize`, `disambiguate`, `index`, `unindex` or
            `purge`); None when nothing is left to do.
        status, error: of the newest version; a failed one leaves `live_version` served.
        version: the newest version; live_version: the one that is served, None until one is indexed.
        media_type, size_bytes, encoding, title, lang, pages, warnings: of the newest version.
        properties: what the newest version says of itself (author, dates …).
        parse, parser_version: what the newest version was made, or tried, with; empty until its work began.
        near_duplicates: documents whose served text is nearly this one's served text, at most ten.
        outdated: today it would be made with other choices or parsers.
    """

    id: str
    collection_id: str
    name: str
    status: DocumentStatus
    stage: str | None
    progress: Progress
    error: Problem | None
    version: int
    live_version: int | None
    media_type: str
    size_bytes: int
    encoding: str | None
    encoding_confidence: float | None
    title: str
    lang: str
    pages: int | None
    counts: Counts
    warnings: tuple[Any, ...]
    tags: tuple[str, ...]
    trust: Trust
    metadata: dict[str, Any]
    properties: dict[str, str]
    parse: dict[str, Any]
    parser_version: str
    outdated: bool
    near_duplicates: tuple[NearDuplicate, ...]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Upload:
    """Outcome of an upload. `created`: work was queued (new bytes, or a new attempt at failed ones)."""

    document: Document
    created: bool


@dataclass(frozen=True, slots=True)
class Source:
    """The original bytes. `name` is display text, safe for a header after quoting; never a path."""

    document_id: str
    version: int
    path: Path
    name: str
    media_type: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Content:
    """Normalized text of one version. `outline` holds `{text, level, start, end}` of each heading."""

    document_id: str
    version: int
    title: str
    lang: str
    text: str
    outline: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class PlacedPassage:
    """A passage and where it stands in the source: one place per page that it touches."""

    passage: Passage
    places: tuple[SourcePlace, ...]


@dataclass(frozen=True, slots=True)
class Entity:
    """A catalogue entry. `merged_into` names the entity that stands for this one, if any.

    `beside`: organisations that documents name beside a person, which tell people of one name apart.
    """

    id: str
    type: str
    name: str
    description: str
    same_as: tuple[str, ...]
    aliases: tuple[str, ...]
    provenance: str
    merged_into: str | None
    blocked: bool
    mentions: int
    created_at: datetime
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntityMention:
    """Where a live document names an entity: offsets into the document, and the text of the passage."""

    id: int
    document_id: str
    document_name: str
    passage_id: int
    version: int
    start: int
    end: int
    surface: str
    score: float
    reason: str
    passage_start: int
    text: str


@dataclass(frozen=True, slots=True)
class EntityEvent:
    """One human override."""

    id: int
    entity_id: str
    action: str
    payload: dict[str, Any]
    principal: str
    undone: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """An import row that was not taken; `row` counts from 1."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class EntityImport:
    """Outcome of an import. `ids` maps the caller's external ids to entity ids."""

    created: int
    updated: int
    rejected: tuple[RejectedRow, ...]
    ids: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a passage. `span` points into the normalized text of the document version.

    `type` is the recogniser's label (PERSON, ORG, GPE …); empty when only the catalogue knows the name.
    `stands_for` is the full name in the same document that a short form is short for.
    """

    passage_id: int
    span: Span
    surface: str
    type: str
    stands_for: str = ""

    @property
    def name(self) -> str:
        """The name to be looked up: the full one where this is a short form."""
        return self.stands_for or self.surface
