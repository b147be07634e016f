"""Bodies of the collection and document doors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from api.schemas.common import Body, JsonObject, Name, Text
from core.types import DocumentStatus, SourcePlace
from ingest.values import Collection, Counts, Document, PlacedPassage, Problem, Progress, Trust

Tags = Annotated[list[Annotated[Text, Field(max_length=200)]], Field(max_length=200)]


class NewCollection(Body):
    """A collection to be made."""

    name: Name
    policy: JsonObject | None = Field(None, description="citation policy, see the policy door")


class CollectionPatch(Body):
    """Another name."""

    name: Name


class CollectionOut(BaseModel):
    """A named set of documents."""

    id: str
    name: str
    documents: int
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
    error: Problem | None
    version: int
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
