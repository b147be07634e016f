"""The admission of one question, in the transaction that stores it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from core.errors import InvalidInput, RateLimited
from core.metrics import ADMISSION_REFUSALS
from core.settings import Settings
from core.types import CitationMode
from generation import admission_repository as counted
from generation import repository
from generation.admission import Capacity, Limits, Refusal, refusal
from generation.plan_languages import written_languages
from generation.policy import CitationPolicy, kept_mode
from retrieval.language import question_language

LONGEST_DEADLINE_S = 30 * 86_400.0
_WHY = {
    "kv": "The engine's memory is taken by the questions before this one",
    "late": "The questions before this one take longer than its deadline",
    "queue": "Too many questions are waiting",
}


class EngineBusy(RateLimited):
    """There is no room for the question now; `Retry-After` says when there should be."""

    code = "engine_busy"
    title = "The engine is busy"


@dataclass(frozen=True, slots=True)
class Admitted:
    """What is stored with a question that was taken in. `kv_tokens` is 0 when it never asks the engine."""

    kv_tokens: int
    deadline_s: float


def admit(
    session: Session,
    settings: Settings,
    *,
    question: str,
    task: str,
    policy: CitationPolicy,
    priority: str,
    deadline_s: float | None,
) -> Admitted:
    """Take a question in or refuse it.

    `session` is the one that will store it; `deadline_s` is the asker's own, in seconds from now, and None
    means that of the priority.

    Raises:
        InvalidInput: the deadline is out of bounds.
        EngineBusy: there is no room; it says when to ask again.
    """
    generation = settings.generation
    if deadline_s is not None and not 0 < deadline_s <= LONGEST_DEADLINE_S:
        raise InvalidInput(f"deadline_s must be above 0 and at most {LONGEST_DEADLINE_S:g}.")
    usual = generation.batch_deadline_s if priority == "batch" else generation.interactive_deadline_s
    allowed_s = usual if deadline_s is None else deadline_s
    published = repository.published_plan(session)
    plan = published[0] if published else {}
    if task == "search" or not _asks_engine(question, policy, plan, settings):
        return Admitted(0, allowed_s)
    expected = counted.expected_kv_tokens(session, plan)
    refused = _refused(session, settings, expected, plan, priority=priority, deadline_s=allowed_s)
    if refused is not None:
        ADMISSION_REFUSALS.labels(refused.reason, priority).inc()
        other = "" if refused.reason == "queue" else ", or now with priority batch"
        raise EngineBusy(
            f"{_WHY[refused.reason]}; ask again in {refused.retry_after_s:g} s{other}.",
            retry_after_s=refused.retry_after_s,
            reason=refused.reason,
        )
    return Admitted(expected, allowed_s)


def _asks_engine(question: str, policy: CitationPolicy, plan: Mapping[str, Any], settings: Settings) -> bool:
    languages = written_languages(settings.packs.generator, plan.get("languages") or ())
    mode, unkept = kept_mode(policy, question_language(question), languages)
    return mode is not CitationMode.EXTRACT and not unkept  # a mode that cannot be kept is refused in words


def _refused(
    session: Session,
    settings: Settings,
    expected: int,
    plan: Mapping[str, Any],
    *,
    priority: str,
    deadline_s: float,
) -> Refusal | None:
    generation = settings.generation
    demand = counted.open_demand(session)
    if not demand.questions:
        return None
    held = int(plan.get("kv_blocks") or 0) * int(plan.get("block_size") or 0)
    return refusal(
        demand.ahead(batch_at_once=settings.worker.generation_batch_threads + generation.aged_at_once),
        expected,
        Capacity(held, counted.drained_per_s(session)),
        Limits(generation.admit_kv_share, generation.max_open),
        open_questions=demand.questions,
        priority=priority,
        deadline_s=deadline_s,
    )
