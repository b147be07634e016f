"""What a vLLM server says on the wire: events of a stream, and its metrics. Pure but for the reading."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx

from core.types import Usage
from generation.requests import EngineLoad

_BLOCKS = re.compile(r'(block_size|num_gpu_blocks)="(\d+)"')


def server_sent(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """The JSON events of a stream, up to `[DONE]`."""
    for line in response.iter_lines():
        if line.startswith("data:"):
            body = line[5:].strip()
            if body == "[DONE]":
                return
            yield json.loads(body)


def parse_metrics(text: str) -> EngineLoad:
    """The load of a server from its Prometheus text, summed over its engines; zeros where it has none."""
    values: dict[str, list[float]] = {}
    kv_tokens = 0
    for line in text.splitlines():
        name = line.split("{", 1)[0].split(" ", 1)[0]
        if name == "vllm:cache_config_info":
            sizes = {key: int(value) for key, value in _BLOCKS.findall(line)}
            kv_tokens += sizes.get("block_size", 0) * sizes.get("num_gpu_blocks", 0)
        elif name.startswith("vllm:"):
            with suppress(ValueError):
                values.setdefault(name, []).append(float(line.rsplit(" ", 1)[1]))
    kv = values.get("vllm:kv_cache_usage_perc", [0.0])
    return EngineLoad(
        kv_used_share=sum(kv) / len(kv),
        running=int(sum(values.get("vllm:num_requests_running", ()))),
        waiting=int(sum(values.get("vllm:num_requests_waiting", ()))),
        preemptions=int(sum(values.get("vllm:num_preemptions_total", ()))),
        kv_tokens=kv_tokens,
    )


def usage_of(event: dict[str, Any]) -> Usage | None:
    """Token counts of an event that has them."""
    usage: dict[str, Any] | None = event.get("usage")
    if not usage:
        return None
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Usage(int(usage["prompt_tokens"]), int(usage.get("completion_tokens", 0)), int(cached))
