"""The engine's own figures of `geo bench generate`: grammar cost, KV waste, short among long answers."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from core.errors import GeoError
from core.packs import pack_path
from core.settings import GenerationSettings, get_settings
from generation.engine import LocalEngine
from generation.grammar import free_grammar
from generation.made_texts import WORDS
from generation.plan_pack import plan_for, this_machine
from generation.prompt import Message
from generation.requests import GenerationRequest

Note = Callable[[str], None]
_AT_ONCE = 16
_TOKENS = 48  # of an answer whose grammar is weighed
_ROUNDS = 4
_MARKERS = 8
_SHORT, _LONG = 12, 600  # tokens
_SHORTS = 24  # short answers timed beside each kind of company


@contextmanager
def measured_engine(*, note: Note, **changes: Any) -> Generator[LocalEngine]:
    """The configured generator on an engine of its own, with these generation settings changed."""
    settings = get_settings()
    generation = GenerationSettings.model_validate(settings.generation.model_dump() | changes)
    pack, here = pack_path(settings.packs.generator), this_machine()
    note("starting the engine")
    planned = plan_for(pack, generation, here, name=settings.packs.generator)
    engine = LocalEngine(pack, planned, device=here.device)
    try:
        yield engine
    finally:
        engine.close()


def bench_engine(*, note: Note) -> dict[str, Any]:
    """Ask the engine without the product around it, 16 at a time."""
    with measured_engine(note=note) as engine:
        grammar = free_grammar(range(1, _MARKERS + 1), max_sentences=20)
        _batch(engine, "warm up", tokens=8, grammar=grammar)
        note("with and without a grammar")
        rates: dict[str, list[float]] = {"grammar": [], "plain": []}
        for round_ in range(_ROUNDS):
            for arm in ("grammar", "plain") if round_ % 2 else ("plain", "grammar"):
                text = grammar if arm == "grammar" else None
                rates[arm].append(_batch(engine, f"{arm} {round_}", tokens=_TOKENS, grammar=text))
                note(f"  {arm}: {rates[arm][-1]:.1f} tokens/s")
        note("memory that no token uses")
        waste = _waste(engine)
        note("short answers among long ones")
        among = {kind: _short_seconds(engine, kind, note) for kind in ("long", "short")}
    costs = [1 - a / b for a, b in zip(rates["grammar"], rates["plain"], strict=True)]
    return {
        "grammar_cost": round(1 - statistics.median(rates["grammar"]) / statistics.median(rates["plain"]), 4),
        "grammar_cost_by_round": [round(cost, 4) for cost in costs],
        "plain_tokens_per_s": [round(rate, 1) for rate in rates["plain"]],
        **waste,
        "short_p95_ratio": round(_p95(among["long"]) / _p95(among["short"]), 3),
        "short_p50_ratio": round(statistics.median(among["long"]) / statistics.median(among["short"]), 3),
        "short_ms": {
            kind: {"p50": round(statistics.median(s) * 1000, 1), "p95": round(_p95(s) * 1000, 1)}
            for kind, s in among.items()
        },
    }


def _request(
    name: str, number: int, tokens: int, *, words: int = 40, grammar: str | None = None
) -> GenerationRequest:
    """A prompt that no other shares a block with: it has a salt of its own."""
    text = " ".join(WORDS[(number + i) % len(WORDS)] for i in range(words))
    return GenerationRequest(
        id=f"{name} {number} {time.monotonic_ns()}",
        messages=(Message("system", "Tell what is known."), Message("user", f"House {number}: {text}")),
        max_tokens=tokens,
        min_tokens=tokens,
        deadline=time.monotonic() + 600,
        grammar=grammar,
        temperature=1.0,
        cache_salt=f"{name} {number}",
    )


def _batch(engine: LocalEngine, name: str, *, tokens: int, grammar: str | None) -> float:
    """Tokens per second of 16 answers at once."""
    requests = [_request(name, n, tokens, grammar=grammar) for n in range(_AT_ONCE)]
    begun = time.perf_counter()
    with _running(engine, requests) as company:
        company.join()
    return _AT_ONCE * tokens / (time.perf_counter() - begun)


@dataclass(slots=True)
class _Company:
    """Requests that run in threads; `lengths` are the tokens that each holds now, prompt and answer."""

    engine: LocalEngine
    lengths: dict[str, int] = field(default_factory=dict[str, int])
    threads: list[threading.Thread] = field(default_factory=list[threading.Thread])
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self, request: GenerationRequest) -> None:
        """Follow one to its end."""
        for chunk in self.engine.generate(request):
            if chunk.usage is not None:
                self.lengths[request.id] = chunk.usage.prompt_tokens + chunk.usage.completion_tokens
            if self.ended.is_set():
                break
        self.lengths.pop(request.id, None)

    def join(self) -> None:
        """Wait for all."""
        for thread in self.threads:
            thread.join()


@contextmanager
def _running(engine: LocalEngine, requests: Sequence[GenerationRequest]) -> Generator[_Company]:
    company = _Company(engine)
    company.threads = [threading.Thread(target=company.run, args=(r,)) for r in requests]
    for thread in company.threads:
        thread.start()
    try:
        yield company
    finally:
        company.ended.set()
        company.join()


def _waste(engine: LocalEngine) -> dict[str, Any]:
    """Share of the held blocks' places that have no token, beside (block/2) / (S + block/2).

    Sampled while 16 sequences of different lengths grow; S is their mean length at each moment.
    """
    plan = engine.planned.plan
    requests = [_request("waste", n, 96, words=300 + 13 * n) for n in range(_AT_ONCE)]
    samples: list[tuple[float, float, float]] = []
    with _running(engine, requests) as company:
        while len(company.lengths) < _AT_ONCE and all(t.is_alive() for t in company.threads):
            time.sleep(0.05)
        while len(company.lengths) == _AT_ONCE:
            held = engine.load().kv_used_share * (plan.kv_blocks - 1) * plan.block_size
            lengths = list(company.lengths.values())
            if len(lengths) == _AT_ONCE and held:
                mean = statistics.fmean(lengths)
                half = plan.block_size / 2
                samples.append((1 - sum(lengths) / held, half / (mean + half), mean))
            time.sleep(0.05)
    if not samples:
        raise GeoError("the sequences never ran all at once; ask on a machine with nothing else to do")
    waste, expected, mean = (statistics.fmean(column) for column in zip(*samples, strict=True))
    return {
        "kv_waste": round(waste, 4),
        "kv_waste_expected": round(expected, 4),
        "kv_waste_at_tokens": round(mean, 1),
        "kv_waste_block": plan.block_size,
        "kv_waste_samples": len(samples),
    }


def _short_seconds(engine: LocalEngine, kind: str, note: Note) -> list[float]:
    """Seconds of short answers, one after the other, beside 15 others that are always running."""
    seconds: list[float] = []
    stop = threading.Event()

    def others(number: int) -> None:
        asked = 0
        while not stop.is_set():
            tokens = _LONG if kind == "long" else _SHORT
            for _ in engine.generate(_request(f"{kind} {asked}", number, tokens)):
                if stop.is_set():
                    break
            asked += 1

    threads = [threading.Thread(target=others, args=(n,)) for n in range(1, _AT_ONCE)]
    for thread in threads:
        thread.start()
    while engine.load().running < _AT_ONCE - 1:
        time.sleep(0.05)
    for number in range(_SHORTS):
        begun = time.perf_counter()
        for _ in engine.generate(_request(f"timed {kind} {number}", 0, _SHORT)):
            pass
        seconds.append(time.perf_counter() - begun)
    stop.set()
    for thread in threads:
        thread.join()
    note(f"  among {kind} ones: p95 {_p95(seconds):.2f} s")
    return seconds


def _p95(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=20, method="inclusive")[-1]
