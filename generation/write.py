"""Writes one answer: chooses the mode, runs it, checks every claim, tells the stream."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from core.db import Database, utcnow
from core.errors import DeadlineExceeded, InvalidInput
from core.metrics import ANSWERS, PROMPT_TOKENS
from core.settings import Settings
from core.types import AnswerStatus, CitationMode, Claim, Evidence, Usage, Verdict
from generation import repository
from generation.answer import extract, without_preamble
from generation.board import ClaimBoard
from generation.cancels import CancelWatch
from generation.entail import configured_entailment
from generation.framing import Framed, Framer
from generation.listwise_order import listwise_order
from generation.notices import (
    instructions_notice,
    left_out_notice,
    searched_notice,
    several_notice,
    shortened_notice,
)
from generation.parse import Event, ParsedClaim, TextDelta
from generation.plan_languages import written_languages
from generation.prompt import Prompt
from generation.replay import record_of
from generation.requests import Cancelled, Chunk, Engine, GenerationRequest
from generation.runtime import EngineRuntime
from generation.schemes import Scheme, Settling, kept_mode, scheme_of
from generation.sources import DocumentFacts, permitted
from generation.state import Outcome, QueryState
from generation.stream import EventWriter
from generation.turns import engine_priority
from retrieval.language import question_language

_LOOK_S = 2.0  # between looks at the row's cancel flag while tokens flow
# Where writing was cut off before a sentence was shown: how the answer of source sentences ends, and why.
_UNFINISHED = {
    "token_limit": (
        AnswerStatus.ANSWERED,
        "no generated sentence was finished within the token limit",
    ),
    "deadline": (AnswerStatus.INCOMPLETE, "no generated sentence was finished before the deadline"),
}


class AnswerWriter:
    """One answer. `write` is called once.

    Args:
        state: the query.
        evidence: what may be cited.
        events: where provisional and final text goes.
        runtime: the worker's engine.
        cancels: the worker's cancel watch.
        db: for short looks at the cancel flag.
        settings: of this process.
        begun: `time.monotonic()` of the task's start.
        documents: facts of the documents behind the evidence, for the policy's rules.
        unread: passages of a document to summarize that are behind `evidence` and are not read.
    """

    def __init__(
        self,
        state: QueryState,
        evidence: Sequence[Evidence],
        events: EventWriter,
        runtime: EngineRuntime,
        cancels: CancelWatch,
        db: Database,
        *,
        settings: Settings,
        begun: float,
        documents: Mapping[str, DocumentFacts] | None = None,
        unread: int = 0,
    ) -> None:
        self._state, self._events, self._documents = state, events, documents or {}
        self._evidence = permitted(evidence, self._documents, state.policy.sources)
        self._read, self._unread = len(evidence), unread
        self._left_out = state.left_out + len(evidence) - len(self._evidence)
        self._runtime, self._cancels, self._db, self._settings = runtime, cancels, db, settings
        self._begun = begun
        self._deadline = deadline(state, begun, settings.generation.deadline_s)
        self._patience = deadline(state, begun, settings.generation.interactive_deadline_s)
        self._lang = question_language(state.question)
        self._board = ClaimBoard(
            events, self._evidence, state.policy, lang=self._lang, documents=self._documents
        )
        self._framer = Framer(state, runtime, settings, self._lang)
        self._usage = Usage()
        self._timings: dict[str, float] = {}
        self._cancelled = False
        self._looked = begun
        self._repeats = False  # the model says again what it has said: a small model's loop
        self._record: dict[str, Any] = {}
        self._listwise: dict[str, Any] = {}

    def write(self) -> Outcome:
        """The outcome to store; claims have been published, `done` has not."""
        if self._state.cancel_requested:
            return self._outcome(AnswerStatus.CANCELLED)
        self._events.sources(self._evidence)
        policy = self._state.policy
        best = max((e.score for e in self._evidence), default=-1.0)
        threshold = policy.refusal_threshold
        if not self._evidence or best < (0.0 if threshold is None else threshold):
            return self._refusal()
        mode, reason = self._mode()
        self._board.note(instructions_notice(self._evidence, self._lang))
        self._board.note(left_out_notice(self._left_out, self._lang))
        self._board.note(several_notice(self._state.readings, self._lang))
        if self._state.readings:
            return self._extract("a name of the question means several; each is shown")
        if self._state.depth == CitationMode.EXTRACT.value and mode is not CitationMode.EXTRACT:
            return self._extract("one passage holds the answer; the model was not asked")
        if mode is CitationMode.EXTRACT:
            return self._extract(reason)
        if reason:
            return self._refusal(reason)
        return self._decode(scheme_of(mode))

    def cancelled(self) -> Outcome:
        """The outcome of an answer that was cancelled before it asked the engine."""
        return self._outcome(AnswerStatus.CANCELLED)

    # -- modes ---------------------------------------------------------------------------------

    def _mode(self) -> tuple[CitationMode, str]:
        plan = self._runtime.plan
        languages = written_languages(self._settings.packs.generator, plan.languages if plan else ())
        return kept_mode(self._state.policy, self._lang, languages)

    def _refusal(self, reason: str = "") -> Outcome:
        words = self._state.policy.refusal_words(self._lang)
        self._board.note(
            searched_notice(
                self._evidence,
                self._lang,
                threshold=self._state.policy.refusal_threshold or 0.0,
                collections=len(self._state.collection_ids),
                left_out=self._left_out,
            )
        )
        return self._outcome(AnswerStatus.REFUSED, text=words, reason=reason)

    def _extract(self, reason: str = "") -> Outcome:
        begun = time.monotonic()
        found = extract(
            self._state.question,
            self._evidence,
            max_sentences=self._max_sentences(),
            readings=self._state.readings,
        )
        for claim in found:
            self._board.show(claim, apart=bool(self._state.readings))
        self._timings["extract"] = elapsed_ms(begun)
        if not self._board.claims:
            return self._refusal("no sentence could be quoted")
        return self._outcome(AnswerStatus.ANSWERED, CitationMode.EXTRACT, reason=reason)

    def _decode(self, scheme: Scheme) -> Outcome:
        begun = time.monotonic()
        with self._runtime, self._watched():
            engine = self._ready_engine()
            self._timings["engine_wait"] = elapsed_ms(begun)
            if self._stop():
                return self._outcome(AnswerStatus.CANCELLED, scheme.mode)
            ranked = self._ranked(engine)
            if self._stop():
                return self._outcome(AnswerStatus.CANCELLED, scheme.mode)
            framed = self._framer.frame(engine, scheme.mode, self._evidence, ranked=ranked)
            try:
                grammar = scheme.grammar(framed.prompt.numbered, max_sentences=self._max_sentences())
            except InvalidInput as error:
                return self._extract(f"no grammar for this evidence: {error.detail}")
            self._events.share(self._runtime.active)
            with self._runtime.promises.held(framed.kv_tokens):
                status, reason = self._stream(engine, framed, scheme, grammar)
        self._timings["generate"] = elapsed_ms(begun) - self._timings["engine_wait"]
        if reason in _UNFINISHED and not any(c.text for c in self._board.claims):
            cut_off, why = _UNFINISHED[reason]
            return self._with_extract(self._instead(), CitationMode.EXTRACT, why, status=cut_off)
        if status is not AnswerStatus.ANSWERED:
            return self._outcome(status, scheme.mode, reason=reason)
        if not any(c.text for c in self._board.claims):
            why = "no generated sentence was borne out by the evidence"
            return self._with_extract(self._instead(), CitationMode.EXTRACT, why)
        if not any(_written_and_supported(c) for c in self._board.claims):
            why = "no generated sentence was fully borne out; the best source sentence stands beside it"
            return self._with_extract(1, scheme.mode, why)
        return self._outcome(status, scheme.mode, reason=reason)

    def _ranked(self, engine: Engine) -> Sequence[int]:
        """Passage ids as the model orders them; empty where it is not asked to, or cannot."""
        if not self._state.policy.listwise or self._state.replayed.get("order"):
            return ()
        ordered = listwise_order(self._state, self._evidence, engine, self._runtime.listwise, self._lang)
        self._listwise = ordered.told
        if ordered.usage is not None:
            self._count(Chunk("", usage=ordered.usage))
        return ordered.ids

    def _with_extract(
        self,
        sentences: int,
        mode: CitationMode,
        why: str,
        *,
        status: AnswerStatus = AnswerStatus.ANSWERED,
    ) -> Outcome:
        """An answer always has a sentence that is supported; the source's own words are."""
        for claim in extract(self._state.question, self._evidence, max_sentences=sentences):
            self._board.show(claim)
        return self._outcome(status, mode, reason=why)

    # -- the engine ----------------------------------------------------------------------------

    def _max_sentences(self) -> int:
        return self._state.policy.max_sentences or self._settings.generation.max_sentences

    def _instead(self) -> int:
        """Sentences of an extract that stands in for a written answer: no more than the policy allows."""
        return min(self._max_sentences(), self._settings.generation.max_sentences)

    def _stream(
        self, engine: Engine, framed: Framed, scheme: Scheme, grammar: str
    ) -> tuple[AnswerStatus, str]:
        prompt = framed.prompt
        self._board.note(shortened_notice(framed.shortened, len(prompt.included), self._lang))
        request = GenerationRequest(
            id=f"{self._state.id}-{time.monotonic_ns()}",
            messages=prompt.messages,
            max_tokens=framed.answer_tokens,
            deadline=self._deadline,
            grammar=grammar,
            priority=engine_priority(
                self._state.created_at,
                self._state.priority,
                head_start_s=self._settings.generation.head_start_s,
            ),
            cache_salt=self._state.tenant_id,
            chunk_s=self._events.interval_s,
        )
        self._cancels.add(self._state.id, lambda: self._abort(engine, request.id))
        self._record = record_of(
            request.messages,
            grammar,
            engine.planned.plan,
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            frame=framed.record(),
        )
        parser, begun = scheme.parser(), time.monotonic()
        last = Chunk("")
        try:
            for chunk in engine.generate(request):
                if not last.text and chunk.text:
                    self._timings.setdefault("first_token", elapsed_ms(begun))
                last = chunk
                self._take(parser.feed(chunk.text), prompt, scheme)
                if self._repeats:
                    self._count(last)
                    return AnswerStatus.ANSWERED, ""  # leaving the loop aborts the request
                if self._stop():
                    engine.cancel(request.id)
        except Cancelled:
            return AnswerStatus.CANCELLED, ""
        except DeadlineExceeded:
            self._take(parser.close(truncated=True), prompt, scheme)
            return AnswerStatus.INCOMPLETE, "deadline"
        self._count(last)
        truncated = last.finish_reason == "length"
        self._take(parser.close(truncated=truncated), prompt, scheme)
        return (AnswerStatus.INCOMPLETE, "token_limit") if truncated else (AnswerStatus.ANSWERED, "")

    def _count(self, last: Chunk) -> None:
        """Add what the engine did for one prompt; a summary has several."""
        used, before = last.usage or Usage(), self._usage
        PROMPT_TOKENS.labels("cached").inc(used.cached_tokens)
        PROMPT_TOKENS.labels("computed").inc(used.prompt_tokens - used.cached_tokens)
        self._usage = Usage(
            before.prompt_tokens + used.prompt_tokens,
            before.completion_tokens + used.completion_tokens,
            before.cached_tokens + used.cached_tokens,
        )

    def _take(self, events: Sequence[Event], prompt: Prompt, scheme: Scheme) -> None:
        for event in events:
            if isinstance(event, TextDelta):
                self._events.delta(len(self._board.claims), event.text)
            else:
                parsed = replace(event, markers=prompt.markers(event.markers))
                claim = self._settle(parsed, prompt, scheme)
                self._repeats = claim.reason.split(";")[0] == "repeated"
                self._board.show(claim)

    def _settle(self, parsed: ParsedClaim, prompt: Prompt, scheme: Scheme) -> Claim:
        if not parsed.complete:
            return Claim("", (), Verdict.UNSUPPORTED, "cut_off")
        shown = [c.text for c in self._board.claims if c.text]
        policy = self._state.policy
        asked = self._state.question if self._state.task == "answer" else ""
        with_ = Settling(prompt.included, policy.show_partial, shown, configured_entailment(), asked)
        return scheme.settle(replace(parsed, text=without_preamble(parsed.text)), with_)

    def _ready_engine(self) -> Engine:
        """The engine once it is up. A restart may take a minute or two; writing has its time from then on."""
        engine = self._runtime.wait_ready(self._patience, stop=self._stop)
        self._deadline = deadline(self._state, time.monotonic(), self._settings.generation.deadline_s)
        return engine

    # -- cancel --------------------------------------------------------------------------------

    def _abort(self, engine: Engine, request_id: str) -> None:
        self._cancelled = True
        engine.cancel(request_id)

    def _stop(self) -> bool:
        """Whether the query was cancelled: by message at once, by its row every two seconds."""
        now = time.monotonic()
        if not self._cancelled and now - self._looked >= _LOOK_S:
            self._looked = now
            with self._db.read() as session:
                self._cancelled = repository.cancel_requested(session, self._state.id)
        return self._cancelled

    @contextmanager
    def _watched(self) -> Generator[None]:
        def note() -> None:
            self._cancelled = True

        self._cancels.add(self._state.id, note)
        try:
            yield
        finally:
            self._cancels.remove(self._state.id)

    # -- ends ----------------------------------------------------------------------------------

    def _outcome(
        self, status: AnswerStatus, mode: CitationMode | None = None, *, text: str = "", reason: str = ""
    ) -> Outcome:
        ANSWERS.labels(status.value, mode.value if mode else "none").inc()
        self._timings["answer"] = elapsed_ms(self._begun)
        return Outcome(
            status=status,
            claims=tuple(self._board.claims),
            mode_used=mode,
            mode_reason=reason,
            text=text,
            usage=self._usage,
            timings_ms=self._timings,
            notices=tuple(self._board.notices),
            record=self._record,
            listwise=self._listwise,
        )


def _written_and_supported(claim: Claim) -> bool:
    """Whether the model's own words stand; the sentence nearest to refused words need not be the best one."""
    own = not claim.reason.startswith("replaced_by_source")
    return bool(claim.text) and claim.verdict is Verdict.SUPPORTED and own


def deadline(state: QueryState, begun: float, writing_s: float) -> float:
    """`time.monotonic()` value at which the answer is cut off.

    Args:
        state: the query; its own deadline holds where it comes first.
        begun: `time.monotonic()` of the start of writing.
        writing_s: that one answer may take.
    """
    if state.deadline_at is None:
        return begun + writing_s
    return min(begun + writing_s, time.monotonic() + (state.deadline_at - utcnow()).total_seconds())


def elapsed_ms(begun: float) -> float:
    """Milliseconds since a `time.monotonic()` value."""
    return round((time.monotonic() - begun) * 1000, 1)
