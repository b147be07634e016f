"""One answer's prompt: how long it may be now, and in which order its passages stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.settings import Settings
from core.types import CitationMode, EnginePlan, Evidence, Lang
from generation.pressure import Room, prompt_budget
from generation.prompt import Prompt, build_prompt
from generation.prompt_book import Form
from generation.requests import Engine
from generation.runtime import EngineRuntime
from generation.state import QueryState


@dataclass(frozen=True, slots=True)
class Framed:
    """A prompt and what it was made under.

    Attributes:
        budget: tokens that it was allowed.
        full: tokens that it would have been allowed by an idle engine.
        answer_tokens: that the answer may have.
        listwise: the model ordered its passages.
    """

    prompt: Prompt
    budget: int
    full: int
    answer_tokens: int
    listwise: bool = False

    @property
    def kv_tokens(self) -> int:
        """What prompt and answer may take of the KV cache."""
        return self.prompt.tokens + self.answer_tokens

    @property
    def shortened(self) -> tuple[int, ...]:
        """Markers of evidence that was left out because KV blocks are scarce."""
        return self.prompt.dropped if self.budget < self.full else ()

    def record(self) -> dict[str, object]:
        """What a replay needs to make the same prompt: passage ids in order, and the budget."""
        return {
            "order": [e.passage.id for e in self.prompt.included],
            "prompt_budget": self.budget,
            "full_budget": self.full,
            **({"listwise": True} if self.listwise else {}),
        }


class Framer:
    """Makes the prompts of one answer.

    Args:
        state: the query; a replay carries the record of the answer that it repeats.
        runtime: whose book of prompts decides the order, and whose promises the budget.
        settings: of this process.
        lang: of the rules.
    """

    def __init__(self, state: QueryState, runtime: EngineRuntime, settings: Settings, lang: Lang) -> None:
        self._state, self._runtime, self._settings, self._lang = state, runtime, settings, lang

    def frame(
        self,
        engine: Engine,
        mode: CitationMode,
        evidence: Sequence[Evidence],
        *,
        section: bool = False,
        ranked: Sequence[int] = (),
    ) -> Framed:
        """The prompt for this evidence.

        Args:
            engine: whose tokens are counted.
            mode: `quote` or `free`.
            evidence: by marker.
            section: it is a section of a document, whose passages stay in the document's order.
            ranked: passage ids as a model ordered them, best first: so they stand, and so they are left out.
        """
        answer_tokens = self._answer_tokens(engine.planned.plan)
        full = engine.planned.plan.max_model_len - answer_tokens
        budget = self._budget(engine, full, answer_tokens)
        if self._state.replayed.get("listwise"):
            ranked = self._state.replayed.get("order", ())
        prompt = build_prompt(
            self._state.question,
            evidence,
            lang=self._lang,
            budget=budget,
            count=engine.count_tokens,
            mode=mode,
            tone=self._state.policy.tone,
            summarize=self._state.task == "summarize",
            history=self._state.history,
            specials=engine.special_tokens,
            order=[e.passage.id for e in evidence] if section else ranked or self._order(evidence),
            ranked=ranked,
        )
        if not section:
            form = Form(self._lang, mode, self._state.policy.tone)
            self._runtime.prompts.note(self._state.tenant_id, form, [e.passage.id for e in prompt.included])
        return Framed(prompt, budget, full, answer_tokens, listwise=bool(ranked))

    def _answer_tokens(self, plan: EnginePlan) -> int:
        wanted = self._state.policy.max_answer_tokens or plan.answer_reserve
        return min(wanted, plan.max_model_len // 2)

    def _budget(self, engine: Engine, full: int, answer_tokens: int) -> int:
        repeated = self._state.replayed.get("prompt_budget")
        if isinstance(repeated, int):
            return min(full, repeated)
        plan = engine.planned.plan
        room = Room(
            plan.kv_blocks * plan.block_size, self._runtime.promises.tokens, self._runtime.kv_used_share
        )
        return prompt_budget(full, answer_tokens, room)

    def _order(self, evidence: Sequence[Evidence]) -> Sequence[int]:
        repeated: Sequence[int] = self._state.replayed.get("order", ())
        if repeated:
            return repeated
        if self._settings.generation.evidence_order == "relevance":
            return [e.passage.id for e in sorted(evidence, key=lambda e: e.marker)]
        return self._runtime.prompts.order(self._state.tenant_id, (e.passage.id for e in evidence))
