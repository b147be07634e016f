"""The door to an entailment model (NLI), where a pack is configured: does a premise entail a claim?

The rules of `verify.py` decide without it. With it, a claim in other words than its source can be supported,
and one that the rules let pass can be contradicted. Numbers, names and dates stay the rules' business.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.errors import ConfigError
from core.packs import pack_path
from core.settings import GenerationSettings, get_settings
from core.types import Evidence, Verdict
from generation.contradiction import contradiction
from generation.verify import Judgement, about
from generation.wording import content_terms

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entailment:
    """Probabilities that a premise entails and that it contradicts a claim."""

    entails: float
    contradicts: float


Entails = Callable[[Sequence[tuple[str, str]]], Sequence[Entailment | None]]
"""From (premise, claim) pairs to probabilities; None for pairs that the time did not reach."""


class EntailmentPack:
    """A sequence classifier with the labels entailment, neutral and contradiction (any order and case).

    Args:
        folder: a transformers checkpoint with its tokenizer.
        batch: pairs at a time.
        budget_ms: no batch is begun after it.

    Raises:
        ConfigError: no readable checkpoint, or its labels name neither entailment nor contradiction.
    """

    def __init__(self, folder: Path, *, batch: int = 16, budget_ms: float = 1500.0) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
            self._model: Any = AutoModelForSequenceClassification.from_pretrained(str(folder)).eval()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{folder} holds no readable entailment model: {error}") from error
        labels = {str(name).casefold(): int(index) for index, name in self._model.config.id2label.items()}
        self._entails = _label(labels, "entail")
        self._contradicts = _label(labels, "contra")
        self._batch, self._budget_s = batch, budget_ms / 1000
        self._torch: Any = torch
        self._lock = threading.Lock()

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Entailment | None]:
        """See `Entails`; premises longer than the model's window are cut at their end."""
        deadline = time.monotonic() + self._budget_s
        found: list[Entailment | None] = []
        for first in range(0, len(pairs), self._batch):
            if first and time.monotonic() >= deadline:
                found += [None] * (len(pairs) - first)
                break
            found += self._judge(pairs[first : first + self._batch])
        return found

    def _judge(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        premises, claims = zip(*pairs, strict=True)
        with self._lock, self._torch.inference_mode():
            batch = self._tokenizer(
                list(premises),
                list(claims),
                truncation="only_first",
                max_length=min(512, int(self._tokenizer.model_max_length)),
                padding=True,
                return_tensors="pt",
            )
            chances: list[list[float]] = self._model(**batch).logits.softmax(dim=-1).tolist()
        return [Entailment(row[self._entails], row[self._contradicts]) for row in chances]


def _label(labels: dict[str, int], beginning: str) -> int:
    found = [index for name, index in labels.items() if name.startswith(beginning)]
    if len(found) != 1:
        raise ConfigError(f"The entailment model's labels {sorted(labels)} name no single {beginning}….")
    return found[0]


@lru_cache(maxsize=1)
def configured_entailment() -> Entails | None:
    """The configured pack, loaded once; None when none is configured.

    A pack that cannot be loaded is a warning, not a failed answer: the rules go on alone.
    """
    settings = get_settings()
    name = settings.packs.nli
    if not name:
        return None
    try:
        folder = pack_path(name)
        return EntailmentPack(
            folder, batch=settings.generation.nli_batch, budget_ms=settings.generation.nli_budget_ms
        )
    except ConfigError as error:
        log.warning("entailment_pack_not_loaded", extra={"pack": name, "detail": error.detail})
        return None


def with_entailment(
    claim: str,
    judged: Sequence[tuple[Evidence, Judgement]],
    entails: Entails | None,
    settings: GenerationSettings | None = None,
) -> list[tuple[Evidence, Judgement]]:
    """Judgements of the rules, with the entailment model's word taken into account; the best first.

    A fact that contradicts stays contradicted. A supported or partial claim that the model finds
    contradicted is not shown as such; one that only lacks words, and that the model finds entailed, is
    supported.
    """
    if entails is None or not judged:
        return list(judged)
    settings = settings or get_settings().generation
    told = entails([(_premise(e, j), claim) for e, j in judged])
    revised = [
        (e, judgement if word is None else _revised(claim, e, judgement, word, settings))
        for (e, judgement), word in zip(judged, told, strict=True)
    ]
    order = list(Verdict)
    return sorted(revised, key=lambda p: (order.index(p[1].verdict), -p[1].score, p[0].marker))


def _revised(
    claim: str, e: Evidence, judgement: Judgement, word: Entailment, settings: GenerationSettings
) -> Judgement:
    if judgement.verdict is not Verdict.UNSUPPORTED and word.contradicts >= settings.nli_threshold:
        return replace(
            judgement,
            verdict=Verdict.UNSUPPORTED,
            reason=f"nli_contradicts={word.contradicts:.2f}",
            score=judgement.score / 2,
        )
    lacks_words = judgement.verdict is not Verdict.SUPPORTED and judgement.reason.startswith(
        ("words=", "elsewhere:")
    )
    if lacks_words and word.entails >= settings.nli_threshold and content_terms(claim):
        if wrong := contradiction(claim, _premise(e, judgement), e.passage.text, about(e)):
            return replace(judgement, verdict=Verdict.UNSUPPORTED, reason=wrong)
        return replace(
            judgement,
            verdict=Verdict.SUPPORTED,
            reason=f"nli_entails={word.entails:.2f};{judgement.reason}",
            score=max(judgement.score, word.entails),
        )
    return judgement


def _premise(e: Evidence, judgement: Judgement) -> str:
    """The sentences that should carry the claim, or the whole passage."""
    span = judgement.span
    return e.passage.text[span.start : span.end] if span is not None else e.passage.text
