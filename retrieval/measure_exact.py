"""`geo bench exact`: many exact searches at once against `faiss.IndexFlatIP` and against the bare product."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from core.errors import GeoError
from core.figures import spread
from core.measured import machine, versions
from retrieval.exact import search
from retrieval.faiss_index import flat_search
from retrieval.measure_vectors import DIMENSION, made_vectors

LIMIT = {"ratio": 2.5, "sgemm_fraction": 0.6}
SEED = 20261201
_K = 10
_BLOCK = 2048


def bench_exact(
    *, size: int, queries: int, rounds: int, note: Callable[[str], None] = print
) -> dict[str, Any]:
    """Measure one batch of queries.

    Args:
        size: vectors.
        queries: in the batch.
        rounds: interleaved rounds.
        note: told about progress.

    Raises:
        GeoError: the two sides do not find the same.
    """
    stored, asked = made_vectors(size, queries, seed=SEED)
    rows = stored.astype(np.float32)
    theirs = flat_search(rows, asked, _K)
    if np.mean(search(asked, rows, _K)[1] == theirs()) < 0.999:
        raise GeoError("The two sides do not find the same.")

    def product() -> None:
        for start in range(0, size, _BLOCK):
            asked @ rows[start : start + _BLOCK].T  # pyright: ignore[reportUnusedExpression] - timed

    sides: dict[str, Callable[[], Any]] = {
        "ours": lambda: search(asked, rows, _K), "faiss": theirs, "sgemm": product
    }  # fmt: skip
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(1, rounds + 1):
        note(f"round {number} of {rounds}")
        for name, run in sides.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    flops = 2 * size * queries * DIMENSION
    return {
        "ratio": spread([a / b for a, b in zip(seconds["faiss"], seconds["ours"], strict=True)]),
        "sgemm_fraction": spread([a / b for a, b in zip(seconds["sgemm"], seconds["ours"], strict=True)]),
        "gflops": {name: spread([flops / s / 1e9 for s in values]) for name, values in seconds.items()},
        "machine": machine(),
        "versions": versions("numpy", "faiss-cpu"),
        "seed": SEED,
        "sizes": {"vectors": size, "queries": queries, "rounds": rounds, "threads": os.cpu_count()},
        "peer": "faiss.IndexFlatIP, one batch, as many OpenMP threads as numpy's BLAS has",
        "limit": LIMIT,
    }
