"""The choices a document version is made with: settings, then its collection's, then its own.

A version stores its choices, the version of the parsers and a digest of both, the recipe. A document whose
newest version has another recipe than it would get today is outdated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import InvalidInput
from core.settings import Settings, get_settings
from ingest.parse.model import OcrMode

# What turns bytes into text and passages; a change in any of them may change the outcome.
_DECIDES = ("clean", "lang", "normalize", "offset_map", "sentences", "split", "tokens")
_LIBRARIES = (
    "lxml", "markdown-it-py", "mdit-py-plugins", "onnxruntime", "opencv-python-headless", "pypdfium2",
    "rapidocr", "regex", "tokenizers", "trafilatura",
)  # fmt: skip


class ParseChoices(BaseModel):
    """What a collection or a document may choose; None leaves it to the layer below."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    ocr: Annotated[OcrMode | None, Field(strict=False)] = None
    keep_hidden: bool | None = None
    passage_tokens: int | None = Field(None, ge=16, le=8192)
    passage_max_tokens: int | None = Field(None, ge=32, le=8192)


@dataclass(frozen=True, slots=True)
class Recipe:
    """The choices in force.

    Attributes:
        ocr: when text in pictures is recognised.
        keep_hidden: take text that people cannot see as well.
        passage_tokens, passage_max_tokens: target and cap of a passage, in the encoder's tokens.
        encoder: the pack whose tokenizer counts.
    """

    ocr: OcrMode
    keep_hidden: bool
    passage_tokens: int
    passage_max_tokens: int
    encoder: str

    @classmethod
    def of(cls, *layers: Mapping[str, Any], settings: Settings | None = None) -> Self:
        """Settings, overridden by each layer in turn."""
        settings = settings or get_settings()
        chosen: dict[str, Any] = {
            "ocr": settings.ingest.ocr,
            "keep_hidden": settings.ingest.keep_hidden_text,
            "passage_tokens": settings.ingest.passage_tokens,
            "passage_max_tokens": settings.ingest.passage_max_tokens,
        }
        for layer in layers:
            chosen.update(layer)
        cap = chosen["passage_max_tokens"]
        return cls(
            OcrMode(chosen["ocr"]),
            chosen["keep_hidden"],
            min(chosen["passage_tokens"], cap),  # each may come from another layer
            cap,
            settings.packs.encoder,
        )

    @property
    def choices(self) -> dict[str, Any]:
        """As stored with a version and shown."""
        return {**asdict(self), "ocr": self.ocr.value}

    @property
    def digest(self) -> str:
        """Equal for versions that would come out equal."""
        told = json.dumps([parser_version(), self.choices], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:32]


def changed_choices(before: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`before` with `changes` laid over it; a choice set to None is given back to the layer below.

    Raises:
        InvalidInput: an unknown choice or a value out of bounds; the detail names it.
    """
    try:
        checked = ParseChoices.model_validate(dict(changes))
    except ValidationError as error:
        told = "; ".join(f"parse.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InvalidInput(told) from error
    merged = {**before, **checked.model_dump(mode="json", exclude_unset=True)}
    kept = {name: value for name, value in sorted(merged.items()) if value is not None}
    target, cap = kept.get("passage_tokens"), kept.get("passage_max_tokens")
    if target is not None and cap is not None and target > cap:
        raise InvalidInput("parse.passage_tokens must not be above parse.passage_max_tokens.")
    return kept


@lru_cache(maxsize=1)
def parser_version() -> str:
    """Names the code that makes text of bytes: a digest of its files and of the libraries it calls."""
    folder = Path(__file__).parent
    parsers = [*(folder / "parse").glob("*.py"), *(folder / "parse").glob("*.tsv")]
    files = [*sorted(parsers), *(folder / f"{name}.py" for name in _DECIDES)]
    told = hashlib.sha256()
    for file in files:
        told.update(file.name.encode() + b"\0" + file.read_bytes())
    for name in _LIBRARIES:
        told.update(f"{name} {_version_of(name)}\n".encode())
    return f"{_version_of('geo-engine') or 'source'}+{told.hexdigest()[:10]}"


def _version_of(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
