"""The rewriting stage: before a search whose policy asks for it, a model writes what else to search for.

The search never depends on it. Its job was added with the query and is rung by whoever ends this stage, or by
the reaper when the budget is over; so a dead worker, a dead engine or a slow one costs that time and no more
(ADR 0037).
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from core.db import utcnow
from core.errors import DeadlineExceeded, GeoError
from core.jobs import JobRun, ring_job
from core.metrics import REWRITES
from core.settings import get_settings
from core.types import Lang
from core.worker import next_stage
from generation import repository
from generation.cancels import CancelWatch
from generation.grammar_check import checked
from generation.plan_languages import written_languages
from generation.requests import Cancelled, Engine, GenerationRequest
from generation.rewrite import GRAMMARS, MAX_TOKENS, rewrite_messages, variant_of
from generation.runtime import EngineRuntime
from generation.state import QueryState
from generation.turns import engine_priority
from retrieval.language import question_language
from retrieval.variants import Kind, Variant

log = logging.getLogger(__name__)

_LEAST_S = 0.2  # with less time left nothing is asked


def rewrite_query(run: JobRun, runtime: EngineRuntime, cancels: CancelWatch) -> None:
    """Write the variants of one query, store them and ring for its search; whatever fails, ring."""
    with run.db.read() as session:
        state = repository.query_state(session, run.subject_id)
    kind = state.policy.rewrite
    if kind == "off" or state.status.terminal or state.cancel_requested:
        return
    begun = time.monotonic()
    outcome, variant = _rewritten(state, kind, runtime, cancels)
    told = {"kind": kind, "state": outcome, "ms": round((time.monotonic() - begun) * 1000, 1)}
    following = next_stage(run.task)
    with run.finish() as session:
        stored = repository.store_rewriting(session, state.id, told, [variant] if variant else [])
        if stored and following is not None:
            ring_job(session, following, state.id)
    if stored:
        REWRITES.labels(kind, outcome).inc()


def _rewritten(
    state: QueryState, kind: Kind, runtime: EngineRuntime, cancels: CancelWatch
) -> tuple[str, Variant | None]:
    """What came of it in a word, and the variant if there is one."""
    budget = timedelta(seconds=get_settings().generation.rewrite_budget_s)
    left_s = (state.created_at + budget - utcnow()).total_seconds()
    if left_s < _LEAST_S:
        return "late", None
    engine = runtime.engine
    if engine is None:
        return "engine_not_ready", None
    lang = question_language(state.question)
    writes = written_languages(get_settings().packs.generator, engine.planned.plan.languages)
    if lang is not Lang.UND and lang.value not in writes:
        return "language", None
    try:
        with runtime:
            written = _write(engine, state, kind, lang, time.monotonic() + left_s, runtime, cancels)
    except DeadlineExceeded:
        return "late", None
    except Cancelled:
        return "cancelled", None
    except GeoError as error:  # the search goes on without
        log.warning("rewrite_failed", extra={"query_id": state.id, "code": error.code})
        return "failed", None
    variant = variant_of(kind, written, state.question)
    return ("done", variant) if variant is not None else ("nothing_new", None)


def _write(
    engine: Engine,
    state: QueryState,
    kind: Kind,
    lang: Lang,
    deadline: float,
    runtime: EngineRuntime,
    cancels: CancelWatch,
) -> str:
    """The model's text; a question that is cut off is none."""
    generation = get_settings().generation
    room = engine.planned.plan.max_model_len - MAX_TOKENS[kind] - 32
    specials = engine.special_tokens
    messages = rewrite_messages(kind, state.question, state.history, lang=lang, specials=specials)
    tokens = sum(engine.count_tokens(m.content) + 8 for m in messages)
    if tokens > room:
        messages = rewrite_messages(kind, state.question[: room // 2], (), lang=lang, specials=specials)
        tokens = room
    request = GenerationRequest(
        id=f"{state.id}-rewrite-{time.monotonic_ns()}",
        messages=messages,
        max_tokens=MAX_TOKENS[kind],
        deadline=deadline,
        grammar=checked(GRAMMARS[kind]),
        priority=engine_priority(state.created_at, state.priority, head_start_s=generation.head_start_s),
        cache_salt=state.tenant_id,
    )
    cancels.add(state.id, lambda: engine.cancel(request.id))
    text, ended = "", ""
    try:
        with runtime.promises.held(tokens + MAX_TOKENS[kind]):
            for chunk in engine.generate(request):
                text += chunk.text
                ended = chunk.finish_reason or ended
    finally:
        cancels.remove(state.id)
    return "" if kind == "llm" and ended == "length" else text
