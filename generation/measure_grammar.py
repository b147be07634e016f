"""How long it takes to make and compile the grammar of an evidence set, which the first token waits for."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from core.packs import pack_path
from core.settings import get_settings
from core.types import Evidence, Lang, Passage, Span
from generation.grammar import free_grammar
from generation.grammar_check import checked
from generation.made_texts import CHARACTERS, WORDS
from generation.quote_grammar import quote_grammar

SETS = 24  # evidence sets, each compiled once
_SENTENCES = 3


def bench_grammar() -> dict[str, Any]:
    """Milliseconds from an evidence set to a compiled grammar, for the sizes that have a limit.

    `cpu_p95` is processor time of all threads, which another load on the machine changes less.
    """
    compile_ = _compiler()

    def free(found: Sequence[Evidence]) -> str:
        return free_grammar([e.marker for e in found], max_sentences=_SENTENCES)

    def quote(found: Sequence[Evidence]) -> str:
        return quote_grammar(found, max_sentences=_SENTENCES)

    return {
        "free_40_ms": _spread(40, free, compile_),
        "quote_8_ms": _spread(8, quote, compile_),
        "quote_8_zh_ms": _spread(8, quote, compile_, lang=Lang.ZH),
        "quote_40_ms": _spread(40, quote, compile_),
    }


def _compiler() -> Callable[[str], object]:
    """A compiler for the generator's vocabulary, without its cache: every set is new to it."""
    from transformers import AutoTokenizer
    from xgrammar import GrammarCompiler, TokenizerInfo

    folder = pack_path(get_settings().packs.generator)
    tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
    info = TokenizerInfo.from_huggingface(tokenizer)
    return GrammarCompiler(info, max_threads=8, cache_enabled=False).compile_grammar


def _spread(
    passages: int,
    grammar: Callable[[Sequence[Evidence]], str],
    compile_: Callable[[str], object],
    *,
    lang: Lang = Lang.EN,
) -> dict[str, float]:
    ms, cpu_ms = list[float](), list[float]()
    for number in range(SETS):
        found = _evidence(passages, number, lang)
        begun, cpu_begun = time.perf_counter(), time.process_time()
        compile_(checked(grammar(found)))
        ms.append((time.perf_counter() - begun) * 1000)
        cpu_ms.append((time.process_time() - cpu_begun) * 1000)
    return {
        "p50": round(statistics.median(ms), 1),
        "p95": round(statistics.quantiles(ms, n=20, method="inclusive")[-1], 1),
        "cpu_p95": round(statistics.quantiles(cpu_ms, n=20, method="inclusive")[-1], 1),
    }


def _evidence(passages: int, seed: int, lang: Lang) -> list[Evidence]:
    """Made passages of about 128 tokens in sentences of a dozen words."""
    rng = random.Random(seed * 1000 + passages)  # noqa: S311 - reproducible texts, not a secret
    found: list[Evidence] = []
    for marker in range(1, passages + 1):
        sentences = [
            f"第{rng.randrange(1000)}号" + "".join(rng.choices(CHARACTERS, k=20)) + "。"
            if lang is Lang.ZH
            else f"House {rng.randrange(1000)} " + " ".join(rng.choices(WORDS, k=12)) + "."
            for _ in range(8)
        ]
        text = "".join(sentences) if lang is Lang.ZH else " ".join(sentences)
        passage = Passage(marker, f"doc_{marker}", 1, 0, Span(0, len(text)), None, (), lang, text)
        found.append(Evidence(marker, passage, 1.0))
    return found
