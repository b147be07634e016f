"""Start the engine over a plan of several ranks in this process, write, and print what came out as JSON.

    python -m tests.generation.two_ranks PACK TP PP TOKENS PROMPT...

A process of its own, because the engine reads the placement of its threads from the environment once.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from core.settings import GenerationSettings
from generation.engine import LocalEngine
from generation.plan_pack import plan_for
from generation.plan_probe import this_machine
from generation.prompt import Message
from generation.requests import GenerationRequest

MIB = 1 << 20


def write(pack: Path, tp: int, pp: int, tokens: int, prompts: list[str]) -> dict[str, object]:
    begun = time.monotonic()
    settings = GenerationSettings(
        tensor_parallel=tp, pipeline_parallel=pp, dtype="float32", kv_cache_bytes=64 * MIB, max_model_len=768
    )
    planned = plan_for(pack, settings, this_machine(), name="tiny")
    engine = LocalEngine(pack, planned)
    started = time.monotonic()
    texts: list[str] = []
    for number, prompt in enumerate(prompts):
        request = GenerationRequest(
            f"r{number}", (Message("user", prompt),), tokens, time.monotonic() + 300, min_tokens=tokens
        )
        texts.append("".join(chunk.text for chunk in engine.generate(request)).strip())
    written = time.monotonic()
    report = {"texts": texts, "processes": len(engine.core_pids()), "start_s": round(started - begun, 1),
              "write_s": round(written - started, 2), "eager": planned.enforce_eager}  # fmt: skip
    engine.close()
    return {**report, "stop_s": round(time.monotonic() - written, 1)}


if __name__ == "__main__":
    folder, first, second, count, *asked = sys.argv[1:]
    print(json.dumps(write(Path(folder), int(first), int(second), int(count), asked)))
