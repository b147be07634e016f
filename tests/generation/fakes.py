"""An engine for speed: it obeys the marker grammar, can stall, can be cut off and can die."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Generator, Sequence

from core.errors import DeadlineExceeded, InvalidInput
from core.types import EnginePlan, Usage
from generation.plan import Planned
from generation.requests import Cancelled, Chunk, EngineDead, EngineLoad, GenerationRequest

SENTENCE = re.compile(r"[^\n\[\]]+?[.!?。！？] ?\[(\d+)\]")


def fake_plan(max_model_len: int = 2048, languages: tuple[str, ...] = ("en",)) -> Planned:
    plan = EnginePlan(
        "fake/model", "fake/model", languages, max_model_len, 128, max_model_len - 384, 32, 64, 1.0, 1, 1, 0
    )
    return Planned(plan, 1024, 16, 0, True, ())


class FakeEngine:
    """Says `script`, word by word. A word is a token."""

    def __init__(self, script: str = "", *, planned: Planned | None = None, pause_s: float = 0.0) -> None:
        self.planned = planned or fake_plan()
        self.script, self.pause_s = script, pause_s
        self.stalled = threading.Event()  # set: no further word until it is cleared
        self.dead = False
        self.die_after: int | None = None
        self.requests: list[GenerationRequest] = []
        self.running: dict[str, threading.Event] = {}
        self.closed = False
        self.silent_for_s, self.proofs = 0.0, 0

    def generate(self, request: GenerationRequest) -> Generator[Chunk]:
        self.requests.append(request)
        if self.dead:
            raise EngineDead(request_id=request.id)
        self._obey(request)
        cancelled = self.running[request.id] = threading.Event()
        try:
            yield from self._words(request, cancelled)
        finally:
            del self.running[request.id]

    def _obey(self, request: GenerationRequest) -> None:
        if request.grammar is None:
            return
        if not request.grammar.startswith("root ::= "):
            raise InvalidInput("The engine refused the request: no root rule.")
        rules = request.grammar.split("marker ::=")
        markers = re.findall(r'"(\d+)"', rules[1]) if len(rules) > 1 else re.findall(r'"\[(\d+)\]', rules[0])
        allowed = set(markers)
        for written in re.findall(r"\[(\d+)\]", self.script):
            if written not in allowed:
                raise AssertionError(f"the grammar does not allow [{written}]")

    def _words(self, request: GenerationRequest, cancelled: threading.Event) -> Generator[Chunk]:
        words = re.findall(r"\s*\S+", self.script)
        prompt_tokens = sum(self.count_tokens(m.content) for m in request.messages)
        for number, word in enumerate(words, 1):
            while True:
                if cancelled.is_set():
                    raise Cancelled
                if time.monotonic() >= request.deadline:
                    raise DeadlineExceeded("The engine was stopped at the answer's deadline.")
                if self.die_after is not None and number > self.die_after:
                    self.dead = True
                    raise EngineDead(request_id=request.id)
                if not self.stalled.is_set():
                    break
                time.sleep(0.005)
            time.sleep(self.pause_s)
            usage = Usage(prompt_tokens, number, 0)
            if number == request.max_tokens and number < len(words):
                yield Chunk(word, "length", usage)
                return
            yield Chunk(word, "stop" if number == len(words) else None, usage)

    def cancel(self, request_id: str) -> None:
        event = self.running.get(request_id)
        if event is not None:
            event.set()

    def count_tokens(self, text: str) -> int:
        return len(re.findall(r"\w+|[^\w\s]", text))

    @property
    def special_tokens(self) -> Sequence[str]:
        return ("<|end|>",)

    def load(self) -> EngineLoad:
        return EngineLoad(0.25 if self.running else 0.0, len(self.running), 0)

    def silent_s(self) -> float:
        return self.silent_for_s if self.running else 0.0

    def prove(self, within_s: float) -> None:
        self.proofs += 1
        if self.stalled.is_set():
            raise DeadlineExceeded("no token came")

    def complaint(self) -> str:
        return ""

    def kill(self) -> None:
        self.dead = True
        self.die_after = 0
        self.stalled.clear()

    def close(self) -> None:
        self.closed = True
