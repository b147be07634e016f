"""The citation policy: what an answer may show, versioned per collection, overridable per request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import InvalidInput
from core.settings import GenerationSettings, RetrievalSettings
from core.types import CitationMode, Lang
from ingest.values import Trust

_FREE_SENTENCES = 4  # sentences a written answer may have when the policy does not say
_LENGTHS = {"short": 1, "medium": 2, "long": 4}  # sentences of an extract; a written answer has twice as many


class RefusalWords(BaseModel):
    """What is said, word for word, when the evidence does not carry an answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    en: str = Field(default="The documents do not answer this question.", pattern=r"\S", max_length=500)
    zh: str = Field(default="现有文档没有回答这个问题的依据。", pattern=r"\S", max_length=500)


class SourceRules(BaseModel):
    """Which sources may be cited. An absent rule allows all; an empty list allows none.

    Attributes:
        trust: allowed trust levels of the document.
        tags: the document must carry at least one of them.
        lang: allowed languages of the passage (`en`, `zh`, `und`).
        max_age_days: how old a source may be, by the date that it gives itself (metadata `date`, headings,
            name), else by its last upload.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    trust: tuple[Trust, ...] | None = Field(default=None, max_length=10)
    tags: tuple[str, ...] | None = Field(default=None, max_length=100)
    lang: tuple[Lang, ...] | None = Field(default=None, max_length=3)
    max_age_days: int | None = Field(default=None, ge=0, le=36_500)

    @property
    def empty(self) -> bool:
        """Whether every source may be cited."""
        return self == SourceRules()


class CitationPolicy(BaseModel):
    """Rules for one answer. Unknown fields are refused, so a typo never loosens a rule.

    Attributes:
        mode: how sentences come to be; None means the server's default.
        max_sentences: sentences an answer may show; None means that of `length`, or the mode's default.
        length: `short`, `medium` or `long`; None means the mode's default.
        tone: how a model writes (`free` and `quote`): `neutral`, `plain` or `formal`.
        sources: which sources may be cited.
        max_markers: sources that one claim may cite.
        require_quotes: whether a claim without an exact quote is removed.
        conflict: when sources disagree: show `both`, or the `newer` or more `trusted` one and say so.
        refusal_threshold: relevance in [0, 1] that the best evidence must reach; None means the server's.
        refusal: the fixed words of a refusal.
        max_answer_tokens: tokens the model may write; None means the engine plan's reserve.
        show_partial: whether claims with the verdict `partial` are shown (always marked as such).
        free_fallback: what `free` does in a language the model does not know: `extract` or `refuse`.
        depth: how much evidence is looked at: `auto` lets a router decide (one passage without the model,
            one, a few, or all); None means the server's.
        rewrite: what a model may write for the search, and for nothing else: `off` nothing, `llm` the
            question in other words, `hyde` a passage that might answer it.
        listwise: whether the model orders the passages before it writes, where it has shown that it can.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: CitationMode | None = None
    max_sentences: int | None = Field(default=None, ge=1, le=20)
    refusal_threshold: float | None = Field(default=None, ge=0, le=1)
    refusal: RefusalWords = Field(default_factory=RefusalWords)
    max_answer_tokens: int | None = Field(default=None, ge=8, le=8192)
    show_partial: bool = False
    length: Literal["short", "medium", "long"] | None = None
    tone: Literal["neutral", "plain", "formal"] = "neutral"
    sources: SourceRules = Field(default_factory=SourceRules)
    max_markers: int = Field(default=3, ge=1, le=20)
    require_quotes: bool = False
    conflict: Literal["both", "newer", "trusted"] = "both"
    free_fallback: str = Field(default="extract", pattern="^(extract|refuse)$")
    depth: Literal["auto", "full", "few", "one", "extract"] | None = None
    rewrite: Literal["off", "llm", "hyde"] = "off"
    listwise: bool = False

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

    A request may narrow the collection's sources, not widen them: lists are intersected, the age is the
    smaller one.

    Raises:
        InvalidInput: the override has an unknown field or a value out of bounds.
    """
    if not override:
        return base
    parse_policy(override)
    body = base.model_dump(mode="json")
    nested = ("refusal", "sources")
    body.update({k: v for k, v in override.items() if k not in nested})
    for name in nested:
        if isinstance(given := override.get(name), Mapping):
            body[name] = {**body[name], **given}
    asked = parse_policy(body)
    return asked.model_copy(update={"sources": _narrowed(base.sources, asked.sources)})


_T = TypeVar("_T")


def _shared(ours: tuple[_T, ...] | None, theirs: tuple[_T, ...] | None) -> tuple[_T, ...] | None:
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    return tuple(value for value in theirs if value in ours)


def _narrowed(base: SourceRules, asked: SourceRules) -> SourceRules:
    ages = [age for age in (base.max_age_days, asked.max_age_days) if age is not None]
    return SourceRules(
        trust=_shared(base.trust, asked.trust),
        tags=_shared(base.tags, asked.tags),
        lang=_shared(base.lang, asked.lang),
        max_age_days=min(ages, default=None),
    )


def resolved(
    policy: CitationPolicy, generation: GenerationSettings, retrieval: RetrievalSettings
) -> CitationPolicy:
    """The policy with every None replaced by the server's default: what the query row stores."""
    mode = policy.mode or generation.mode
    written = mode is not CitationMode.EXTRACT
    usual = max(generation.max_sentences, _FREE_SENTENCES) if written else generation.max_sentences
    if policy.length is not None:
        usual = _LENGTHS[policy.length] * (2 if written else 1)
    sentences = policy.max_sentences or usual
    threshold = policy.refusal_threshold
    return policy.model_copy(
        update={
            "mode": mode,
            "max_sentences": sentences,
            "refusal_threshold": retrieval.refusal_threshold if threshold is None else threshold,
            "max_answer_tokens": policy.max_answer_tokens or generation.answer_reserve,
        }
    )


def kept_mode(policy: CitationPolicy, lang: Lang, languages: Sequence[str]) -> tuple[CitationMode, str]:
    """The mode that can be kept in this language, and why it is not the one asked for.

    Args:
        policy: what is asked for.
        lang: of the question.
        languages: that the model writes.
    """
    mode = policy.mode or CitationMode.EXTRACT
    if mode is CitationMode.EXTRACT or lang is Lang.UND or lang.value in languages:
        return mode, ""
    reason = f"the model does not write {lang.value}"
    return (CitationMode.EXTRACT if policy.free_fallback == "extract" else mode), reason
