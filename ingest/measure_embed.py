"""The encoder's side of `geo bench ingest`: `python -m ingest.measure_embed PASSAGES.jsonl ROUNDS`."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from core.figures import spread
from core.settings import get_settings

Figures = dict[str, Any]
_EMBEDDED = 48  # passages a round
_PEER_BATCHES = (8, 16, 32)  # of sentence-transformers; its best counts


def measure_embed(passages: str, rounds: str) -> Figures:
    """The process's encoder against sentence-transformers in float32, each with its own batching."""
    import torch

    from core.packs import pack_path
    from ingest.encode import get_encoder
    from ingest.encode_torch import plain_model

    with Path(passages).open(encoding="utf-8") as lines:
        texts: list[str] = [json.loads(line) for line in lines][:_EMBEDDED]
    torch.set_num_threads(2)
    encoder = get_encoder()
    peer = plain_model(pack_path(get_settings().packs.encoder))

    def theirs(batch: int) -> Any:
        return peer.encode(texts, batch_size=batch, prompt_name="document", normalize_embeddings=True)

    exact, ours = theirs(_PEER_BATCHES[0]), encoder.encode_passages(texts)
    cosines = (exact * ours).sum(axis=1)
    best = min(_PEER_BATCHES, key=lambda size: _clocks(lambda: theirs(size))["cpu"])
    rounds_of = [
        (_clocks(lambda: theirs(best)), _clocks(lambda: encoder.encode_passages(texts)))
        for _ in range(int(rounds))
    ]
    lengths = encoder.count_tokens(texts)
    return {
        "ratio_fp32": _ratios(rounds_of, "wall"),
        "cpu_ratio_fp32": _ratios(rounds_of, "cpu"),
        "peer_batch": best,
        "passages_per_s": round(len(texts) / statistics.median(own["wall"] for _, own in rounds_of), 1),
        "passages_per_cpu_s": round(len(texts) / statistics.median(own["cpu"] for _, own in rounds_of), 1),
        "drift": round(1 - float(cosines.min()), 6),
        "mean_drift": round(1 - float(cosines.mean()), 6),
        "query_ms": _query_ms(encoder),
        "tokens": {"mean": round(statistics.mean(lengths)), "max": max(lengths)},
        "runtime": type(encoder.network).__name__,
        "threads": 2,
    }


def _clocks(work: Callable[[], object]) -> dict[str, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def _ratios(rounds_of: Sequence[tuple[dict[str, float], dict[str, float]]], clock: str) -> Figures:
    """The peer's time over ours, round by round."""
    return spread([theirs[clock] / own[clock] for theirs, own in rounds_of], 2)


def _query_ms(encoder: Any) -> float:
    questions = [f"When does ferry number {n} leave?" for n in range(30)]
    laps: list[float] = []
    for question in questions:
        begun = time.perf_counter()
        encoder.encode_query(question)
        laps.append(1000 * (time.perf_counter() - begun))
    return round(statistics.median(laps[5:]), 2)


if __name__ == "__main__":
    print(json.dumps(measure_embed(*sys.argv[1:])))  # noqa: T201 - read by `retrieval.measure_ingest`
