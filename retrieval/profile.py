"""A retrieval profile: the numbers of the ranking that an operator may tune, with their bounds. Pure.

The built-in one is what `retrieval/weights.py` and the settings say. Another one is made by `geo tune`,
stored under a version and applied to a tenant or a collection (`retrieval/profiles.py`, docs/tuning.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import InvalidInput
from core.settings import RetrievalSettings
from core.types import Lang, Route
from retrieval import weights
from retrieval.language import across

BUILT_IN = "built-in"
_MAX_WEIGHT = 16.0


class LanguageWeights(BaseModel):
    """Weights of standardized scores for questions in one language about passages in the same.

    Attributes:
        dense, lexical: of the routes, before the rerank.
        tokens: of MaxSim beside the fused score.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dense: float = Field(ge=0, le=_MAX_WEIGHT)
    lexical: float = Field(ge=0, le=_MAX_WEIGHT)
    tokens: float = Field(ge=0, le=_MAX_WEIGHT)


class AcrossWeights(BaseModel):
    """What differs when most of the best passages are in another language than the question.

    Attributes:
        tokens: weight of MaxSim.
        head: passages that are reranked at least.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tokens: float = Field(ge=0, le=_MAX_WEIGHT)
    head: int = Field(ge=1, le=200)


class Profile(BaseModel):
    """Everything of the ranking that may be tuned.

    Attributes:
        en, zh: by the language of the question; others are ranked like English ones.
        across: when passages are in the other language.
        entity: weight of the entity route.
        route_k: passages that each route is asked for.
        rerank_k: passages that are reranked.
        max_evidence: passages that an answer may draw on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    en: LanguageWeights
    zh: LanguageWeights
    across: AcrossWeights
    entity: float = Field(ge=0, le=4)
    route_k: int = Field(ge=1, le=1000)
    rerank_k: int = Field(ge=1, le=200)
    max_evidence: int = Field(ge=1, le=64)

    def of_question(self, question: Lang) -> LanguageWeights:
        """The weights of a question in this language."""
        return self.zh if question is Lang.ZH else self.en

    def routes(self, question: Lang) -> dict[Route, float]:
        """Weights of the routes whose scores are standardized."""
        own = self.of_question(question)
        return {Route.DENSE: own.dense, Route.LEXICAL: own.lexical}

    def tokens_weight(self, question: Lang, passages: Sequence[Lang]) -> float:
        """Weight of MaxSim for a head of these passages."""
        return self.across.tokens if mostly_across(question, passages) else self.of_question(question).tokens

    def head_size(self, question: Lang, passages: Sequence[Lang]) -> int:
        """How many of these passages, best first, are reranked."""
        usual = self.rerank_k
        return max(usual, self.across.head) if mostly_across(question, passages[:usual]) else usual


@dataclass(frozen=True, slots=True)
class ProfileInForce:
    """The profile of a query, and which one it is: `built-in`, or the id and version of a stored one."""

    profile: Profile
    id: str = BUILT_IN
    version: int = 0

    def as_json(self) -> dict[str, Any]:
        """For the trace."""
        return {"id": self.id, "version": self.version}


def built_in(settings: RetrievalSettings) -> Profile:
    """What ranks while nothing is applied."""
    return Profile(
        en=_weights(Lang.EN),
        zh=_weights(Lang.ZH),
        across=AcrossWeights(tokens=weights.ACROSS_TOKENS, head=weights.ACROSS_HEAD),
        entity=settings.entity_weight,
        route_k=settings.route_k,
        rerank_k=settings.rerank_k,
        max_evidence=settings.max_evidence,
    )


def parse_profile(body: Mapping[str, Any]) -> Profile:
    """Read a profile from JSON.

    Raises:
        InvalidInput: a field is unknown, missing or out of bounds; the detail names each.
    """
    try:
        return Profile.model_validate(dict(body))
    except ValidationError as error:
        lines = [f"{'.'.join(['profile', *map(str, e['loc'])])}: {e['msg']}" for e in error.errors()]
        raise InvalidInput("; ".join(lines)) from error


def mostly_across(question: Lang, passages: Sequence[Lang]) -> bool:
    """Whether more than half of the passages are known to be in another language than the question."""
    return 2 * sum(1 for lang in passages if across(question, lang)) > len(passages)


def _weights(lang: Lang) -> LanguageWeights:
    own = weights.weights_for(lang)
    return LanguageWeights(
        dense=own.routes[Route.DENSE], lexical=own.routes[Route.LEXICAL], tokens=own.tokens
    )
