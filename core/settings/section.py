"""What all sections of the settings share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

MIB = 1 << 20


class Section(BaseModel):
    """A frozen group of settings that refuses names it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")
