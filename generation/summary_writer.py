"""Writes the summary of one document: the whole in a few cited sentences, then one for each section."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from core.errors import InvalidInput
from core.types import AnswerStatus, CitationMode, Evidence, Verdict
from generation.answer import extract
from generation.notices import instructions_notice, left_out_notice, unread_notice
from generation.schemes import scheme_of
from generation.state import Outcome
from generation.summarize import sections, whole_sentences, with_central_sentences
from generation.write import AnswerWriter, elapsed_ms

_WHOLE = 2  # sentences that stand for a whole document, at most


class SummaryWriter(AnswerWriter):
    """As `AnswerWriter`, over all passages of one document instead of what a question recalled.

    First come the sentences that stand for the whole document, each of another section and in the
    document's own words in every mode (`reason` ends in `;whole_document`). Then the document is divided
    into at most as many sections as the summary may have sentences besides. `extract` shows the
    sentences that stand for each; the other modes let the model say it from the section's passages, and
    fall back to those where nothing it says is borne out.
    """

    def write(self) -> Outcome:
        """The outcome to store; claims have been published, `done` has not."""
        if self._state.cancel_requested:
            return self._outcome(AnswerStatus.CANCELLED)
        if not self._evidence:
            return self._refusal("the document has no passage that may be cited")
        document = self._evidence
        parts = [
            with_central_sentences(part, document)
            for part in sections(document, at_most=self._section_sentences())
        ]
        told = [_best(part, self._room()) for part in parts]
        self._evidence = tuple(e for part in told for e in part)
        self._board.use(self._evidence)
        self._events.sources(self._evidence)
        self._board.note(instructions_notice(self._evidence, self._lang))
        self._board.note(left_out_notice(self._left_out, self._lang))
        self._board.note(unread_notice(self._read, self._unread, self._lang))
        mode, reason = self._mode()
        if mode is CitationMode.EXTRACT or not reason:
            for claim in whole_sentences(document, told, at_most=self._whole_sentences()):
                self._board.show(claim)
        if mode is CitationMode.EXTRACT:
            outcome = self._sections_extracted(told, reason)
        elif reason:
            outcome = self._refusal(reason)
        else:
            outcome = self._sections_written(told, mode)
        return replace(outcome, evidence=self._evidence)

    def _whole_sentences(self) -> int:
        """Sentences for the whole: a third of those that the policy allows, else two beside the sections'."""
        allowed = self._state.policy.max_sentences
        return _WHOLE if allowed is None else min(_WHOLE, allowed // 3)

    def _section_sentences(self) -> int:
        """Sentences for the sections together."""
        allowed = self._state.policy.max_sentences
        return self._max_sentences() if allowed is None else allowed - self._whole_sentences()

    def _room(self) -> int:
        """Characters of one section that go into a prompt; about three to a token is the safe side."""
        plan = self._runtime.plan
        return 3 * plan.context_budget if plan is not None else 3 * 1024

    def _sections_extracted(self, parts: Sequence[Sequence[Evidence]], reason: str) -> Outcome:
        begun = time.monotonic()
        each = max(1, self._section_sentences() // max(1, len(parts)))
        for part in parts:
            self._extract_part(part, each)
        self._timings["extract"] = elapsed_ms(begun)
        if not self._board.claims:
            return self._refusal("no sentence could be quoted")
        return self._outcome(AnswerStatus.ANSWERED, CitationMode.EXTRACT, reason=reason)

    def _extract_part(self, part: Sequence[Evidence], sentences: int) -> None:
        """The sentences that stand for a part, in the order of the document."""
        shown = [c.text for c in self._board.claims if c.text]
        chosen = extract(self._state.question, part, max_sentences=sentences, shown=shown)
        for claim in sorted(chosen, key=lambda c: (c.citations[0].marker, c.citations[0].quote)):
            self._board.show(claim)

    def _sections_written(self, parts: Sequence[Sequence[Evidence]], mode: CitationMode) -> Outcome:
        begun, scheme = time.monotonic(), scheme_of(mode)
        each = max(1, self._section_sentences() // max(1, len(parts)))
        status, reason = AnswerStatus.ANSWERED, ""
        with self._runtime, self._watched():
            engine = self._ready_engine()
            self._timings["engine_wait"] = elapsed_ms(begun)
            for part in parts:
                if self._stop():
                    return self._outcome(AnswerStatus.CANCELLED, mode)
                before = len(self._board.claims)
                try:
                    framed = self._framer.frame(engine, scheme.mode, part, section=True)
                    grammar = scheme.grammar(framed.prompt.numbered, max_sentences=each)
                    with self._runtime.promises.held(framed.kv_tokens):
                        ended, why = self._stream(engine, framed, scheme, grammar)
                except InvalidInput as error:
                    ended, why = AnswerStatus.ANSWERED, error.detail
                if ended is AnswerStatus.CANCELLED:
                    return self._outcome(ended, mode)
                if ended is AnswerStatus.INCOMPLETE:
                    status, reason = ended, why
                said = self._board.claims[before:]
                if not any(c.text and c.verdict is Verdict.SUPPORTED for c in said):
                    self._extract_part(part, each)
        self._timings["generate"] = elapsed_ms(begun) - self._timings["engine_wait"]
        return self._outcome(status, mode, reason=reason)


def _best(section: Sequence[Evidence], room: int) -> tuple[Evidence, ...]:
    """The section's most central passages that fit, in order; at least one."""
    chosen: list[Evidence] = []
    for e in sorted(section, key=lambda e: (-e.score, e.marker)):
        if not chosen or sum(len(c.passage.text) for c in chosen) + len(e.passage.text) <= room:
            chosen.append(e)
    return tuple(sorted(chosen, key=lambda e: e.marker))
