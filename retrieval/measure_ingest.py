"""`geo bench ingest`: from passages and vectors to a durable, searchable index, against txtai and Haystack.

Every side runs in a fresh process of its own per round, in turn, on the same files. Other work on the machine
changes the clock more than the processor time, so both are given; ratios without a word are by the clock.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from core.errors import GeoError
from core.figures import growth_exponent, spread
from core.measured import machine, versions
from core.settings import get_settings
from ingest.peers import peer_python
from retrieval.measure import LIBRARIES, SEED
from retrieval.measure_linking import named_passages
from retrieval.measure_texts import made_passages

PEERS = ("txtai==9.14.0", "haystack-ai==3.4.1")
BESIDE = (
    "lazy-imports>=1", "docstring-parser>=0.17", "filetype>=1.2", "more-itertools>=10", "posthog>=6",
    "backoff>=2", "distro>=1.9", "msgpack>=1.1",
)  # fmt: skip
PEER_FOLDER = Path(".venv-peers-index")
LIMIT = {"ratio_txtai": 1.0, "ratio_haystack": 5.0, "exponent": 1.05, "rss_growth": 0.1, "ratio_fp32": 2.5,
         "drift": 0.01, "linking_extra": 0.25}  # fmt: skip
_EMBEDDED = 48  # passages of up to 50 words: 20 to 250 tokens
Note = Callable[[str], None]
Figures = dict[str, Any]


def bench_ingest(
    *, sizes: Sequence[int], rounds: int, corpus: Path | None = None, line: int = 60, note: Note = print
) -> Figures:
    """Measure the import, the encoder and the whole line.

    Args:
        sizes: numbers of documents; the peers run at the largest.
        rounds: interleaved rounds.
        corpus: JSON lines, a string or an object with `text` each, as many as the largest size; None = made.
        line: documents that walk through all stages, and a third of them per round and language for what
            linking adds; 0 leaves both and the parser's memory out.
        note: told about progress.

    Raises:
        GeoError: a side did not do its work.
    """
    with TemporaryDirectory(prefix="geo-bench-") as scratch:
        passages = _passages(corpus, max(sizes))
        files = _write(Path(scratch), passages)
        runs = _interleaved(files, sorted(sizes), rounds, Path(scratch), note)
        note("embed")
        short = Path(scratch) / "embed.jsonl"
        _write_texts(
            short, passages if corpus else made_passages(_EMBEDDED, seed=SEED, shortest=4, longest=50)
        )
        embed = _run([sys.executable, "-m", "ingest.measure_embed", str(short), str(rounds)], 2)
        walk: Figures = {}
        if line:
            note("line")
            walk = _child("line", str(files[0]), str(line))
            note("linking")
            walk["linking_extra"] = _linking(Path(scratch), corpus, passages, line, rounds)
    return {
        **_import_figures(runs, sorted(sizes)),
        **walk,
        "embed": embed,
        "machine": machine(),
        "versions": versions(*LIBRARIES) | runs["versions"],
        "seed": SEED,
        "sizes": {
            "documents": sorted(sizes),
            "rounds": rounds,
            "line": line,
            "corpus": str(corpus or "made"),
        },
        "encoder": get_settings().packs.encoder,
        "peer": "txtai: content, hybrid, external vectors, saved; haystack-ai: its in-memory store with BM25 "
        "and embeddings, saved by its own save_to_disk (it has no store of its own that persists as it goes)",
        "limit": LIMIT,
    }


def _linking(scratch: Path, corpus: Path | None, passages: Sequence[str], line: int, rounds: int) -> Figures:
    """Processor time of linking over that of the other stages: of both languages together, and of each."""
    documents = max(1, line // 3)
    texts = scratch / "linking.jsonl"
    _write_texts(texts, passages if corpus else named_passages(20 * documents * (rounds + 1), seed=SEED))
    ratios = _run(
        [sys.executable, "-m", "retrieval.measure_linking", str(texts), str(documents), str(rounds)], 1
    )
    spreads = {group: spread(values) for group, values in ratios.items()}
    return {**spreads.pop("both", {}), **spreads}


def _passages(corpus: Path | None, count: int) -> list[str]:
    if corpus is None:
        return made_passages(count, seed=SEED)
    with corpus.open(encoding="utf-8") as lines:
        read = [json.loads(line) for line in lines if line.strip()]
    texts = list(dict.fromkeys(one if isinstance(one, str) else str(one["text"]) for one in read))
    if len(texts) < count:
        raise GeoError(f"{corpus} holds {len(texts)} different passages, fewer than {count}.")
    return texts[:count]


def _write(folder: Path, passages: Sequence[str]) -> tuple[Path, Path]:
    import numpy as np

    texts, vectors = folder / "passages.jsonl", folder / "vectors.npy"
    _write_texts(texts, passages)
    rows = np.random.default_rng(SEED).standard_normal((len(passages), 384)).astype(np.float32)
    np.save(vectors, rows / np.linalg.norm(rows, axis=1, keepdims=True))
    return texts, vectors


def _write_texts(path: Path, passages: Sequence[str]) -> None:
    path.write_text("".join(json.dumps(p, ensure_ascii=False) + "\n" for p in passages), encoding="utf-8")


def _interleaved(
    files: tuple[Path, Path], sizes: Sequence[int], rounds: int, scratch: Path, note: Note
) -> Figures:
    python = peer_python((*PEERS, *BESIDE), PEER_FOLDER, beside_product=True)
    script = Path(__file__).with_name("peer_ingest.py")
    runs: Figures = {"ours": {n: [] for n in sizes}, "txtai": [], "haystack": [], "versions": {}}
    for number in range(1, rounds + 1):
        note(f"import: round {number} of {rounds}")
        for size in sizes:
            runs["ours"][size].append(_child("import", *map(str, files), str(size)))
        for peer in ("txtai", "haystack"):
            with TemporaryDirectory(dir=scratch) as place:
                command = [str(python), "-P", str(script), peer, *map(str, files), str(sizes[-1]), place]
                run = _run(command, 1)
            runs["versions"] |= run["versions"]
            runs[peer].append(run)
    return runs


def _import_figures(runs: Figures, sizes: Sequence[int]) -> Figures:
    ours = runs["ours"]
    largest = sizes[-1]
    figures: Figures = {
        "docs_per_s": spread([largest / run["seconds"] for run in ours[largest]]),
        "docs_per_cpu_s": spread([largest / run["cpu_seconds"] for run in ours[largest]]),
    }
    for peer in ("txtai", "haystack"):
        figures[f"ratio_{peer}"] = _ratio(runs[peer], ours[largest], "seconds")
        figures[f"cpu_ratio_{peer}"] = _ratio(runs[peer], ours[largest], "cpu_seconds")
        figures[f"{peer}_docs_per_s"] = spread([largest / run["seconds"] for run in runs[peer]])
    figures["exponent"] = growth_exponent(
        {n: statistics.median(r["seconds"] for r in ours[n]) for n in sizes}
    )
    figures["cpu_exponent"] = growth_exponent(
        {n: statistics.median(r["cpu_seconds"] for r in ours[n]) for n in sizes}
    )
    figures["import_rss_mib"] = {n: statistics.median(r["rss_mib"] for r in ours[n]) for n in sizes}
    return figures


def _ratio(peer: Sequence[Figures], ours: Sequence[Figures], key: str) -> Figures:
    return spread([p[key] / o[key] for p, o in zip(peer, ours, strict=True)])


def _child(what: str, *arguments: str) -> Figures:
    return _run([sys.executable, "-m", "retrieval.measure_ingest_child", what, *arguments], 1)


def _run(command: Sequence[str], threads: int) -> Figures:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "OMP_WAIT_POLICY": "PASSIVE",  # as the workers have it: spinning threads count as work
    }
    done = subprocess.run(  # noqa: S603 - our own scripts
        command, env=environment, capture_output=True, text=True, check=False
    )
    last = done.stdout.strip().rsplit("\n", 1)[-1]
    if done.returncode or not last:
        raise GeoError(f"{' '.join(command[-6:])} ended with {done.returncode}: {done.stderr[-2000:]}")
    figures: Figures = json.loads(last)
    if not figures.get("found", True):
        raise GeoError(f"{' '.join(command[-6:])} does not find what it indexed.")
    return figures
