"""Bodies of the entity doors."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.schemas.common import Body, Name, Text

EntityId = Annotated[str, Field(min_length=1, max_length=80)]
EntityIds = Annotated[list[EntityId], Field(min_length=1, max_length=100)]
DocumentIds = Annotated[list[Annotated[str, Field(max_length=40)]], Field(min_length=1, max_length=1000)]
Description = Annotated[Text, Field(max_length=4000)]


class EntityPatch(Body):
    """Overrides by a person; they survive every re-link."""

    name: Name | None = None
    description: Description | None = None
    blocked: bool | None = Field(None, description="a blocked entity is never linked")
    pin_aliases: list[Name] = Field([], max_length=100, description="names that always mean this entity")


class EntityMerge(Body):
    """Entities that are the same as this one."""

    entity_ids: EntityIds


class EntitySplit(Body):
    """A second entity, made of this one's mentions in some documents."""

    name: Name
    document_ids: DocumentIds
    type: Annotated[Text, Field(max_length=40)] | None = None
    description: Description = ""


class EntityUndo(Body):
    """Which override to take back; by default the newest."""

    event_id: int | None = Field(None, ge=1, le=2**63 - 1)
