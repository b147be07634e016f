"""Bodies of the collection and document doors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from api.schemas.common import Body, JsonObject, Name, Text
from core.types import DocumentStatus, SourcePlace
from ingest.service import Only, ParseChoices, Reprocess, WalkStatus
from ingest.values import Collection, Counts, Document, NearDuplicate, PlacedPassage, Problem, Progress, Trust

Tags = Annotated[list[Annotated[Text, Field(max_length=200)]], Field(max_length=200)]


class NewCollection(Body):
    """A collection to be made."""

    name: Name
    policy: JsonObject | None = Field(None, description="citation policy, see the policy door")
    parse: ParseChoices | None = Field(None, description="how its documents are read")


class CollectionPatch(Body):
    """What may change. A parse choice set to null is given back to the settings."""

    name: Name | None = None
    parse: ParseChoices | None = None


class DocumentReprocess(Body):
    """How this document is read from now on, above its collection's choices."""

    parse: ParseChoices | None = None


class CollectionReprocess(Body):
    """Which documents of the collection are made anew from their originals."""

    only: Only = Only.OUTDATED


class ReprocessOut(BaseModel):
    """A walk over a collection's documents and how far it is."""

    id: str
    collection_id: str
    only: Only
    status: WalkStatus
    total: int = Field(description="documents wanted when it began")
    queued: int = Field(description="given to the workers so far")
    done: int = Field(description="new version served")
    failed: int = Field(description="new version not possible; the old one is served")
    skipped: int = Field(description="deleted, in work or up to date when their turn came")
    created_at: datetime
    finished_at: datetime | None
    status_url: str

    @classmethod
    def of(cls, walk: Reprocess) -> ReprocessOut:
        """From the service's value."""
        return cls.model_validate({**asdict(walk), "status_url": f"/v1/reprocesses/{walk.id}"})


def given_choices(choices: ParseChoices | None) -> dict[str, Any] | None:
    """The choices that a body names, null ones included."""
    return None if choices is None else choices.model_dump(mode="json", exclude_unset=True)


class CollectionOut(BaseModel):
    """A named set of documents."""

    id: str
    name: str
    documents: int
    parse: dict[str, Any] = Field(description="choices of its own")
    parse_in_force: dict[str, Any] = Field(description="with the settings where it has none")
    created_at: datetime

    @classmethod
    def of(cls, collection: Collection) -> CollectionOut:
        """From the service's value."""
        return cls.model_validate(asdict(collection))


class DocumentPatch(Body):
    """What may change without a new version. Metadata keys set to null are removed."""

    name: Name | None = None
    metadata: JsonObject | None = None
    tags: Tags | None = None
    trust: Trust | None = None


class DocumentOut(BaseModel):
    """A document and where its processing stands."""

    id: str
    collection_id: str
    name: str
    status: DocumentStatus
    stage: str | None = Field(description="stage that runs, waits or failed; null when nothing is left to do")
    progress: Progress
    error: Problem | None = Field(
        description="why the newest version failed, or why its last attempt did; the live version is served"
    )
    version: int = Field(description="the newest version, which status, stage and progress speak of")
    live_version: int | None = Field(description="the version that is served")
    media_type: str
    size_bytes: int
    encoding: str | None
    encoding_confidence: float | None
    title: str
    lang: str
    pages: int | None
    counts: Counts
    warnings: list[Any]
    tags: list[str]
    trust: Trust
    metadata: dict[str, Any]
    properties: dict[str, str] = Field(
        description="the file's own author, created, modified, published, description, language"
    )
    parse: dict[str, Any] = Field(description="choices that the newest version was made with")
    parser_version: str
    near_duplicates: list[NearDuplicate] = Field(
        description="documents of the collection with nearly the same served text, most alike first"
    )
    outdated: bool = Field(description="today it would be read with other choices or parsers")
    created_at: datetime
    updated_at: datetime
    status_url: str

    @classmethod
    def of(cls, document: Document) -> DocumentOut:
        """From the service's value."""
        return cls.model_validate({**asdict(document), "status_url": f"/v1/documents/{document.id}"})


class PassageOut(BaseModel):
    """A passage and where it stands in the source."""

    id: int
    document_id: str
    version: int
    ordinal: int
    start: int
    end: int
    page: int | None
    heading_path: list[str]
    lang: str
    text: str
    places: list[SourcePlace]

    @classmethod
    def of(cls, placed: PlacedPassage) -> PassageOut:
        """From the service's value."""
        p = placed.passage
        return cls(
            id=p.id,
            document_id=p.document_id,
            version=p.version,
            ordinal=p.ordinal,
            start=p.span.start,
            end=p.span.end,
            page=p.page,
            heading_path=list(p.heading_path),
            lang=p.lang.value,
            text=p.text,
            places=list(_places(placed)),
        )


def _places(placed: PlacedPassage) -> Iterable[SourcePlace]:
    return placed.places
