"""What an answer costs beside the engine: processor time of API, worker, Redis and asker per answer.

The whole path of an answer runs (HTTP, queue, worker, database, grammar, checks, events), but the engine only
says words of the prompt's passages, all running answers one word per step, so that nothing else is measured.
Processor time, because another load on the machine changes it less than the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import statistics
import sys
import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import psutil

from core.packs import pack_path
from core.redis_client import get_redis
from core.settings import get_settings
from core.types import EnginePlan, Usage
from generation.measure_generate import GenerateSizes, asked_at_once, cases
from generation.measure_generate_door import Door, open_door
from generation.measure_generate_worker import LENGTH, consume
from generation.plan import Planned
from generation.requests import Cancelled, Chunk, EngineLoad, GenerationRequest, chunk_tokens

_STEP_VARIABLE = "BENCH_STEP_MS"  # set for the worker alone: it is this program, too
_MARKER_EVERY = 12  # words of a made sentence


@dataclass(slots=True)
class _Saying:
    """One answer as it is said."""

    words: Sequence[str]
    prompt_tokens: int
    at_once: int  # words of a chunk behind the first
    said: int = 0
    heard: int = 0  # that were handed over
    out: queue.SimpleQueue[Chunk | BaseException] = field(default_factory=queue.SimpleQueue[Any])


class SteppingEngine:
    """Says words of the passages, one per step and running answer; the question names their number.

    Args:
        step_s: seconds between two steps, as of an engine whose batch is full.
    """

    def __init__(self, step_s: float) -> None:
        from tokenizers import Tokenizer

        model = get_settings().packs.generator
        plan = EnginePlan(model, model, ("en",), 2048, 128, 1664, 32, 1024, 1.0, 1, 1, 0)
        self.planned = Planned(plan, 1024, 16, 0, True, ())
        self._tokenizer: Any = Tokenizer.from_file(str(pack_path(model) / "tokenizer.json"))
        self._step_s, self._lock = step_s, threading.Lock()
        self._running: dict[str, _Saying] = {}
        self.dead = False
        threading.Thread(target=self._step_for_ever, name="engine-steps", daemon=True).start()

    def generate(self, request: GenerationRequest) -> Generator[Chunk]:
        """See `Engine.generate`."""
        prompt = request.messages[-1].content
        length = int((LENGTH.findall(prompt) or ["8"])[-1])
        at_once = chunk_tokens(request.chunk_s, self._step_s)
        saying = _Saying(_words(prompt, length), self.count_tokens(prompt), at_once)
        with self._lock:
            self._running[request.id] = saying
        try:
            while True:
                item = saying.out.get()
                if isinstance(item, BaseException):
                    raise item
                yield item
                if item.finish_reason is not None:
                    return
        finally:
            with self._lock:
                self._running.pop(request.id, None)

    def _step_for_ever(self) -> None:
        while True:
            time.sleep(self._step_s)
            with self._lock:
                running = list(self._running.values())
            for saying in running:
                if saying.said < len(saying.words):
                    saying.said += 1
                    self._hand_over(saying)

    @staticmethod
    def _hand_over(saying: _Saying) -> None:
        ended = saying.said == len(saying.words)
        if ended or saying.said == 1 or saying.said - saying.heard >= saying.at_once:
            text = "".join(saying.words[saying.heard : saying.said])
            usage = Usage(saying.prompt_tokens, saying.said, 0)
            saying.heard = saying.said
            saying.out.put(Chunk(text, "length" if ended else None, usage))

    def cancel(self, request_id: str) -> None:
        """See `Engine.cancel`."""
        with self._lock:
            saying = self._running.get(request_id)
        if saying is not None:
            saying.out.put(Cancelled())

    def count_tokens(self, text: str) -> int:
        """See `Engine.count_tokens`."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    @property
    def special_tokens(self) -> Sequence[str]:
        """See `Engine.special_tokens`."""
        return ("<|im_start|>", "<|im_end|>")

    def load(self) -> EngineLoad:
        """See `Engine.load`."""
        return EngineLoad(0.1, len(self._running), 0)

    def silent_s(self) -> float:
        """See `Engine.silent_s`."""
        return 0.0

    def prove(self, within_s: float) -> None:
        """See `Engine.prove`."""

    def complaint(self) -> str:
        """See `Engine.complaint`."""
        return ""

    def kill(self) -> None:
        """See `Engine.kill`."""
        self.dead = True

    def close(self) -> None:
        """See `Engine.close`."""


def _words(prompt: str, length: int) -> list[str]:
    """As many words of the passages, with a marker at the end of every sentence."""
    source = re.findall(r"\w+", re.split(r"\n\n(?!\[)", prompt)[0]) or ["house"]
    said: list[str] = []
    for n in range(length):
        place, word = n % _MARKER_EVERY, source[n % len(source)]
        said.append(f" {word.capitalize()}" if place == 0 else f" {word}")
        if place == _MARKER_EVERY - 1:
            said[-1] += " [1]."
    return said


def work() -> None:
    """Consume the answer queue until a signal ends it."""
    consume(lambda: SteppingEngine(float(os.environ[_STEP_VARIABLE]) / 1000))


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=64, help="in a round, 16 at a time")
    parser.add_argument("--tokens", type=int, default=64, help="words of an answer")
    parser.add_argument("--step-ms", type=float, default=120.0, help="between two words of an answer")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    os.environ[_STEP_VARIABLE] = str(args.step_ms)
    with open_door("benchmarks.answer_cost") as door:
        _round(door, 16, 8, seed=0)
        rounds = [_round(door, args.answers, args.tokens, seed=n + 1) for n in range(args.rounds)]
    median = {name: round(statistics.median(r[name] for r in rounds), 2) for name in rounds[0]}
    figures = {
        "cpu_ms_per_answer": median,
        "rounds": rounds,
        "sizes": vars(args),
        "machine": {"cores": os.cpu_count(), "load_1m": os.getloadavg()[0]},
    }
    print(json.dumps(figures, indent=1))
    return 0


def _round(door: Door, answers: int, tokens: int, *, seed: int) -> dict[str, float]:
    stored = door.store(cases(GenerateSizes(requests=answers), [tokens] * answers, seed=seed))
    before = _spent(door)
    load = asked_at_once(door.client, lambda client, n: door.ask(client, stored[n]), answers)
    spent = {name: (after - before[name]) * 1000 / answers for name, after in _spent(door).items()}
    told = {name: round(ms, 2) for name, ms in spent.items()}
    first = statistics.median(lap.first_s for lap in load.laps) * 1000
    return {**told, "beside_engine": round(sum(spent.values()), 2), "first_ms": round(first, 1)}


def _spent(door: Door) -> dict[str, float]:
    """Seconds of processor time so far."""
    redis: Any = get_redis().info("cpu")
    seconds = {name: sum(psutil.Process(pid).cpu_times()[:2]) for name, pid in door.pids.items()}
    asker = time.process_time()
    return {**seconds, "redis": redis["used_cpu_user"] + redis["used_cpu_sys"], "asker": asker}


if __name__ == "__main__":
    sys.exit(work() if _STEP_VARIABLE in os.environ else main())
