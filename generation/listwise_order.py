"""Before a prompt is written: the model orders its passages, where the policy wants it and the model can.

Whatever goes wrong, is late or is not proved leaves the order as it was, with a word in the trace (ADR 0038).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import DeadlineExceeded, GeoError
from core.metrics import LISTWISE
from core.settings import get_settings
from core.types import Evidence, Lang, Usage
from generation.grammar_check import checked
from generation.listwise import MOST, order_grammar, order_messages, places_of, read_order
from generation.listwise_check import NEEDED, ListwiseGate, MadeList
from generation.prompt import harmless, passage_text
from generation.requests import Cancelled, Engine, GenerationRequest
from generation.state import QueryState
from generation.turns import engine_priority

log = logging.getLogger(__name__)

_TOKENS_A_PLACE, _TEST_S = 8, 30.0
_LONGEST, _SHORTEST = 1200, 75  # characters of a passage that are read; halved until all fit


@dataclass(frozen=True, slots=True)
class Ordered:
    """What came of it.

    Attributes:
        ids: passages, best first; empty where the order stays as it was.
        told: for the trace.
    """

    ids: tuple[int, ...]
    told: dict[str, Any]
    usage: Usage | None = None


def listwise_order(
    state: QueryState, evidence: Sequence[Evidence], engine: Engine, gate: ListwiseGate, lang: Lang
) -> Ordered:
    """The passages as the model orders them, within `GEO_GENERATION__LISTWISE_BUDGET_S`.

    Args:
        state: the query, whose policy asks for it.
        evidence: by marker; the best `MOST` by score are ordered.
        engine: the model.
        gate: whether it can.
        lang: of the question.
    """
    begun = time.monotonic()
    outcome = _ordered(state, evidence, engine, gate, lang, begun)
    LISTWISE.labels(outcome.told["state"]).inc()
    outcome.told["ms"] = round((time.monotonic() - begun) * 1000, 1)
    return outcome


def _ordered(
    state: QueryState,
    evidence: Sequence[Evidence],
    engine: Engine,
    gate: ListwiseGate,
    lang: Lang,
    begun: float,
) -> Ordered:
    shown = sorted(evidence, key=lambda e: (-e.score, e.marker))[:MOST]
    if len(shown) < 2:
        return Ordered((), {"state": "one_passage"})
    deadline = begun + get_settings().generation.listwise_budget_s

    def first_of(made: MadeList) -> int:
        until = time.monotonic() + _TEST_S
        text, _ = _ask(engine, made.question, made.texts, made.lang, 1, until, state, "listwise-test")
        return read_order(text, len(made.texts))[0] - 1

    right = gate.right(lang, first_of, within_s=deadline - time.monotonic())
    if right is None:
        return Ordered((), {"state": "not_tested"})
    if right < NEEDED:
        return Ordered((), {"state": "unable", "right": right, "needed": NEEDED})
    specials = engine.special_tokens
    texts = [passage_text(e, specials) for e in shown]
    question = harmless(state.question, specials)[:_LONGEST]
    places = places_of(len(shown))
    try:
        text, usage = _ask(engine, question, texts, lang, places, deadline, state, state.id)
    except DeadlineExceeded:
        return Ordered((), {"state": "late"})
    except Cancelled:
        return Ordered((), {"state": "cancelled"})
    except GeoError as error:  # the answer is written from the given order
        log.warning("listwise_failed", extra={"query_id": state.id, "code": error.code})
        return Ordered((), {"state": "failed"})
    order = read_order(text, len(shown))
    ids = tuple(shown[n - 1].passage.id for n in order)
    return Ordered(ids, {"state": "done", "order": list(ids)}, usage)


def _ask(
    engine: Engine,
    question: str,
    texts: Sequence[str],
    lang: Lang,
    places: int,
    deadline: float,
    state: QueryState,
    name: str,
) -> tuple[str, Usage | None]:
    """What the model writes for a list, and what it took."""
    tokens = places * _TOKENS_A_PLACE
    chars = _LONGEST
    messages = order_messages(question, texts, lang)
    while chars > _SHORTEST and (
        sum(engine.count_tokens(m.content) + 8 for m in messages) > engine.planned.plan.max_model_len - tokens
    ):
        chars //= 2
        messages = order_messages(question[:chars], [text[:chars] for text in texts], lang)
    generation = get_settings().generation
    request = GenerationRequest(
        id=f"{name}-order-{time.monotonic_ns()}",
        messages=messages,
        max_tokens=tokens,
        deadline=deadline,
        grammar=checked(order_grammar(len(texts), places)),
        priority=engine_priority(state.created_at, state.priority, head_start_s=generation.head_start_s),
        cache_salt=state.tenant_id,
    )
    text, usage = "", None
    for chunk in engine.generate(request):
        text, usage = text + chunk.text, chunk.usage or usage
    return text, usage
