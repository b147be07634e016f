"""Pieces that several doors share."""

from __future__ import annotations

import re
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Path
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

T = TypeVar("T")

# NUL and the other C0/C1 controls but tab and line breaks: PostgreSQL refuses NUL, terminals obey the rest.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_MAX_DEPTH = 8


class Body(BaseModel):
    """A request body: unknown fields are refused, so that a typo is not silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Listed(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next_cursor: str | None = Field(description="opaque; pass it as `cursor` to get the next page")


def clean_text(value: Any) -> Any:
    """Remove control characters and replace lone surrogates, once, at the door; other types pass."""
    if not isinstance(value, str):
        return value
    return _CONTROLS.sub("", _SURROGATES.sub("\ufffd", value))


def clean_json(value: Any, depth: int = 0) -> Any:
    """The same for every string of a JSON value, keys too; raises ValueError when nested too deeply."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {clean_text(k): clean_json(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [clean_json(v, depth + 1) for v in value]
    return clean_text(value)


def _stripped(value: str) -> str:
    if not (value := value.strip()):
        raise ValueError("must not be blank")
    return value


Text = Annotated[str, BeforeValidator(clean_text)]
Name = Annotated[Text, AfterValidator(_stripped), Field(max_length=200)]
JsonObject = Annotated[dict[str, Any], BeforeValidator(clean_json)]
PathId = Annotated[str, Path(max_length=80)]
