"""The citation policy: what an answer may show, versioned per collection, overridable per request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from core.errors import ConfigError, InvalidInput
from core.settings import GenerationSettings, RetrievalSettings
from core.types import CitationMode, Lang

_FREE_SENTENCES = 4  # sentences a free answer may have when the policy does not say


class RefusalWords(BaseModel):
    """What is said, word for word, when the evidence does not carry an answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    en: str = Field(default="The documents do not answer this question.", min_length=1, max_length=500)
    zh: str = Field(default="现有文档没有回答这个问题的依据。", min_length=1, max_length=500)


class CitationPolicy(BaseModel):
    """Rules for one answer. Unknown fields are refused, so a typo never loosens a rule.

    Attributes:
        mode: how sentences come to be; None means the server's default.
        max_sentences: sentences an answer may show; None means the mode's default.
        refusal_threshold: relevance in [0, 1] that the best evidence must reach; None means the server's.
        refusal: the fixed words of a refusal.
        max_answer_tokens: tokens the model may write; None means the engine plan's reserve.
        show_partial: whether claims with the verdict `partial` are shown (always marked as such).
        free_fallback: what `free` does in a language the model does not know: `extract` or `refuse`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: CitationMode | None = None
    max_sentences: int | None = Field(default=None, ge=1, le=20)
    refusal_threshold: float | None = Field(default=None, ge=0, le=1)
    refusal: RefusalWords = Field(default_factory=RefusalWords)
    max_answer_tokens: int | None = Field(default=None, ge=8, le=8192)
    show_partial: bool = True
    free_fallback: str = Field(default="extract", pattern="^(extract|refuse)$")

    @field_validator("mode")
    @classmethod
    def _served(cls, mode: CitationMode | None) -> CitationMode | None:
        if mode is CitationMode.QUOTE:
            raise ValueError("quote is not served yet; choose extract or free")
        return mode

    def refusal_words(self, lang: Lang) -> str:
        """The refusal in the question's language (English where it is neither)."""
        return self.refusal.zh if lang is Lang.ZH else self.refusal.en


def parse_policy(body: Mapping[str, Any]) -> CitationPolicy:
    """Read a policy from JSON.

    Raises:
        InvalidInput: an unknown field or a value out of bounds; the detail names each.
    """
    try:
        return CitationPolicy.model_validate(dict(body))
    except ValidationError as error:
        lines = [
            f"policy.{'.'.join(str(p) for p in e['loc'])}: {e['msg'].removeprefix('Value error, ')}"
            for e in error.errors()
        ]
        raise InvalidInput(
            "; ".join(lines), fields=[".".join(map(str, e["loc"])) for e in error.errors()]
        ) from error


def merged(base: CitationPolicy, override: Mapping[str, Any] | None) -> CitationPolicy:
    """`base` with the request's fields laid over it; both are validated.

    Raises:
        InvalidInput: the override has an unknown field or a value out of bounds.
    """
    if not override:
        return base
    parse_policy(override)
    body = base.model_dump(mode="json")
    refusal = override.get("refusal")
    body.update({k: v for k, v in override.items() if k != "refusal"})
    if isinstance(refusal, Mapping):
        body["refusal"] = {**body["refusal"], **refusal}
    return parse_policy(body)


def resolved(
    policy: CitationPolicy, generation: GenerationSettings, retrieval: RetrievalSettings
) -> CitationPolicy:
    """The policy with every None replaced by the server's default: what the query row stores.

    Raises:
        ConfigError: the server's default mode is not served.
    """
    mode = policy.mode or generation.mode
    if mode is CitationMode.QUOTE:
        raise ConfigError("GEO_GENERATION__MODE=quote is not served yet; choose extract or free.")
    sentences = policy.max_sentences or (
        generation.max_sentences
        if mode is CitationMode.EXTRACT
        else max(generation.max_sentences, _FREE_SENTENCES)
    )
    threshold = policy.refusal_threshold
    return policy.model_copy(
        update={
            "mode": mode,
            "max_sentences": sentences,
            "refusal_threshold": retrieval.refusal_threshold if threshold is None else threshold,
            "max_answer_tokens": policy.max_answer_tokens or generation.answer_reserve,
        }
    )
