"""A cross-encoder over 20 passages: ours against `sentence_transformers.CrossEncoder.predict` in float32.

The checkpoint is the default encoder with a head of random weights: as large and fast as a small reranker,
which no package registry carries. Rounds are interleaved; the same pairs go to both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from core.measured import machine, versions
from core.packs import pack_path
from core.settings import get_settings
from ingest.pair_network import PairScorer, export_pairs
from retrieval.cross_encoder import BATCH, cross_scores
from retrieval.measure_texts import made_passages

CANDIDATES, TOP, SEED = 20, 5, 7


def main() -> int:
    """Run and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="geo-rerank-") as folder:
        print(json.dumps(_measure(_checkpoint(Path(folder)), args.rounds), indent=1))
    return 0


def _measure(folder: Path, rounds: int) -> dict[str, Any]:
    from sentence_transformers import CrossEncoder

    theirs: Any = CrossEncoder(str(folder), device="cpu", max_length=512)
    export_pairs(folder)
    ours = PairScorer(folder)
    passages = made_passages(CANDIDATES * (rounds + 1), seed=SEED, shortest=60, longest=160)
    times: list[tuple[float, float]] = []
    agreed: list[float] = []
    for number in range(rounds + 1):
        texts = passages[CANDIDATES * number : CANDIDATES * (number + 1)]
        question = " ".join(texts[0].split()[:8])[:80]
        begun = time.perf_counter()
        exact = np.asarray(theirs.predict([(question, text) for text in texts], show_progress_bar=False))
        middle = time.perf_counter()
        found = cross_scores(question, list(enumerate(texts)), ours, budget_s=60)
        times.append((middle - begun, time.perf_counter() - middle))
        own = np.array([found[i] for i in range(CANDIDATES)])
        agreed.append(len({*np.argsort(-exact)[:TOP]} & {*np.argsort(-own)[:TOP]}) / TOP)
    ratios = [a / b for a, b in times[1:]]  # the first round warms both up
    return {
        "ratio": {
            "median": round(statistics.median(ratios), 2),
            "range": [round(min(ratios), 2), round(max(ratios), 2)],
        },
        "agreement": round(statistics.fmean(agreed), 3),
        "ms": {
            "predict": round(1000 * statistics.median(a for a, _ in times[1:]), 1),
            "ours": round(1000 * statistics.median(b for _, b in times[1:]), 1),
        },
        "batch": BATCH,
        "sizes": {"candidates": CANDIDATES, "rounds": rounds},
        "limit": {"ratio": 3.0, "agreement": 0.95},
        "machine": machine(),
        "versions": versions("torch", "openvino", "sentence-transformers"),
        "seed": SEED,
    }


def _checkpoint(folder: Path) -> Path:
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    source = pack_path(get_settings().packs.encoder)
    torch.manual_seed(SEED)
    config = AutoConfig.from_pretrained(source, num_labels=1)
    model = AutoModelForSequenceClassification.from_pretrained(source, config=config, dtype=torch.float32)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    raise SystemExit(main())
